// Pairs on the real virtual machine: at most one of two lands, for any behaviour of routes, leaders
// and forks.
//
// Routes lose, delay, duplicate or refuse transactions; slots are skipped, blocks abandoned, and
// some transactions fail. The test name contains the seed; SHREDWAY_PAIR_SEEDS adds seeds.

import { describe, expect, it } from "vitest";
import { carol, dave } from "../../support/transactions/chain.ts";
import { type Bias, type Pair, PairSimulation, tooMuch } from "./pair-simulation.ts";

const biases: readonly Bias[] = ["any", "any", "any", "first", "second", "none"];

function drawPair(simulation: PairSimulation, nonceAccount: string): Pair {
  const { random } = simulation;
  const lamports = () => (random.happens(0.2) ? tooMuch : 1n + BigInt(random.below(1_000)));
  const first = simulation.facts(nonceAccount, carol, lamports());
  const second = simulation.facts(nonceAccount, dave, lamports());
  return {
    facts: random.happens(0.5) ? [first, second] : [second, first],
    nonceAccount,
    bias: biases[random.below(biases.length)] ?? "any",
    hasForeignTransaction: random.happens(0.15),
  };
}

async function runOf(seed: number): Promise<PairSimulation> {
  const simulation = await PairSimulation.open(seed, 6);
  const { random, clock, run } = simulation;
  run.chain.faults.skipShare = 0.1;
  run.chain.faults.refuseShare = 0.1;
  const waiting: Pair[] = [];
  for (const account of simulation.accounts) waiting.push(drawPair(simulation, account));
  for (let step = 0; step < 24; step++) {
    const pair = waiting[0];
    if (pair && random.happens(0.5)) {
      if (!simulation.pairs.includes(pair)) simulation.pairs.push(pair);
      if (await simulation.submit(pair)) waiting.shift();
    }
    const other = simulation.pairs[random.below(simulation.pairs.length + 1)];
    if (other?.hasForeignTransaction && random.happens(0.5))
      simulation.advanceOtherwise(other.nonceAccount);
    if (other && random.happens(0.1)) await simulation.submit(other); // resent by its owner
    if (random.happens(0.15)) run.chain.faults.forkNext(1 + random.below(3));
    await clock.advance(random.below(900));
  }
  simulation.isCalm = true;
  run.chain.faults.skipShare = 0;
  run.chain.faults.refuseShare = 0;
  run.chain.faults.forkNext(0);
  for (const pair of waiting) {
    if (!simulation.pairs.includes(pair)) simulation.pairs.push(pair);
    await simulation.submit(pair);
  }
  await simulation.settled();
  return simulation;
}

const seeds = Array.from(
  { length: Number(process.env["SHREDWAY_PAIR_SEEDS"] ?? 5) },
  (_, i) => i + 1,
);

describe("every pair", () => {
  it.each(seeds)("lands at most once, and both statuses are true: seed %i", async (seed) => {
    const simulation = await runOf(seed);
    expect(simulation.pairs.length).toBe(6);
    for (const pair of simulation.pairs) {
      const outcome = await simulation.check(pair);
      const isLanded = outcome.startsWith("landed");
      if (pair.bias === "none") expect(isLanded).toBe(false);
      else if (!pair.hasForeignTransaction) expect(isLanded).toBe(true);
    }
    expect(simulation.violations).toEqual([]);
    expect(simulation.pipeline.snapshot().open).toBe(0);
  });
});

describe("a pair on an idle chain", () => {
  async function quiet(): Promise<PairSimulation> {
    const simulation = await PairSimulation.open(77, 1);
    simulation.isCalm = true;
    return simulation;
  }

  function pairOf(
    simulation: PairSimulation,
    amounts: readonly [bigint, bigint],
    bias: Bias = "any",
  ): Pair {
    const [nonceAccount = ""] = simulation.accounts;
    const facts = [
      simulation.facts(nonceAccount, carol, amounts[0]),
      simulation.facts(nonceAccount, dave, amounts[1]),
    ] as const;
    const pair: Pair = { facts, nonceAccount, bias, hasForeignTransaction: false };
    simulation.pairs.push(pair);
    return pair;
  }

  it.each([
    ["both are good", [5n, 6n], "landed"],
    ["it fails", [tooMuch, 6n], "landed_failed"],
    ["the second would fail", [5n, tooMuch], "landed"],
  ] as const)(
    "lands with its first transaction if both reach one leader: %s",
    async (_, amounts, state) => {
      const simulation = await quiet();
      const pair = pairOf(simulation, amounts);
      const [first, second] = pair.facts;
      for (const { wire } of pair.facts) simulation.run.chain.send(wire);
      expect(await simulation.submit(pair)).toBe(true);
      while (!simulation.run.chain.status(first.signature)) await simulation.clock.advance(50);
      // The other one reached the same leader in the same slot and was refused.
      expect(simulation.run.dropped.get(second.signature)).toBe("BlockhashNotFound");
      expect(await simulation.settled()).toBe(true);
      expect(await simulation.check(pair)).toBe(state);
      expect([(await simulation.status(first))?.state, simulation.violations]).toEqual([state, []]);
      const executed = simulation.run
        .eventsOf("executed")
        .map(({ transaction }) => transaction.signature);
      expect(executed).toContain(first.signature);
      expect(executed).not.toContain(second.signature);
    },
  );

  it("is superseded when another transaction advances the nonce", async () => {
    const simulation = await quiet();
    const pair = pairOf(simulation, [5n, 6n], "none");
    expect(await simulation.submit(pair)).toBe(true);
    simulation.advanceOtherwise(pair.nonceAccount);
    expect(await simulation.settled()).toBe(true);
    expect([await simulation.check(pair), simulation.violations]).toEqual(["advanced", []]);
    expect(simulation.spent).toEqual([]); // by no transaction of the pipeline
  });

  it("expires if nothing arrives", async () => {
    const simulation = await quiet();
    const pair = pairOf(simulation, [5n, 6n], "none");
    expect(await simulation.submit(pair)).toBe(true);
    expect(await simulation.settled()).toBe(true);
    expect([await simulation.check(pair), simulation.violations]).toEqual(["expired", []]);
  });

  it("lets the other one land after an abandoned fork", async () => {
    const simulation = await quiet();
    const { clock, run } = simulation;
    const pair = pairOf(simulation, [5n, 6n]);
    const [first, second] = pair.facts;
    run.chain.faults.refuses = (signature) => signature === second.signature;
    expect(await simulation.submit(pair)).toBe(true);
    while (!run.chain.status(first.signature)) await clock.advance(50);
    run.chain.faults.forkNext(3);
    run.chain.faults.refuses = (signature) => signature === first.signature;
    while (run.chain.status(first.signature)) await clock.advance(50);
    expect(await simulation.settled()).toBe(true);
    expect([await simulation.check(pair), simulation.violations]).toEqual(["landed", []]);
    expect((await simulation.status(second))?.state).toBe("landed");
    expect((await simulation.status(first))?.events.map(({ kind }) => kind)).toContain("seen");
  });
});
