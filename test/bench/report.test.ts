import { describe, expect, it } from "vitest";
import { byRound, numberOf, parseLine, textOf } from "../../bench/report/lines.ts";
import { summarise } from "../../bench/report/statistics.ts";
import { number, percent, renderMarkdown, renderText } from "../../bench/report/table.ts";
import { costSection } from "../../bench/sections/cost-section.ts";
import { finding, findingText } from "../../bench/sections/section.ts";
import { workerSection } from "../../bench/sections/steps-section.ts";

const line = (fields: Record<string, string | number | boolean>) =>
  parseLine(JSON.stringify(fields));

describe("lines", () => {
  it("rejects a line that is not an object of plain values with a kind", () => {
    expect(() => parseLine("3")).toThrow("expected an object");
    expect(() => parseLine('{"round":1}')).toThrow("expected a kind");
    expect(() => parseLine('{"kind":"x","list":[1]}')).toThrow("expected plain values, got list");
  });

  it("reads fields with their types", () => {
    const step = line({ kind: "step", step: "parse", round: 1, ns: 12.5 });
    expect(textOf(step, "step")).toBe("parse");
    expect(numberOf(step, "ns")).toBe(12.5);
    expect(() => numberOf(step, "step")).toThrow("expected a number as step");
    expect(() => textOf(step, "missing")).toThrow("expected text as missing");
  });

  it("groups values by round", () => {
    const lines = [1, 2].map((round) => line({ kind: "step", step: "a", round, ns: round * 10 }));
    const groups = byRound(
      lines,
      (own) => textOf(own, "step"),
      (own) => numberOf(own, "ns"),
    );
    expect(groups).toEqual(
      new Map([
        [
          "a",
          new Map([
            [1, 10],
            [2, 20],
          ]),
        ],
      ]),
    );
  });
});

describe("tables", () => {
  const table = {
    title: "T",
    columns: ["step", "ns"],
    rows: [
      ["parse | check", "9"],
      ["x", "1,000"],
    ],
  };

  it("aligns text", () => {
    expect(renderText(table).split("\n")).toEqual([
      "T",
      "  step              ns",
      "  -------------  -----",
      "  parse | check      9",
      "  x              1,000",
    ]);
  });

  it("escapes Markdown cells", () => {
    expect(renderMarkdown(table).split("\n").slice(2)).toEqual([
      "| step | ns |",
      "|---|---:|",
      "| parse \\| check | 9 |",
      "| x | 1,000 |",
    ]);
  });

  it("formats numbers with three significant digits", () => {
    expect([1234.5, 56.78, 3.456, 0.1234, Number.NaN].map(number)).toEqual([
      "1,235",
      "56.8",
      "3.46",
      "0.123",
      "–",
    ]);
    expect(percent(0.0512)).toBe("5.1 %");
  });
});

// Per shred to 10 destinations: bare 1,000 ns each, the relay 1,050 ns each after 400 + 600 ns.
function costLines(options: { delivered?: number; slowdown?: (round: number) => number } = {}) {
  const perShred = {
    bare_sendmmsg: 10_000,
    receive: 400,
    shredway_to_nobody: 1000,
    shredway: 11_500,
    forwarder: 11_000,
  };
  return [1, 2, 3, 4, 5].flatMap((round) =>
    Object.entries(perShred).map(([driver, ns]) =>
      line({
        kind: "cost",
        driver,
        destinations: 10,
        burst: 1,
        segmentation: "device",
        round,
        shreds: 100,
        cpu_ns: ns * 100 * (options.slowdown?.(round) ?? 1),
        delivered: driver === "shredway" ? (options.delivered ?? 1) : 1,
      }),
    ),
  );
}

describe("cost section", () => {
  it("computes the fan-out as the relay minus the relay without destinations", () => {
    const [found] = costSection(costLines()).findings;
    expect(found?.value.median).toBeCloseTo(1.05);
    expect(found?.verdict).toBe("met");
    expect(found?.what).toBe("fan-out ÷ bare sendmmsg, single shreds, 10 destinations");
  });

  it("reports missed on a noisy machine if every round misses", () => {
    const noisy = costLines({ slowdown: (round) => 1 + round / 5 }).map((own) =>
      own.get("driver") === "shredway"
        ? new Map([...own, ["cpu_ns", numberOf(own, "cpu_ns") * 1.2]])
        : own,
    );
    const [found] = costSection(noisy).findings;
    expect(found?.value.median).toBeCloseTo(1.28);
    expect(found?.verdict).toBe("missed");
  });

  it("omits slots in which datagrams were lost", () => {
    const section = costSection(costLines({ delivered: 0.9 }));
    expect(section.findings[0]?.verdict).toBe("inconclusive");
    expect(section.notes.join("\n")).toContain("Slots in which not all datagrams left: 5 of 25");
  });
});

describe("worker section", () => {
  const mix = "all duplicates";
  const worker = (driver: string, round: number, ns: number) =>
    line({
      kind: "worker",
      driver,
      mix,
      round,
      packets: 100,
      cpu_ns: ns * 100,
      first: 0,
      duplicate: 100,
      refused: 0,
    });

  it("subtracts receiving round by round, and requires zero allocations", () => {
    const section = workerSection([
      worker("receive", 1, 10),
      worker("shredway", 1, 40),
      worker("receive", 2, 20),
      worker("shredway", 2, 50),
      line({
        kind: "allocations",
        library: "libsodium",
        counted: true,
        packets: 9,
        allocations: 1,
      }),
    ]);
    expect(section.findings.map(({ value, verdict }) => [value.median, verdict])).toEqual([
      [30, "met"],
      [1, "missed"],
    ]);
    expect(section.tables[0]?.rows[0]).toEqual([mix, "30.0", "30.0–30.0", "0 %", "100 %", "0 %"]);
  });
});

describe("findings", () => {
  it("contain verdict, value, quartiles and target", () => {
    const found = finding("x", summarise([1, 1.1, 1.2]), { target: 1.2, unit: "×" });
    expect(findingText(found)).toBe("met           x: 1.10 (1.05 to 1.15) ×, target: ≤ 1.2");
  });
});
