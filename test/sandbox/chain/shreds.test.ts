import { createHash, createPublicKey, verify } from "node:crypto";
import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { type DataShred, parseShred } from "../../../src/relay/data-plane/parse-shred.ts";
import { HashChain, signaturesRoot } from "../../../src/sandbox/chain/poh.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { type Entry, readEntries } from "../../support/shreds/entries.ts";
import { alice, bob, ChainRun, carol } from "../../support/transactions/chain.ts";

function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return Uint8Array.from(hash.digest());
}

function dataShreds(run: ChainRun, slot: bigint): DataShred[] {
  return run.shreds
    .filter((emitted) => emitted.slot === slot)
    .flatMap(({ packets }) => packets)
    .flatMap((packet) => {
      const parsed = parseShred(packet);
      if (!parsed.ok || parsed.shred.slot !== slot)
        throw new Error("expected shreds of the slot, got none");
      return parsed.shred.type === "data" ? [parsed.shred] : [];
    });
}

/** The batches of a slot: the payloads up to each shred that ends a batch. */
function batchesOf(run: ChainRun, slot: bigint): Entry[][] {
  const batches: Entry[][] = [];
  let parts: Uint8Array[] = [];
  for (const { payload, dataComplete } of dataShreds(run, slot)) {
    parts.push(payload);
    if (!dataComplete) continue;
    batches.push(readEntries(Buffer.concat(parts)));
    parts = [];
  }
  expect(parts).toEqual([]);
  return batches;
}

async function busyRun(): Promise<ChainRun> {
  const run = await ChainRun.open({ background: { transactionsPerSecond: 300 }, votes: true });
  run.slots(3);
  for (let i = 0; i < 90; i++) run.chain.send(run.transfer(alice, bob, BigInt(i)));
  run.chain.sendBundle([run.transfer(alice, carol, 1n), run.transfer(carol, alice, 2n)]);
  run.slots(5);
  return run;
}

describe("the shreds of a block", () => {
  it("contain exactly its transactions, in order", async () => {
    const run = await busyRun();
    for (let slot = 1n; slot <= 7n; slot++) {
      const block = run.chain.block(slot);
      const wires = batchesOf(run, slot)
        .flat()
        .flatMap(({ transactions }) => transactions);
      expect(wires.length).toBeGreaterThan(0);
      expect(wires.map(({ wire }) => Buffer.from(wire).toString("hex"))).toEqual(
        block?.transactions.map(({ wire }) => Buffer.from(wire).toString("hex")),
      );
      expect(wires.map(({ signature }) => encodeBase58(signature))).toEqual(
        block?.transactions.map(({ signature }) => signature),
      );
    }
    expect(run.chain.block(4n)?.transactions.length).toBeGreaterThan(150);
  });

  it("prove their order by SHA-256: 64 ticks from the parent's blockhash to their own", async () => {
    const run = await busyRun();
    for (const slot of [1n, 4n]) {
      const block = run.chain.block(slot);
      const batches = batchesOf(run, slot);
      expect(batches.length).toBe(16);
      const parent = run.chain.block(block?.parentSlot ?? 0n)?.blockhash;
      expect(block?.previousBlockhash).toBe(parent);
      let ticks = 0;
      let hashesInTick = 0;
      let previous: Uint8Array | null = null;
      for (const { hashes, hash, transactions } of batches.flat()) {
        let expected = previous;
        if (expected) {
          for (let i = 1; i < hashes; i++) expected = sha256(expected);
          const parsed = transactions.map(({ wire }) => parseTransaction(wire));
          expected =
            transactions.length > 0 ? sha256(expected, signaturesRoot(parsed)) : sha256(expected);
          expect(encodeBase58(hash)).toBe(encodeBase58(expected));
        }
        previous = hash;
        hashesInTick += hashes;
        if (transactions.length > 0) continue;
        ticks++;
        expect(hashesInTick).toBe(16);
        hashesInTick = 0;
      }
      expect(ticks).toBe(64);
      expect(encodeBase58(previous ?? new Uint8Array(0))).toBe(block?.blockhash);
    }
  });

  it("are signed by the slot's leader, end the slot once and chain across slots", async () => {
    const run = await ChainRun.open();
    run.slots(9);
    const schedule = run.chain.relaySchedule();
    for (let slot = 1n; slot <= 9n; slot++) {
      const shreds = dataShreds(run, slot);
      expect(shreds.length).toBe(512);
      expect(shreds.map(({ index }) => index)).toEqual(shreds.map((_, i) => i));
      expect(shreds.filter(({ lastInSlot }) => lastInSlot).length).toBe(1);
      expect(shreds.at(-1)?.lastInSlot).toBe(true);
      expect(shreds.map(({ referenceTick }) => referenceTick)).toEqual(
        shreds.map((_, i) => Math.min(63, 4 * (Math.floor(i / 32) + 1))),
      );
      const place = Number(slot - schedule.firstSlot);
      const key = schedule.keys[schedule.leaderBySlot[place] ?? 0] ?? new Uint8Array(0);
      expect(encodeBase58(key)).toBe(run.chain.leaderOf(slot));
      expect(run.chain.block(slot)?.leader).toBe(encodeBase58(key));
      const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key]);
      const publicKey = createPublicKey({ key: spki, format: "der", type: "spki" });
      for (const [i, shred] of shreds.entries()) {
        if (i % 32 !== 0) continue;
        expect(verify(null, merkleRoot(shred), publicKey, shred.signature)).toBe(true);
      }
      const first = shreds[0];
      const parentsLast = dataShreds(run, slot - 1n).at(-1);
      if (first && parentsLast) {
        expect(encodeBase58(first.chainedRoot)).toBe(encodeBase58(merkleRoot(parentsLast)));
      }
    }
  });

  it("arrive within one interval of the transaction", async () => {
    const run = await ChainRun.open();
    run.pass(60_000_000n);
    const emitted = run.shreds.length;
    run.chain.send(run.transfer(alice, bob, 1n));
    run.pass(15_000_000n); // the interval that runs from 50 to 75 ms
    expect(run.shreds.length).toBe(emitted + 1);
    const last = run.shreds.at(-1);
    expect(last?.timeNs).toBe(75_000_000n);
    expect(run.eventsOf("executed").length).toBe(1);
    const parts = (last?.packets ?? []).flatMap((packet) => {
      const parsed = parseShred(packet);
      return parsed.ok && parsed.shred.type === "data" ? [parsed.shred.payload] : [];
    });
    const entries = readEntries(Buffer.concat(parts));
    expect(entries.flatMap(({ transactions }) => transactions).length).toBe(1);
  });
});

