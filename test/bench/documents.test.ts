import { describe, expect, it } from "vitest";
import { documents, mainRun, numbersPart, replacePart } from "../../bench/report/documents.ts";
import { judge, summarise } from "../../bench/report/statistics.ts";
import {
  parseStoredReport,
  type Report,
  readStoredReport,
  type StoredReport,
  withRun,
} from "../../bench/report/stored-report.ts";
import { Cells, summaryPart } from "../../bench/report/summary-table.ts";
import { transmitPart } from "../../bench/report/transmit-table.ts";
import { finding } from "../../bench/sections/section.ts";

const order = ["steps", "cost", "tpu"];

function report(sections: readonly string[], { rounds = 7, load = 0.5 } = {}): Report {
  return {
    takenAt: "2026-01-02T03:04:05.000Z",
    machine: {
      cpu: "Processor",
      cpus: 4,
      memoryGib: 8,
      kernel: "6.1",
      system: "System",
      virtualised: false,
      node: "v20",
      openssl: "3",
      loadAverage: load,
    },
    small: false,
    rounds,
    network: "own network namespace",
    comparable: true,
    libraries: "Ed25519 by libsodium",
    skipped: [],
    noise: [
      { cpuSpread: 0.01, stolen: 0.02 },
      { cpuSpread: 0.03, stolen: 0.04 },
    ],
    sections: sections.map((name) => ({
      name,
      title: `Title of ${name}`,
      notes: [`Note of ${name}, ${rounds} rounds.`],
      tables: [
        { title: "T", columns: ["step", "median"], rows: [[`a ${name}`, "1.20 (1.1–1.3)"]] },
      ],
      findings: [finding(`what ${name}`, summarise([1, 1.1, 1.2]), { target: 1.2, unit: "×" })],
      values: {},
      seconds: 9,
    })),
  };
}

const nothing: StoredReport = { runs: [], sections: [] };
const storedReport = (before: StoredReport, own: Report, commit: string | null = "abc") =>
  withRun(before, own, { commit, order });

describe("the documents", () => {
  it.each(documents(readStoredReport()))("$path matches bench/results/latest.json", (own) => {
    expect(own.text).toBe(own.wanted);
  });

  it("leave everything outside the marks unchanged, and require both marks", () => {
    const mark = (word: string) => `<!-- made by \`npm run bench -- --report\`: ${word} -->`;
    const text = `before\n${mark("begin")}\nold\n${mark("end")}\nafter`;
    expect(replacePart(text, "new").split("\n").filter(Boolean)).toEqual([
      "before",
      mark("begin"),
      "new",
      mark("end"),
      "after",
    ]);
    expect(() => replacePart(`${mark("end")}${mark("begin")}`, "new")).toThrow("expected <!--");
    expect(() => replacePart("neither", "new")).toThrow("expected <!--");
  });
});

describe("the stored verdicts", () => {
  const findings = readStoredReport().sections.flatMap((section) => section.findings);
  const strictness = ["met", "inconclusive", "missed"];

  // Numbers of the first runs are stored as printed: an end of the interval that prints like the
  // target may be on either side.
  it.each(findings.map((found) => [found.what, found] as const))(
    "%s: not more lenient than its numbers",
    (_, { value, target, bound, verdict }) => {
      const least = judge(value, { target, bound });
      expect(strictness.indexOf(verdict)).toBeGreaterThanOrEqual(strictness.indexOf(least));
    },
  );
});

describe("the stored report", () => {
  it("replaces the sections of a new run and leaves the others, in the order of the bench", () => {
    const first = storedReport(nothing, report(["steps", "cost"]));
    const second = storedReport(first, report(["tpu", "steps"], { rounds: 3 }), "def");
    expect(second.sections.map(({ name, run }) => [name, run])).toEqual([
      ["steps", 1],
      ["cost", 0],
      ["tpu", 1],
    ]);
    expect(second.sections[0]?.notes).toEqual(["Note of steps, 3 rounds."]);
    expect(second.runs.map(({ commit }) => commit)).toEqual(["abc", "def"]);
    expect(parseStoredReport(JSON.stringify(second))).toEqual(second);
  });

  it("removes runs without sections", () => {
    const first = storedReport(nothing, report(["steps"]));
    const second = storedReport(first, report(["steps", "cost"]), "def");
    expect(second.runs.map(({ commit }) => commit)).toEqual(["def"]);
    expect(second.sections.map(({ run }) => run)).toEqual([0, 0]);
  });

  it("rejects an invalid report", () => {
    expect(() => parseStoredReport("{}")).toThrow("expected an object of runs and sections");
    const [section] = storedReport(nothing, report(["steps"])).sections;
    expect(() => parseStoredReport(JSON.stringify({ runs: [], sections: [section] }))).toThrow(
      "expected a run of the section steps",
    );
  });
});

describe("the numbers", () => {
  const both = storedReport(
    storedReport(nothing, report(["steps", "cost"])),
    report(["tpu"], { rounds: 3, load: 0.9 }),
    "def",
  );

  it("contain machine, date, commit and rounds of each run", () => {
    expect(mainRun(both)).toBe(0);
    const text = numbersPart(both);
    expect(text).toMatch(/^- Taken on 2026-01-02, commit abc\.\n- Machine: 4 CPUs Processor/);
    expect(text).toContain("- Medians of 7 interleaved rounds");
    expect(text).toContain("| a cost | 1.20 (1.1–1.3) |\n\nNote of cost, 7 rounds.\n\n### Title");
    expect(text).toContain(
      "From a separate run: medians of 3 rounds. Taken on 2026-01-02, commit def. Machine: 4 CPUs",
    );
    expect(text).toContain("| what tpu | 1.10 (1.05 to 1.15) × | ≤ 1.2 | met |");
  });

  it("appear in the summary without quartiles; a missing cell is an error", () => {
    const cells = new Cells(both);
    expect(cells.at("cost", ["a cost"], "median")).toBe("1.20");
    expect(cells.median("cost", "what cost")).toBe("1.10");
    expect(cells.verdict("cost", "what cost")).toBe("target: ≤ 1.2, met");
    expect(cells.note("cost", /(\d+) rounds/)).toBe("7");
    expect(() => cells.at("cost", ["b"], "median")).toThrow("cost: expected a cell b / median");
    expect(() => cells.at("gateway", ["b"], "median")).toThrow("expected a section gateway");
    expect(() => cells.median("cost", "what")).toThrow("cost: expected a finding what");
    expect(() => cells.note("cost", /(none)/)).toThrow("cost: expected a note");
  });

  it("contain in the summary only measured values", () => {
    const now = readStoredReport();
    const main = now.runs[mainRun(now)];
    if (!main) throw new Error("expected a run");
    const rowsWithout = (name: string) =>
      summaryPart({ ...now, sections: now.sections.filter((own) => own.name !== name) }, main);
    expect(summaryPart(now, main)).toContain("durable tip registrations");
    expect(rowsWithout("shreds")).not.toContain("durable tip registrations");
    expect(rowsWithout("shreds")).toContain("fan-out of single shreds");
  });

  it("compare clones with sockets, if they were measured", () => {
    expect(transmitPart(readStoredReport())).toMatch(
      /^\| 1,000 \| [\d,.]+ \/ [\d,.]+ \/ [\d,.]+ \|/m,
    );
    expect(transmitPart(both)).toBe("The stored report does not contain this measurement.");
  });
});
