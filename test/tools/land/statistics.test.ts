// Statistics of the landing benchmark: over 100 seeded runs, the intervals contain the truth and nothing is claimed
// that is not there.

import { describe, expect, it } from "vitest";
import { landReport } from "../../../src/tools/land/land-report.ts";
import type { Estimate } from "../../../src/tools/land/land-statistics.ts";
import { landVerdict } from "../../../src/tools/land/land-verdict.ts";
import { isOutside } from "../../../src/tools/report/bootstrap.ts";
import { seedsOfRun } from "../../support/vitest/test-scope.ts";
import { quantileNs, type SimulatedSender, simulatedRun } from "./simulated-runs.ts";

const senders: readonly SimulatedSender[] = [
  { delayMs: 200, jitterMs: 80, drop: 0.02, responseMs: 5 },
  { delayMs: 320, jitterMs: 120, drop: 0.1, responseMs: 20 },
  { delayMs: 500, jitterMs: 80, drop: 0.35, responseMs: 60 },
];
const seeds = Array.from({ length: 100 }, (_, i) => 1000 + i);

/** Number of intervals that contain the truth, and of all that exist. */
class Coverage {
  readonly counts = new Map<string, { contained: number; of: number }>();

  note(name: string, { interval }: Estimate, truth: number): void {
    if (!interval) return;
    const count = this.counts.get(name) ?? { contained: 0, of: 0 };
    this.counts.set(name, count);
    count.of++;
    if (!isOutside(interval, truth)) count.contained++;
  }
}

function coverageOf(rounds: number): Coverage {
  const coverage = new Coverage();
  for (const seed of seeds) {
    const report = landReport(simulatedRun(seed, senders, rounds), true);
    for (const [i, sender] of senders.entries()) {
      const own = report.senders[i];
      if (!own) throw new RangeError("expected a report of each sender");
      coverage.note(`${i} landed`, own.landedShare, 1 - sender.drop);
      for (const [name, share] of [
        ["p50", 0.5],
        ["p90", 0.9],
        ["p99", 0.99],
      ] as const) {
        coverage.note(`${i} time ${name}`, own.timeNs[name], quantileNs(sender, share));
        const { responseMs } = sender;
        const response = quantileNs(
          { ...sender, delayMs: responseMs, jitterMs: responseMs },
          share,
        );
        coverage.note(`${i} response ${name}`, own.responseNs[name], response);
      }
    }
    const [fast, slow] = senders;
    const [pair] = report.pairs;
    if (fast && slow && pair) {
      coverage.note("landed difference", pair.landedDifference, slow.drop - fast.drop);
    }
  }
  return coverage;
}

describe("intervals", { timeout: 180_000 }, () => {
  it.each(seedsOfRun([60, 120]))(
    "contain the truth in at least 95 of 100 runs with %i rounds",
    (rounds) => {
      const { counts } = coverageOf(rounds);
      const all = [...counts.values()];
      const share = (of: readonly { contained: number; of: number }[]) =>
        of.reduce((sum, each) => sum + each.contained, 0) /
        of.reduce((sum, each) => sum + each.of, 0);
      expect(share(all)).toBeGreaterThanOrEqual(0.95);
      // Fewer than 90 of 100 at 95 % have a probability of 1 %.
      const poor = [...counts].filter(([, { contained, of }]) => contained < 0.9 * of);
      expect(poor).toEqual([]);
      expect(counts.get("0 time p50")?.of).toBe(100);
      expect(counts.get("0 time p90")?.of).toBe(100);
    },
  );
});

describe("verdicts", { timeout: 180_000 }, () => {
  it("claim no difference in at least 95 of 100 runs without one", () => {
    const [first] = senders;
    const equal = Array.from({ length: 3 }, () => ({ ...(first ?? never()), drop: 0.1 }));
    const silent = seeds.filter((seed) => {
      const report = landReport(simulatedRun(seed, equal, 60), true);
      const claims = report.pairs.flatMap((pair) => [
        pair.isTimeSignificant,
        pair.isLandedSignificant,
      ]);
      expect(claims).not.toContain(null);
      const verdict = landVerdict(report).join("\n");
      expect(verdict.match(/no difference beyond chance/g)?.length ?? 0).toBe(
        claims.filter((claim) => claim === false).length,
      );
      return !claims.includes(true);
    });
    expect(silent.length).toBeGreaterThanOrEqual(95);
  });

  it("claim the differences that are there", () => {
    const reports = seeds.slice(0, 20).map((seed) => landReport(simulatedRun(seed, senders), true));
    const times = reports.filter(({ pairs }) => pairs.every((pair) => pair.isTimeSignificant));
    expect(times.length).toBe(20);
    const shares = reports.filter(({ pairs }) => pairs[1]?.isLandedSignificant);
    expect(shares.length).toBeGreaterThanOrEqual(18);
    const reversed = landReport(simulatedRun(1, senders.toReversed()), true);
    const verdict = landVerdict(reversed).join("\n");
    expect(verdict).toMatch(
      /^sender-2 landed more often than sender-0 by [\d.]+ percentage points/m,
    );
    expect(verdict).toMatch(/sender-0 was before sender-2 in 0\.0 % .* behind in the median/);
  });
});

function never(): never {
  throw new RangeError("expected a sender");
}
