import { describe, expect, it } from "vitest";
import { verdictNames } from "../../src/relay/data-plane/names.ts";
import type { RelaySnapshot } from "../../src/relay/data-plane/snapshot.ts";
import { TrafficCheck } from "../../src/relay/traffic-check.ts";

type Verdicts = RelaySnapshot["verdicts"];

class Traffic {
  readonly check = new TrafficCheck();
  #total: Verdicts = noPackets;

  /** More packets with these verdicts; returns the new problem. */
  arrive(verdicts: Partial<Verdicts>): string | null {
    const next = { ...this.#total };
    for (const name of verdictNames) next[name] += verdicts[name] ?? 0n;
    this.#total = next;
    return this.check.update({ verdicts: next }, 50093);
  }
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every name has a value
const noPackets = Object.fromEntries(verdictNames.map((name) => [name, 0n])) as Verdicts;

describe("the traffic check", () => {
  it("reports a wrong shred version once, until the traffic is right again", () => {
    const traffic = new Traffic();
    expect(traffic.arrive({ wrong_version: 64n })).toMatch(
      /^MOST SHREDS ARE DROPPED: 64 of the last 64 packets .* relay.shredVersion 50093\./,
    );
    expect(traffic.arrive({ wrong_version: 64n })).toBeNull();
    expect(traffic.check.problem).toContain("64 of the last 64");
    expect(traffic.arrive({ first: 64n, wrong_version: 10n, unknown_source: 500n })).toBeNull();
    expect(traffic.check.problem).toBeNull();
    expect(traffic.arrive({ wrong_version: 64n })).toContain("MOST SHREDS");
  });

  it("reports that all packets come from unlisted addresses", () => {
    const traffic = new Traffic();
    expect(traffic.arrive({ unknown_source: 40n })).toContain("relay.sources does not contain");
    expect(traffic.arrive({ unknown_source: 40n, first: 1n })).toBeNull();
    expect(traffic.check.problem).toBeNull();
  });

  it("adds up a few packets, and forgets a problem in silence", () => {
    const traffic = new Traffic();
    expect([1, 2, 3].map(() => traffic.arrive({ wrong_version: 10n }))).toEqual([null, null, null]);
    expect(traffic.arrive({ wrong_version: 10n })).toContain("40 of the last 40");
    expect(traffic.arrive({})).toBeNull();
    expect(traffic.check.problem).toBeNull();
  });
});
