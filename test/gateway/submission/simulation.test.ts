// The pipeline under simulated faults: every accepted transaction has exactly one, true end. The
// test name contains the seed.

import { describe, expect, it } from "vitest";
import { accounts, factsOf, World } from "./world.ts";

function submitSomething(world: World): void {
  const { random } = world;
  const what = random.share();
  if (what < 0.5) {
    world.submit([world.fresh()]);
  } else if (what < 0.65) {
    const bundle = Array.from({ length: 1 + random.below(4) }, () => world.fresh());
    world.submit(bundle, { isBundle: true, method: "sendBundle" });
  } else if (what < 0.75) {
    submitSomePair(world);
  } else if (world.asked.length > 0) {
    // The same bytes again: by the same or another account, with the same or another method.
    const { request } =
      world.asked[world.asked.length - 1 - random.below(Math.min(10, world.asked.length))] ?? {};
    if (!request) return;
    const isSame = random.happens(0.6);
    if (request.method === "sendIdeal") world.submit(request.transactions);
    else world.submit(request.transactions, isSame ? request : { isBundle: request.isBundle });
  }
}

/** A new pair, an earlier one, one with the nonce of another, or one transaction of a pair. */
function submitSomePair(world: World): void {
  const { random } = world;
  const accountId = accounts[random.below(2)] ?? "";
  const last = world.pairs.at(-1 - random.below(Math.min(4, world.pairs.length)));
  const what = random.share();
  if (!last || what < 0.5) {
    world.submitPair(world.noncePair(), accountId);
    return;
  }
  const [first, second] = last.map(factsOf);
  if (!first?.nonce || !second) return;
  const { lifetime, nonce } = first;
  if (what < 0.7) world.submitPair([second, first], last[0].request.accountId);
  else if (what < 0.8) world.submitPair([first, second], accountId);
  else if (what < 0.9) world.submit([second], { accountId: last[0].request.accountId });
  else world.submitPair(world.pairLike({ lifetime, nonceAccount: nonce.account }), accountId);
}

async function run(seed: number): Promise<World> {
  const world = new World(seed);
  const { random, clock } = world;
  await clock.advance(3_000);
  for (let step = 0; step < 60; step++) {
    const count = random.below(4);
    for (let i = 0; i < count; i++) submitSomething(world);
    for (const route of world.routes) if (random.happens(0.05)) route.isUp = !route.isUp;
    await clock.advance(random.below(700));
    if (random.happens(0.06)) await world.restart();
  }
  world.calm();
  // Nonce transactions that never land stay open: the owner advances the nonce of the last of each
  // pair.
  await clock.advance(30_000);
  world.advanceNonces();
  await clock.advance(60_000);
  return world;
}

const seeds = Array.from(
  { length: Number(process.env["SHREDWAY_SIMULATION_SEEDS"] ?? 25) },
  (_, i) => i + 1,
);

describe("the pipeline", () => {
  it.each(seeds)("reports one true end for each transaction: seed %i", async (seed) => {
    const world = await run(seed);
    world.checkEnds();
    world.checkPairs();
    expect([...world.violations, ...world.store.violations]).toEqual([]);
    const { open, held, writer: store, observer: watch } = world.pipeline.snapshot();
    expect({ open, held, dirty: store.dirty, lifetimes: watch.lifetimes }).toEqual({
      open: 0,
      held: 0,
      dirty: 0,
      lifetimes: 0,
    });
    expect([...world.store.records.values()].filter(({ state }) => state === "open")).toEqual([]);
  });
});
