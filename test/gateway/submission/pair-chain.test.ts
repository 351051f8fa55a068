// Pairs on the real virtual machine: at most one of two lands, for any behaviour of routes, leaders
// and forks.
//
// Routes lose, delay, duplicate or refuse transactions; slots are skipped, blocks abandoned, and
// some transactions fail. The test name contains the seed; SHREDWAY_PAIR_SEEDS adds seeds.

import { describe, expect, it } from "vitest";
import { carol, dave } from "../../support/transactions/chain.ts";
import { type Bias, type Pair, PairWorld, tooMuch } from "./pair-world.ts";

const biases: readonly Bias[] = ["any", "any", "any", "first", "second", "none"];

function drawPair(world: PairWorld, nonceAccount: string): Pair {
  const { random } = world;
  const lamports = () => (random.happens(0.2) ? tooMuch : 1n + BigInt(random.below(1_000)));
  const first = world.facts(nonceAccount, carol, lamports());
  const second = world.facts(nonceAccount, dave, lamports());
  return {
    facts: random.happens(0.5) ? [first, second] : [second, first],
    nonceAccount,
    bias: biases[random.below(biases.length)] ?? "any",
    hasStranger: random.happens(0.15),
  };
}

async function runOf(seed: number): Promise<PairWorld> {
  const world = await PairWorld.open(seed, 6);
  const { random, clock, run } = world;
  run.chain.faults.skipShare = 0.1;
  run.chain.faults.refuseShare = 0.1;
  const waiting: Pair[] = [];
  for (const account of world.accounts) waiting.push(drawPair(world, account));
  for (let step = 0; step < 24; step++) {
    const pair = waiting[0];
    if (pair && random.happens(0.5)) {
      if (!world.pairs.includes(pair)) world.pairs.push(pair);
      if (await world.submit(pair)) waiting.shift();
    }
    const other = world.pairs[random.below(world.pairs.length + 1)];
    if (other?.hasStranger && random.happens(0.5)) world.advanceOtherwise(other.nonceAccount);
    if (other && random.happens(0.1)) await world.submit(other); // resent by its owner
    if (random.happens(0.15)) run.chain.faults.forkNext(1 + random.below(3));
    await clock.advance(random.below(900));
  }
  world.isCalm = true;
  run.chain.faults.skipShare = 0;
  run.chain.faults.refuseShare = 0;
  run.chain.faults.forkNext(0);
  for (const pair of waiting) {
    if (!world.pairs.includes(pair)) world.pairs.push(pair);
    await world.submit(pair);
  }
  await world.settled();
  return world;
}

const seeds = Array.from(
  { length: Number(process.env["SHREDWAY_PAIR_SEEDS"] ?? 5) },
  (_, i) => i + 1,
);

describe("every pair", () => {
  it.each(seeds)("lands at most once, and both statuses are true: seed %i", async (seed) => {
    const world = await runOf(seed);
    expect(world.pairs.length).toBe(6);
    for (const pair of world.pairs) {
      const outcome = await world.check(pair);
      const isLanded = outcome.startsWith("landed");
      if (pair.bias === "none") expect(isLanded).toBe(false);
      else if (!pair.hasStranger) expect(isLanded).toBe(true);
    }
    expect(world.violations).toEqual([]);
    expect(world.pipeline.snapshot().open).toBe(0);
  });
});

describe("a pair on an idle chain", () => {
  async function quiet(): Promise<PairWorld> {
    const world = await PairWorld.open(77, 1);
    world.isCalm = true;
    return world;
  }

  function pairOf(world: PairWorld, amounts: readonly [bigint, bigint], bias: Bias = "any"): Pair {
    const [nonceAccount = ""] = world.accounts;
    const facts = [
      world.facts(nonceAccount, carol, amounts[0]),
      world.facts(nonceAccount, dave, amounts[1]),
    ] as const;
    const pair: Pair = { facts, nonceAccount, bias, hasStranger: false };
    world.pairs.push(pair);
    return pair;
  }

  it.each([
    ["both are good", [5n, 6n], "landed"],
    ["it fails", [tooMuch, 6n], "landed_failed"],
    ["the second would fail", [5n, tooMuch], "landed"],
  ] as const)(
    "lands with its first transaction if both reach one leader: %s",
    async (_, amounts, state) => {
      const world = await quiet();
      const pair = pairOf(world, amounts);
      const [first, second] = pair.facts;
      for (const { wire } of pair.facts) world.run.chain.send(wire);
      expect(await world.submit(pair)).toBe(true);
      while (!world.run.chain.status(first.signature)) await world.clock.advance(50);
      // The other one reached the same leader in the same slot and was refused.
      expect(world.run.dropped.get(second.signature)).toBe("BlockhashNotFound");
      expect(await world.settled()).toBe(true);
      expect(await world.check(pair)).toBe(state);
      expect([(await world.status(first))?.state, world.violations]).toEqual([state, []]);
      const executed = world.run
        .eventsOf("executed")
        .map(({ transaction }) => transaction.signature);
      expect(executed).toContain(first.signature);
      expect(executed).not.toContain(second.signature);
    },
  );

  it("is superseded when another transaction advances the nonce", async () => {
    const world = await quiet();
    const pair = pairOf(world, [5n, 6n], "none");
    expect(await world.submit(pair)).toBe(true);
    world.advanceOtherwise(pair.nonceAccount);
    expect(await world.settled()).toBe(true);
    expect([await world.check(pair), world.violations]).toEqual(["advanced", []]);
    expect(world.spent).toEqual([]); // by no transaction of the pipeline
  });

  it("expires if nothing arrives", async () => {
    const world = await quiet();
    const pair = pairOf(world, [5n, 6n], "none");
    expect(await world.submit(pair)).toBe(true);
    expect(await world.settled()).toBe(true);
    expect([await world.check(pair), world.violations]).toEqual(["expired", []]);
  });

  it("lets the other one land after an abandoned fork", async () => {
    const world = await quiet();
    const { clock, run } = world;
    const pair = pairOf(world, [5n, 6n]);
    const [first, second] = pair.facts;
    run.chain.faults.refuses = (signature) => signature === second.signature;
    expect(await world.submit(pair)).toBe(true);
    while (!run.chain.status(first.signature)) await clock.advance(50);
    run.chain.faults.forkNext(3);
    run.chain.faults.refuses = (signature) => signature === first.signature;
    while (run.chain.status(first.signature)) await clock.advance(50);
    expect(await world.settled()).toBe(true);
    expect([await world.check(pair), world.violations]).toEqual(["landed", []]);
    expect((await world.status(second))?.state).toBe("landed");
    expect((await world.status(first))?.events.map(({ kind }) => kind)).toContain("seen");
  });
});