/** Merkle root by the shred's own proof. */
function merkleRoot({ bytes, proof, index, fecSetIndex }: DataShred): Uint8Array {
  const proofAt = bytes.length - proof.length - ((bytes[64] ?? 0) & 0x20 ? 64 : 0);
  const leafPrefix = Buffer.from("\0SOLANA_MERKLE_SHREDS_LEAF", "latin1");
  const nodePrefix = Buffer.from("\x01SOLANA_MERKLE_SHREDS_NODE", "latin1");
  let node = sha256(leafPrefix, bytes.subarray(64, proofAt));
  let place = index - fecSetIndex;
  for (let i = 0; i < 6; i++) {
    const entry = proof.subarray(20 * i, 20 * (i + 1));
    const own = node.subarray(0, 20);
    node = place % 2 === 0 ? sha256(nodePrefix, own, entry) : sha256(nodePrefix, entry, own);
    place >>= 1;
  }
  return node;
}

describe("HashChain", () => {
  it("adds another tick if the current one has no capacity for more entries", () => {
    const run = new HashChain(new Uint8Array(32), 4);
    const wire = Uint8Array.from({ length: 300 }, (_, i) => i & 0xff);
    const transaction = {
      ...parseTransaction(bareTransaction()),
      signatures: [wire.subarray(0, 64)],
    };
    const entries = readEntries(
      run.batch(
        Array.from({ length: 64 * 5 }, () => transaction),
        4,
      ),
    );
    expect(entries.map(({ transactions }) => transactions.length)).toEqual([
      64, 64, 64, 0, 64, 64, 0, 0, 0,
    ]);
    expect(entries.map(({ hashes }) => hashes)).toEqual([1, 1, 1, 1, 1, 1, 2, 4, 4]);
    expect(() =>
      run.batch(
        Array.from({ length: 64 * 13 }, () => transaction),
        4,
      ),
    ).toThrow(RangeError);
  });
});

function bareTransaction(): Uint8Array {
  const wire = new Uint8Array(1 + 64 + 3 + 1 + 32 + 32 + 1);
  wire[0] = 1;
  wire[65] = 1;
  wire[68] = 1;
  return wire;
}
