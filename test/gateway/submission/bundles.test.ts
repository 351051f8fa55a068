// Bundles whose transactions the account submits again: their status, before and after a restart.

import { expect, it } from "vitest";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { bundleIdOf } from "../../../src/gateway/submission/tracked-transaction.ts";
import type { TimelineEvent } from "../../../src/gateway/submission/types.ts";
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
  await Promise.all([submitted, harness.clock.advance(100)]);
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
  before.store.copyTo(harness.store);
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

const signaturesOf = (facts: readonly TransactionFacts[]) =>
  facts.map(({ signature }) => signature);

const protectedOptions = { mevProtect: false, swqosOnly: false, revertProtection: true };

it.each([
  { method: "sendBatch", options: {} },
  { method: "sendAlt", options: { enableFallback: true } },
  { method: "sendTransaction", options: protectedOptions },
] as const)(
  "leave what $method sends on its own alone after a restart",
  async ({ method, options }) => {
    const harness = new Harness({}, { routes: builder });
    const facts = [harness.facts(), harness.facts()] as const;
    await submitBundle(harness, facts);
    const request = harness.request(facts[0]);
    const again = { ...request, method, options: { ...request.options, ...options } };
    await Promise.all([harness.pipeline.submit(again), harness.clock.advance(100)]);
    const next = await restarted(harness, facts);
    await next.clock.advance(10_000);
    const sent = next.outbound.map(({ transactions }) => signaturesOf(transactions));
    expect(new Set(sent.flat())).toEqual(new Set([facts[0].signature]));
    const statuses = next.pipeline.statuses("ann", signaturesOf(facts));
    await next.clock.advance(100);
    expect((await statuses).map((status) => status?.method)).toEqual([method, "sendBundle"]);
  },
);

async function timelineOf(harness: Harness, { signature }: TransactionFacts) {
  const found = harness.pipeline.statuses("ann", [signature]);
  await harness.clock.advance(100);
  return (await found)[0]?.events ?? [];
}

const attemptsIn = (events: readonly TimelineEvent[]) =>
  events.flatMap((event) => (event.kind === "queued" ? [event.attempt] : []));

it("and one of their transactions on its own have each their own attempts in the timelines", async () => {
  const harness = new Harness({}, { routes: builder });
  const facts = [harness.facts(), harness.facts()] as const;
  await submitBundle(harness, facts);
  await harness.clock.advance(3_000);
  const shared = harness.outbound.length;
  const first = harness.outbound[0];
  expect(await harness.submit(facts[0])).toBe("accepted");
  await harness.clock.advance(10_000);
  const own = harness.outbound.filter(({ transactions }) => transactions.length === 1);
  const bundles = harness.outbound.filter(({ transactions }) => transactions.length === 2);
  expect([own.length > 3, bundles.length > shared + 3]).toEqual([true, true]);
  first?.report({ kind: "sent", atNs: harness.clock.nowNs(), bytes: 200 });
  bundles.at(-1)?.report({ kind: "sent", atNs: harness.clock.nowNs(), bytes: 200 });
  const alone = await timelineOf(harness, facts[0]);
  const numbers = attemptsIn(alone);
  expect(numbers).toEqual([...bundles.slice(0, shared), ...own].map(({ attempt }) => attempt));
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  const sent = alone.flatMap((event) => (event.kind === "sent" ? [event.attempt] : []));
  expect(sent).toEqual([1]);
  const other = await timelineOf(harness, facts[1]);
  expect(attemptsIn(other)).toEqual(bundles.map(({ attempt }) => attempt));
});

it("do not use up the resends of one of their transactions after a restart", async () => {
  const harness = new Harness({}, { routes: builder });
  const facts = [harness.facts(), harness.facts()] as const;
  await submitBundle(harness, facts);
  await harness.clock.advance(10_000);
  expect(await harness.submit(facts[0], { resendsMax: 2 })).toBe("accepted");
  const next = await restarted(harness, facts);
  await next.clock.advance(20_000);
  const before = harness.outbound.filter(({ transactions }) => transactions.length === 1);
  expect(before.length + next.outbound.length).toBe(3);
  expect(next.outbound.every(({ transactions }) => transactions.length === 1)).toBe(true);
});

type Bundle = readonly [TransactionFacts, ...TransactionFacts[]];

/** Each bundle is known, with all its transactions in order. */
async function expectKnown(harness: Harness, bundles: readonly Bundle[]): Promise<void> {
  for (const facts of bundles) {
    expect(await signaturesIn(harness, idOf(facts))).toEqual(signaturesOf(facts));
  }
}

