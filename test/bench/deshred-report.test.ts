// The report's sections about deshredding: counts, differences and verdicts.

import { describe, expect, it } from "vitest";
import { landingsInJavaScript } from "../../bench/baselines/landings-in-javascript.ts";
import { parseLine } from "../../bench/report/lines.ts";
import { summarise } from "../../bench/report/statistics.ts";
import { besideSection, handOverSection } from "../../bench/sections/deshred-overhead-section.ts";
import { deshredSection, recoverySection } from "../../bench/sections/deshred-section.ts";
import { landingSection } from "../../bench/sections/landing-section.ts";
import { finding, findingText, type Section } from "../../bench/sections/section.ts";
import { stepsSection } from "../../bench/sections/steps-section.ts";

const line = (fields: Record<string, string | number | boolean>) =>
  parseLine(JSON.stringify(fields));

const verdicts = ({ findings }: Section) => findings.map(({ what, verdict }) => [what, verdict]);

/** One line of each of five rounds. */
function rounds(fields: (round: number) => Record<string, string | number | boolean>) {
  return [1, 2, 3, 4, 5].map((round) => line({ round, ...fields(round) }));
}

describe("findings with a least value", () => {
  const limit = { target: 2, unit: "Gbit/s", bound: "at least" } as const;

  it("are met at the target and missed below", () => {
    expect(finding("x", summarise([2]), limit).verdict).toBe("met");
    const slow = finding("x", summarise([1.9]), limit);
    expect(slow.verdict).toBe("missed");
    expect(findingText(slow)).toBe("missed        x: 1.90 Gbit/s, target: ≥ 2");
  });

  it("compute the shredder's rate: bits of 64 shreds by the time of one set", () => {
    const shredder = (ns: number) =>
      stepsSection(
        rounds(() => ({ kind: "step", step: "shredder, one FEC set of 64 shreds", ns })),
      ).findings.find(({ what }) => what === "shredding, one core");
    expect(shredder(62_233.6)).toMatchObject({ verdict: "met", value: { median: 10 } });
    expect(shredder(622_336)).toMatchObject({ verdict: "missed", value: { median: 1 } });
  });
});

describe("recovery section", () => {
  const lines = (ns: number) => [
    ...rounds(() => ({ kind: "recovery", what: "32 data shreds lost", path: "", ns })),
    ...rounds(() => ({
      kind: "recovery",
      what: "4 data shreds lost, all others there",
      path: "",
      ns: 30_000,
    })),
    ...rounds(() => ({
      kind: "recovery",
      what: "whole set, 32 data shreds lost",
      path: "portable",
      ns: 130_000,
    })),
  ];

  it("judges whole sets on the machine's own path, in microseconds", () => {
    expect(verdicts(recoverySection(lines(59_000)))).toEqual([
      ["recovery of a FEC set, 32 data shreds lost", "met"],
      ["recovery of a FEC set, 4 data shreds lost, all others there", "met"],
    ]);
    expect(recoverySection(lines(61_000)).findings[0]?.verdict).toBe("missed");
  });

  it("shows every path", () => {
    const [table] = recoverySection(lines(40_000)).tables;
    expect(table?.rows).toContainEqual([
      "whole set, 32 data shreds lost, portable",
      "130",
      "130–130",
    ]);
  });
});

describe("deshred section", () => {
  const lines = (perSetNs: number) => [
    ...rounds(() => ({
      kind: "deshred",
      arrival: "in order",
      cpu_ns: perSetNs * 10,
      sets: 10,
      transactions: 1000,
    })),
    ...rounds(() => ({ kind: "entries", cpu_ns: 50_000, bytes: 400_000, transactions: 1000 })),
  ];

  it("counts all 64 shreds of a set, and judges Gbit/s", () => {
    const section = deshredSection(lines(100_000));
    expect(section.values["in order, Gbit/s"]?.median).toBeCloseTo(6.22336);
    expect(section.tables[0]?.rows[0]).toEqual(["in order", "100", "100–100", "6.22", "1,000,000"]);
    expect(verdicts(section)).toEqual([["deshredding, one core, in order", "met"]]);
    expect(deshredSection(lines(400_000)).findings[0]?.verdict).toBe("missed");
  });

  it("reports nanoseconds per transaction and megabytes per second of the entries alone", () => {
    const { values } = deshredSection(lines(100_000));
    expect(values["entries, ns per transaction"]?.median).toBe(50);
    expect(values["entries, MB/s"]?.median).toBe(8000);
  });
});

