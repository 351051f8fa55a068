// The outcome observer's questions to the node, on a pipeline.

import { expect, it } from "vitest";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { Harness } from "./harness.ts";

it("asks no more about a transaction whose call was refused during a question", async () => {
  const harness = new Harness();
  harness.store.failShare = 1;
  harness.store.writeMs = 3_000;
  harness.leaders = { slot: 4n, current: "bad", next: "B" };
  const facts = harness.facts();
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  harness.signatureStatuses = (signatures) => {
    asked.push(...signatures);
    return new Promise((resolve) => {
      answers.push(() => resolve(signatures.map(() => null)));
    });
  };
  const call = harness.pipeline
    .submit(harness.request(facts, { mevProtect: true })) // held, so that nothing has left
    .catch((error: unknown) => String(error));
  await harness.clock.advance(4_000);
  expect(await call).toContain("was not sent");
  expect(asked).toEqual([facts.signature]);
  expect(harness.pipeline.snapshot().open).toBe(0);
  harness.store.failShare = 0;
  harness.store.writeMs = 0;
  harness.leaders = { slot: 4n, current: "A", next: "B" };
  await harness.clock.advance(1_000); // the store is tried once a second
  const other = harness.facts();
  expect(await harness.submit(other)).toBe("accepted"); // the timer runs on
  for (let i = 0; i < 60; i++) {
    for (const answer of answers.splice(0)) answer();
    await harness.clock.advance(1_000);
  }
  expect(asked.filter((signature) => signature === facts.signature)).toHaveLength(1);
  expect(asked.filter((signature) => signature === other.signature).length).toBeGreaterThan(10);
});

const landed = { slot: 9n, err: null, commitment: "finalized" } as const;

/** A node whose cache has forgotten these transactions; its history has them. */
function forget(harness: Harness, facts: readonly TransactionFacts[]): void {
  const forgotten = new Set(facts.map(({ signature }) => signature));
  harness.signatureStatuses = async (signatures, search) =>
    signatures.map((signature) =>
      forgotten.has(signature) && search?.searchHistory ? landed : null,
    );
  harness.isBlockhashExpired = true;
}

it("finds a landing in the node's history after the service was down", async () => {
  const before = new Harness();
  const facts = before.facts();
  await before.submit(facts);
  await before.clock.advance(2_000);
  const after = new Harness({}, { seed: 4 });
  after.readable.push(facts);
  for (const [key, record] of before.store.records) after.store.records.set(key, record);
  await after.clock.advance(300_000);
  forget(after, [facts]);
  await after.pipeline.restore();
  await after.clock.advance(60_000);
  expect(await after.state(facts)).toBe("landed finalized");
});

it("finds a landing in the node's history after the node was not available", async () => {
  const harness = new Harness();
  const [facts, other] = [harness.facts(), harness.facts()];
  await harness.submit(facts);
  await harness.submit(other);
  harness.isNodeFailing = true;
  harness.observe(facts, 9n);
  await harness.clock.advance(300_000);
  forget(harness, [facts]);
  await harness.clock.advance(60_000);
  expect(await harness.state(facts)).toBe("landed finalized");
  expect(await harness.state(other)).toBe("expired blockhash_expired");
  const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
  expect(status?.events.map(({ kind }) => kind)).not.toContain("withdrawn");
});

it.each([true, false])(
  "finds a landing long before the call (durable nonce: %s)",
  async (hasNonce) => {
    const harness = new Harness();
    const facts = harness.facts(hasNonce);
    forget(harness, [facts]);
    await harness.submit(facts);
    await harness.clock.advance(60_000);
    expect(await harness.state(facts)).toBe("landed finalized");
  },
);

/** Numbers of signatures in the searches of the history so far, for a node that knows nothing. */
function searchesOf(harness: Harness): number[] {
  const searches: number[] = [];
  harness.signatureStatuses = async (signatures, search) => {
    if (search?.searchHistory) searches.push(signatures.length);
    return signatures.map(() => null);
  };
  return searches;
}

it("searches the history once for transactions whose blockhash was over at the call", async () => {
  const harness = new Harness();
  const searches = searchesOf(harness);
  const [facts, other] = [harness.facts(), harness.facts()];
  harness.isBlockhashExpired = true;
  await harness.submit(facts);
  await harness.submit(other);
  await harness.clock.advance(60_000);
  expect(await harness.state(facts)).toBe("expired blockhash_expired");
  expect(await harness.state(other)).toBe("expired blockhash_expired");
  expect(searches.reduce((sum, count) => sum + count, 0)).toBe(2);
});

it("does not search the history if the blockhash was valid and the node answers", async () => {
  const harness = new Harness();
  const searches = searchesOf(harness);
  const facts = harness.facts();
  await harness.submit(facts);
  await harness.clock.advance(30_000);
  harness.observe(facts, 9n); // in a block that is abandoned
  await harness.clock.advance(10_000);
  harness.isBlockhashExpired = true;
  await harness.clock.advance(60_000);
  expect(await harness.state(facts)).toBe("expired blockhash_expired");
  expect(searches).toEqual([]);
});
