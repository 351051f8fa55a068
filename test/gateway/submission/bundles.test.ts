// Bundles whose transactions the account submits again: their status, before and after a restart.

import { expect, it } from "vitest";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { bundleIdOf } from "../../../src/gateway/submission/tracked-transaction.ts";
import { Harness } from "./harness.ts";

const builder = [
  { kind: "block-builder" as const, modes: ["transaction" as const, "bundle" as const] },
];

const idOf = (facts: readonly TransactionFacts[]) =>
  bundleIdOf(facts.map(({ signature }) => signature));

async function submitBundle(
  harness: Harness,
  facts: readonly [TransactionFacts, ...TransactionFacts[]],
) {
  const [first] = facts;
  const request = harness.request(first);
  const submitted = harness.pipeline.submit({
    ...request,
    method: "sendBundle",
    transactions: facts,
    isBundle: true,
  });
  await harness.clock.advance(100);
  await submitted;
}

async function signaturesIn(harness: Harness, id: string): Promise<string[] | undefined> {
  const found = harness.pipeline.bundles("ann", [id]);
  await harness.clock.advance(100);
  const [bundle] = await found;
  return bundle?.transactions.map(({ signature }) => signature);
}

/** Another process with the same store. */
async function restarted(before: Harness, facts: readonly TransactionFacts[]): Promise<Harness> {
  const harness = new Harness({}, { routes: builder });
  harness.readable.push(...facts);
  await before.clock.advance(2_000);
  for (const [key, record] of before.store.records) harness.store.records.set(key, record);
  await harness.pipeline.restore();
  return harness;
}

it("stay known after one of their transactions was submitted on its own", async () => {
  const harness = new Harness({}, { routes: builder });
  const facts = [harness.facts(), harness.facts()] as const;
  await submitBundle(harness, facts);
  expect(await harness.submit(facts[0])).toBe("accepted");
  const signatures = facts.map(({ signature }) => signature);
  expect(await signaturesIn(harness, idOf(facts))).toEqual(signatures);
  const next = await restarted(harness, facts);
  expect(await signaturesIn(next, idOf(facts))).toEqual(signatures);
  // The single transaction goes on alone; the other one must not be sent without it.
  await next.clock.advance(10_000);
  const sent = next.outbound.map(({ transactions }) =>
    transactions.map(({ signature }) => signature),
  );
  expect(new Set(sent.flat())).toEqual(new Set([facts[0].signature]));
});

it("are replaced by a newer bundle with the same transaction", async () => {
  const harness = new Harness({}, { routes: builder });
  const [one, other] = [harness.facts(), harness.facts()];
  await submitBundle(harness, [one]);
  await submitBundle(harness, [one, other]);
  expect(await signaturesIn(harness, idOf([one, other]))).toEqual([one.signature, other.signature]);
  expect(await signaturesIn(harness, idOf([one]))).toBeUndefined();
});

it("stay complete while another bundle shares one of their transactions", async () => {
  const harness = new Harness({}, { routes: builder });
  const [target, one, other] = [harness.facts(), harness.facts(), harness.facts()];
  await submitBundle(harness, [target, one]);
  await submitBundle(harness, [target, other]);
  for (const facts of [
    [target, one],
    [target, other],
  ]) {
    const signatures = facts.map(({ signature }) => signature);
    expect(await signaturesIn(harness, idOf(facts))).toEqual(signatures);
  }
  await submitBundle(harness, [one, other]); // nothing belongs to the first bundle any more
  expect(await signaturesIn(harness, idOf([target, one]))).toBeUndefined();
});

it("are unknown after a restart if a newer bundle has one of their transactions, because a part may have landed alone", async () => {
  const harness = new Harness({}, { routes: builder });
  const [target, one, other] = [harness.facts(), harness.facts(), harness.facts()];
  await submitBundle(harness, [target, one]);
  await submitBundle(harness, [target, other]);
  const next = await restarted(harness, [target, one, other]);
  expect(await signaturesIn(next, idOf([target, one]))).toBeUndefined();
  const newer = [target.signature, other.signature];
  expect(await signaturesIn(next, idOf([target, other]))).toEqual(newer);
});

it("are not sent any more after one of their transactions landed in another bundle", async () => {
  const harness = new Harness({}, { routes: builder });
  const [target, one, other] = [harness.facts(), harness.facts(), harness.facts()];
  await submitBundle(harness, [target, one]);
  await submitBundle(harness, [target, other]);
  for (const { signature } of [target, other]) {
    harness.answers.set(signature, { slot: 9n, err: null, commitment: "confirmed" });
  }
  await harness.clock.advance(5_000);
  const before = harness.outbound.length;
  await harness.clock.advance(30_000);
  expect(harness.outbound.length).toBe(before);
  expect(await harness.state(one)).toBe("open null");
});