it("stay known after newer bundles with their transactions, also after a restart", async () => {
  const harness = new Harness({}, { routes: builder });
  const [one, two, three, four] = [
    harness.facts(),
    harness.facts(),
    harness.facts(),
    harness.facts(),
  ];
  const bundles: Bundle[] = [[one, two], [two, three], [four], [four, one], [one, four]];
  for (const facts of bundles) await submitBundle(harness, facts);
  await expectKnown(harness, bundles);
  expect(await signaturesIn(harness, idOf([one, three]))).toBeUndefined();
  const next = await restarted(harness, [one, two, three, four]);
  await expectKnown(next, bundles);
  expect(await signaturesIn(next, idOf([one, three]))).toBeUndefined();
  const foreign = next.pipeline.bundles("ben", [idOf([one, two])]);
  await next.clock.advance(100);
  expect(await foreign).toEqual([null]);
});

it("have the same states after a restart as before it", async () => {
  const harness = new Harness({}, { routes: builder });
  const [one, two, three] = [harness.facts(), harness.facts(), harness.facts()];
  await submitBundle(harness, [one, two]);
  await submitBundle(harness, [two, three]);
  for (const { signature } of [two, three]) {
    harness.answers.set(signature, { slot: 9n, err: null, commitment: "confirmed" });
  }
  await harness.clock.advance(5_000);
  const statesOf = async ({ pipeline, clock }: Harness) => {
    const found = pipeline.bundles("ann", [idOf([one, two]), idOf([two, three])]);
    await clock.advance(100);
    return (await found).map((bundle) => bundle?.transactions.map(({ state }) => state));
  };
  const expected = [
    ["open", "landed"],
    ["landed", "landed"],
  ];
  expect(await statesOf(harness)).toEqual(expected);
  expect(await statesOf(await restarted(harness, [one, two, three]))).toEqual(expected);
});

it("of transactions that landed before are known, also after a restart", async () => {
  const harness = new Harness({}, { routes: builder });
  const [one, two] = [harness.facts(), harness.facts()];
  for (const facts of [one, two]) {
    expect(await harness.submit(facts)).toBe("accepted");
    const { signature } = facts;
    harness.answers.set(signature, { slot: 9n, err: null, commitment: "confirmed" });
  }
  await harness.clock.advance(5_000);
  await submitBundle(harness, [one, two]);
  await expectKnown(harness, [[one, two]]);
  const next = await restarted(harness, [one, two]);
  await expectKnown(next, [[one, two]]);
  // This process does not have them in memory.
  await submitBundle(next, [two, one]);
  const both: Bundle[] = [
    [one, two],
    [two, one],
  ];
  await expectKnown(next, both);
  await expectKnown(await restarted(next, [one, two]), both);
});

it("are forgotten when the history of their transactions is over", async () => {
  const harness = new Harness({}, { routes: builder });
  const [own, foreign] = [harness.facts(), harness.facts()];
  await submitBundle(harness, [own]);
  expect(await harness.submit(foreign, {}, "ben")).toBe("accepted");
  for (const { signature } of [own, foreign]) {
    harness.answers.set(signature, { slot: 9n, err: null, commitment: "confirmed" });
  }
  await harness.clock.advance(5_000);
  await submitBundle(harness, [own, foreign]);
  await expectKnown(harness, [[own], [own, foreign]]);
  await harness.clock.advance(26 * 3_600_000);
  expect(await signaturesIn(harness, idOf([own]))).toBeUndefined();
  expect(await signaturesIn(harness, idOf([own, foreign]))).toBeUndefined();
  expect([harness.store.records.size, harness.store.bundles.size]).toEqual([0, 0]);
});

it("are stored before a repeated call is answered, if the first one failed", async () => {
  const harness = new Harness({}, { routes: builder });
  const [one, two, three] = [harness.facts(), harness.facts(), harness.facts()];
  harness.store.failShare = 1;
  const failed = submitBundle(harness, [one, two]);
  await expect(failed).rejects.toMatchObject({ reason: "store_failed" });
  harness.store.failShare = 0;
  await harness.clock.advance(5_000);
  expect(harness.store.records.size).toBe(2);
  await submitBundle(harness, [one, two]);
  await submitBundle(harness, [two, three]);
  await expectKnown(await restarted(harness, [one, two, three]), [
    [one, two],
    [two, three],
  ]);
});

it("are stored in the write of their transactions, and no other submission stores one", async () => {
  const harness = new Harness({}, { routes: builder });
  expect(await harness.submit(harness.facts())).toBe("accepted");
  await submitBundle(harness, [harness.facts(), harness.facts()]);
  await harness.clock.advance(5_000);
  expect(harness.store.commits.filter(([, bundles]) => bundles > 0)).toEqual([[2, 1]]);
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