describe("hand-over section", () => {
  const lines = (allocations: number, library = "libsodium") =>
    ["without", "with"].flatMap((driver) =>
      rounds((round) => ({
        kind: "hand_over",
        driver,
        batch: 64,
        packets: 100,
        first: 100,
        lost: driver === "with" ? 25 : 0,
        // The machine gets slower from round to round; the difference does not.
        cpu_ns: 100 * (1000 * round + (driver === "with" ? 120 : 0)),
        counted: true,
        allocations,
        library,
      })),
    );

  it("subtracts round by round, and shows the share of shreds handed over", () => {
    const section = handOverSection(lines(0));
    expect(section.tables[0]?.rows).toEqual([["64", "3,000", "3,120", "120", "120–120", "75 %"]]);
    expect(section.findings.map(({ value, verdict }) => [value.median, verdict])).toEqual([
      [0, "met"],
    ]);
  });

  it("requires zero allocations, and ignores those of OpenSSL", () => {
    const [found] = handOverSection(lines(1)).findings;
    expect(found).toMatchObject({ verdict: "missed", value: { median: 10 } });
    expect(found?.unit).toBe("in 1000 packets");
    expect(handOverSection(lines(1, "openssl")).findings).toEqual([]);
  });
});

describe("beside section", () => {
  /** p50 and p99 of each round without deshredding, and the additional time with it. */
  const lines = (without: readonly number[], ratio: number) =>
    ["without", "with"].flatMap((driver) =>
      rounds((round) => {
        const ns = (without[round - 1] ?? 0) * (driver === "with" ? ratio : 1);
        return {
          kind: "beside",
          driver,
          destinations: 10,
          burst: 1,
          samples: 100,
          lost: driver === "with" ? 1 : 0,
          recovered: driver === "with" ? 2 : 0,
          p50_ns: ns,
          p99_ns: ns * 3,
        };
      }),
    );
  const steady = [1000, 1000, 1000, 1000, 1000];

  it("judges the ratio of the medians, and of the best tails", () => {
    expect(verdicts(besideSection(lines(steady, 1.04)))).toEqual([
      ["p50 with deshredding ÷ none, 10 × burst of 1", "met"],
      ["best p99 with deshredding ÷ none, 10 × burst of 1", "met"],
    ]);
    const slower = besideSection(lines(steady, 1.06)).findings;
    expect(slower.map(({ verdict }) => verdict)).toEqual(["missed", "missed"]);
    expect(slower[1]?.value.median).toBeCloseTo(1.06);
  });

  it("reports missed although the relay without deshredding varied", () => {
    const unsteady = [1000, 1100, 1200, 1300, 1400];
    const verdictsAt = (ratio: number) =>
      besideSection(lines(unsteady, ratio)).findings.map(({ verdict }) => verdict);
    expect(verdictsAt(1.2)).toEqual(["missed", "missed"]);
    // A ratio of best rounds has no interval of its own.
    expect(verdictsAt(1.01)).toEqual(["met", "inconclusive"]);
  });

  it("shows lost and recovered shreds", () => {
    const row = besideSection(lines(steady, 1)).tables[0]?.rows[0];
    expect(row?.slice(-3)).toEqual(["1000", "5", "10"]);
  });
});

describe("landings section", () => {
  const inJavaScript = [{ delaysNs: [100_000, 200_000, 300_000], watched: 3 }];
  const lines = (p99: readonly number[], reported: number) =>
    p99.map((ns, i) =>
      line({
        kind: "landings",
        case: "one by one",
        round: i + 1,
        watched: 10,
        reported,
        p50_ns: 200_000,
        p99_ns: ns,
      }),
    );

  it("judges the best round's tail", () => {
    const section = landingSection(lines([5_000_000, 900_000], 10), inJavaScript);
    expect(section.findings).toMatchObject([{ verdict: "met", value: { median: 900 } }]);
    expect(section.tables[0]?.rows).toEqual([
      ["one by one", "200", "900", "2,950", "20", "20"],
      ["one by one, nothing lost, in JavaScript", "200", "298", "298", "3", "3"],
    ]);
    const slow = landingSection(lines([5_000_000, 1_100_000], 10), inJavaScript);
    expect(slow.findings[0]?.verdict).toBe("missed");
  });

  it("reports missed if a report never arrived", () => {
    const section = landingSection(lines([900_000], 9), inJavaScript);
    expect(section.findings[0]).toMatchObject({
      verdict: "missed",
      what: "best p99 from the last needed shred to the report, one by one (1 not reported)",
    });
  });
});

describe("the scenario in JavaScript", () => {
  it("observes every watched transaction once, after its shred", async () => {
    const { delaysNs, watched } = await landingsInJavaScript(50);
    expect(watched).toBe(4 * 8);
    expect(delaysNs.length).toBe(watched);
    expect(Math.min(...delaysNs)).toBeGreaterThan(0);
  });
});
