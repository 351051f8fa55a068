// The pipeline under simulated faults: every accepted transaction has exactly one, true end. The
// test name contains the seed.

import { describe, expect, it } from "vitest";
import { accounts, factsOf, Simulation } from "./simulation.ts";

function submitSomething(simulation: Simulation): void {
  const { random } = simulation;
  const what = random.share();
  if (what < 0.5) {
    simulation.submit([simulation.fresh()]);
  } else if (what < 0.65) {
    const bundle = Array.from({ length: 1 + random.below(4) }, () => simulation.fresh());
    simulation.submit(bundle, { isBundle: true, method: "sendBundle" });
  } else if (what < 0.75) {
    submitSomePair(simulation);
  } else if (simulation.requests.length > 0) {
    // The same bytes again: by the same or another account, with the same or another method.
    const { request } =
      simulation.requests[
        simulation.requests.length - 1 - random.below(Math.min(10, simulation.requests.length))
      ] ?? {};
    if (!request) return;
    const isSame = random.happens(0.6);
    if (request.method === "sendIdeal") simulation.submit(request.transactions);
    else simulation.submit(request.transactions, isSame ? request : { isBundle: request.isBundle });
  }
}

/** A new pair, an earlier one, one with the nonce of another, or one transaction of a pair. */
function submitSomePair(simulation: Simulation): void {
  const { random } = simulation;
  const accountId = accounts[random.below(2)] ?? "";
  const last = simulation.pairs.at(-1 - random.below(Math.min(4, simulation.pairs.length)));
  const what = random.share();
  if (!last || what < 0.5) {
    simulation.submitPair(simulation.noncePair(), accountId);
    return;
  }
  const [first, second] = last.map(factsOf);
  if (!first?.nonce || !second) return;
  const { lifetime, nonce } = first;
  if (what < 0.7) simulation.submitPair([second, first], last[0].request.accountId);
  else if (what < 0.8) simulation.submitPair([first, second], accountId);
  else if (what < 0.9) simulation.submit([second], { accountId: last[0].request.accountId });
  else
    simulation.submitPair(
      simulation.pairLike({ lifetime, nonceAccount: nonce.account }),
      accountId,
    );
}

async function run(seed: number): Promise<Simulation> {
  const simulation = new Simulation(seed);
  const { random, clock } = simulation;
  await clock.advance(3_000);
  for (let step = 0; step < 60; step++) {
    const count = random.below(4);
    for (let i = 0; i < count; i++) submitSomething(simulation);
    for (const route of simulation.routes) if (random.happens(0.05)) route.isUp = !route.isUp;
    await clock.advance(random.below(700));
    if (random.happens(0.06)) await simulation.restart();
  }
  simulation.calm();
  // Nonce transactions that never land stay open: the owner advances the nonce of the last of each
  // pair.
  await clock.advance(30_000);
  simulation.advanceNonces();
  await clock.advance(60_000);
  return simulation;
}

const seeds = Array.from(
  { length: Number(process.env["SHREDWAY_SIMULATION_SEEDS"] ?? 25) },
  (_, i) => i + 1,
);

describe("the pipeline", () => {
  it.each(seeds)("reports one true end for each transaction: seed %i", async (seed) => {
    const simulation = await run(seed);
    simulation.checkEnds();
    simulation.checkPairs();
    expect([...simulation.violations, ...simulation.store.violations]).toEqual([]);
    const { open, held, writer: store, observer: watch } = simulation.pipeline.snapshot();
    expect({ open, held, dirty: store.dirty, lifetimes: watch.lifetimes }).toEqual({
      open: 0,
      held: 0,
      dirty: 0,
      lifetimes: 0,
    });
    expect([...simulation.store.records.values()].filter(({ state }) => state === "open")).toEqual(
      [],
    );
  });
});
