import { describe, expect, it } from "vitest";
import {
  buildTransaction,
  transferInstruction,
} from "../../../src/core/transactions/build-legacy.ts";
import { type Candidate, candidateOf } from "../../../src/sandbox/chain/executor.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { LeaderQueue } from "../../../src/sandbox/chain/queue.ts";

const payer = SandboxKeyPair.named(1, "payer");
const receiver = SandboxKeyPair.named(1, "receiver").publicKey;

function candidate(lamports: number, price = 0n): Candidate {
  const wire = buildTransaction(
    [payer],
    [transferInstruction(payer.publicKey, receiver, BigInt(lamports))],
    new Uint8Array(32),
  );
  const created = candidateOf(wire);
  return { ...created, fee: { ...created.fee, price } };
}

function item(candidates: readonly Candidate[], notBeforeNs = 0n) {
  return { candidates, isBundle: candidates.length > 1, notBeforeNs };
}

const signaturesOf = (items: readonly { candidates: readonly Candidate[] }[]): string[] =>
  items.flatMap(({ candidates }) => candidates.map(({ signature }) => signature));

describe("LeaderQueue", () => {
  it("returns at most the requested number, and never a part of a bundle", () => {
    const queue = new LeaderQueue(10);
    const [a, b, c, d, e] = [1, 2, 3, 4, 5].map((lamports) => candidate(lamports));
    if (!a || !b || !c || !d || !e) throw new Error("expected five");
    queue.add(item([a]));
    queue.add(item([b, c, d]));
    queue.add(item([e]));
    expect(queue.count).toBe(5);
    expect(signaturesOf(queue.take(0n, 3))).toEqual(signaturesOf([item([a]), item([e])]));
    expect(queue.has(a.signature)).toBe(false);
    expect(queue.has(c.signature)).toBe(true);
    expect(signaturesOf(queue.take(0n, 3))).toEqual(signaturesOf([item([b, c, d])]));
    expect(queue.count).toBe(0);
  });

  it("orders a bundle by its total fee per compute unit", () => {
    const queue = new LeaderQueue(10);
    const cheap = candidate(1, 10n);
    const mixed = [candidate(2, 30n), candidate(3, 0n)];
    const expensive = candidate(4, 20n);
    queue.add(item([cheap]));
    queue.add(item(mixed));
    queue.add(item([expensive]));
    expect(signaturesOf(queue.take(0n, 10))).toEqual(
      signaturesOf([item([expensive]), item(mixed), item([cheap])]),
    );
  });

  it("orders equal fees by tip, then by arrival", () => {
    const queue = new LeaderQueue(10);
    const tipped = (lamports: number, price: bigint, tipLamports: bigint) => ({
      ...item([candidate(lamports, price)]),
      tipLamports,
    });
    const first = item([candidate(1, 10n)]);
    const second = item([candidate(2, 10n)]);
    const small = tipped(3, 10n, 5n);
    const large = tipped(4, 10n, 6n);
    const alike = tipped(5, 10n, 6n);
    const expensive = item([candidate(6, 11n)]);
    const cheap = tipped(7, 9n, 1000n);
    for (const one of [cheap, first, small, large, second, alike, expensive]) queue.add(one);
    expect(signaturesOf(queue.take(0n, 10))).toEqual(
      signaturesOf([expensive, large, alike, small, first, second, cheap]),
    );
  });

  it("holds delayed items, and removes expired ones, bundles as a whole", () => {
    const queue = new LeaderQueue(3);
    const [a, b, c] = [1, 2, 3].map((lamports) => candidate(lamports));
    if (!a || !b || !c) throw new Error("expected three");
    queue.add(item([a], 5n));
    queue.add(item([b, c]));
    expect(() => queue.add(item([candidate(4)]))).toThrow(
      expect.objectContaining({ reason: "queue_full" }),
    );
    expect(queue.purge(({ signature }) => signature === c.signature)).toEqual([c]);
    expect(queue.count).toBe(1);
    expect(queue.take(4n, 10)).toEqual([]);
    expect(signaturesOf(queue.take(5n, 10))).toEqual([a.signature]);
  });
});
