import { describe, expect, it } from "vitest";
import { parseLine } from "../../bench/report/lines.ts";
import { dividedSection } from "../../bench/sections/divided-section.ts";

const line = (kind: string, way: string, round: number, p50_ns: number) =>
  parseLine(
    JSON.stringify({
      kind,
      way,
      destinations: 200,
      round,
      sends: 100,
      samples: 100,
      lost: 1,
      failed: 0,
      late: way === "worker" ? 0 : 25,
      p50_ns,
      p99_ns: 2 * p50_ns,
      cpu_ns: 1,
    }),
  );
const linesOf = (kind: string, threadsNs: number) =>
  [1, 2, 3].flatMap((round) => [
    line(kind, "worker", round, 400_000),
    line(kind, "1_sleeping", round, threadsNs),
  ]);

describe("divided sends in the report", () => {
  it("compares round by round with the worker alone", () => {
    const [table] = dividedSection(linesOf("divided_send", 100_000)).tables;
    expect(table?.rows).toEqual([
      ["200", "worker alone", "400", "800", "1.00 (1.00–1.00)", "1.00", ""],
      ["200", "and one thread that sleeps", "100", "200", "0.250 (0.250–0.250)", "0.250", "25.0 %"],
    ]);
  });

  it.each([
    [100_000, "met"],
    [150_000, "missed"],
  ])("judges the last of 200 destinations at %i ns: %s", (ns, verdict) => {
    const { findings } = dividedSection([
      ...linesOf("divided_send", ns),
      ...linesOf("divided_relay", ns),
    ]);
    expect(findings.map((found) => found.verdict)).toEqual([verdict, verdict]);
  });

  it("has no table and no finding without measurements, and counts lost shreds", () => {
    expect(dividedSection([])).toMatchObject({ tables: [], findings: [] });
    expect(dividedSection(linesOf("divided_relay", 1)).notes.at(-1)).toContain("left out: 6.");
  });
});
