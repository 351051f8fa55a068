// The inspector compared with two client libraries and a second parser, for random transactions of
// every kind, including corrupted ones, and for all real ones of the captures.

import { base58 } from "@scure/base";
import {
  AddressLookupTableAccount,
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import {
  SignatureVerifier,
  TransactionInspector,
} from "../../../src/gateway/transactions/transaction-checks.ts";
import { transactionRefusalNames } from "../../../src/relay/data-plane/names.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { closing } from "../../support/closing.ts";
import { hasTestdata, packetsOf, testdataFile } from "../../support/shreds/captures.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";
import { seedsOfRun } from "../../support/vitest/test-scope.ts";
import { TransactionMaker } from "./random-transactions.ts";
import { decodeByKit, decodeByWeb3, plainFacts, referenceFacts } from "./transactions-reference.ts";

const tips = [21, 22, 23].map((seed) => Keypair.fromSeed(new Uint8Array(32).fill(seed)).publicKey);
const frontKeys = [31, 32].map((seed) => Keypair.fromSeed(new Uint8Array(32).fill(seed)).publicKey);
const known = {
  tips: new Set(tips.map((key) => key.toBase58())),
  prefixes: [
    ...frontKeys.map((key, i) => key.toBase58().slice(0, 8 + i)),
    "dontbund1e",
    "partnerdontfront",
  ],
};
const inspector = new TransactionInspector({
  tipAddresses: tips.map((key) => key.toBytes()),
  dontFrontPrefixes: known.prefixes,
});

function refusalOf(wire: Uint8Array): string {
  try {
    inspector.inspect(wire);
    return "accepted";
  } catch (error) {
    if (!(error instanceof ShredwayError)) throw error;
    const { details } = error;
    return details && "refusal" in details ? details.refusal : "undefined";
  }
}

/** Whether the sandbox's parser accepts it and the parts that it ignores are valid. */
function isFineElsewhere(wire: Uint8Array): boolean {
  try {
    const { keys, instructions, config } = parseTransaction(wire);
    const heap = config.heapBytes ?? 32_768;
    return (
      new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size === keys.length &&
      instructions.every(({ accounts }) => accounts.length <= 255) &&
      heap >= 32_768 &&
      heap <= 262_144 &&
      heap % 1024 === 0
    );
  } catch (error) {
    if (error instanceof ShredwayError) return false;
    throw error;
  }
}

/** The facts; null: all parsers refuse it. */
function agreedFacts(wire: Uint8Array): TransactionFacts | null {
  const refusal = refusalOf(wire);
  if (!isFineElsewhere(wire)) {
    expect(refusal).not.toBe("accepted");
    return null;
  }
  const byKit = decodeByKit(wire);
  // web3.js does not use a bigint for the fee of version 1.
  const isTooMuch = byKit.priorityFeeLamports > BigInt(Number.MAX_SAFE_INTEGER);
  if (!isTooMuch) expect(byKit).toEqual(decodeByWeb3(wire));
  const expected = referenceFacts(byKit, known);
  if (expected === "invalid") {
    expect(refusal).not.toBe("accepted");
    return null;
  }
  expect(refusal).toBe("accepted");
  const facts = inspector.inspect(wire);
  expect(plainFacts(facts)).toEqual(expected);
  expect(facts.wire).toBe(wire);
  expect(facts.signatureBytes).toEqual(byKit.signatures[0]);
  return facts;
}

describe("inspect", () => {
  it.each(seedsOfRun([11, 12, 13, 14]))(
    "agrees with web3.js, kit and a second parser on random transactions, seed %d",
    (seed) => {
      const maker = new TransactionMaker(new SeededRandom(seed), {
        tips: tips.map((key) => key.toBytes()),
        frontKeys: frontKeys.map((key) => key.toBytes()),
      });
      const facts: TransactionFacts[] = [];
      for (let i = 0; i < 500; i++) {
        const wire = maker.make();
        const both = [wire, maker.corrupted(wire)].map(agreedFacts);
        facts.push(...both.filter((one) => one !== null));
      }
      // Enough of every kind; otherwise agreement proves little.
      const count = (isSo: (one: TransactionFacts) => boolean) => facts.filter(isSo).length;
      expect(facts.length).toBeGreaterThan(400);
      expect(facts.length).toBeLessThan(900);
      expect(count(({ tipLamports }) => tipLamports > 0n)).toBeGreaterThan(60);
      expect(count(({ nonce }) => nonce !== null)).toBeGreaterThan(20);
      expect(count(({ hasFrontKey }) => hasFrontKey)).toBeGreaterThan(20);
      expect(count(({ priorityFeeLamports }) => priorityFeeLamports > 0n)).toBeGreaterThan(60);
      for (const version of ["legacy", 0, 1] as const)
        expect(count((one) => one.version === version)).toBeGreaterThan(80);
    },
  );

  it("parses transactions of web3.js", () => {
    const payer = Keypair.fromSeed(new Uint8Array(32).fill(1));
    const nonce = Keypair.fromSeed(new Uint8Array(32).fill(2)).publicKey;
    const authority = Keypair.fromSeed(new Uint8Array(32).fill(3));
    const [tip = payer.publicKey, second = payer.publicKey] = tips;
    const base = payer.publicKey;
    const message = new TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: PublicKey.default.toBase58(),
      instructions: [
        SystemProgram.nonceAdvance({ noncePubkey: nonce, authorizedPubkey: authority.publicKey }),
        ComputeBudgetProgram.setComputeUnitLimit({ units: 300_000 }),
        ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 10_000_001n }),
        SystemProgram.transfer({ fromPubkey: base, toPubkey: tip, lamports: 5000 }),
        SystemProgram.transfer({
          fromPubkey: nonce,
          basePubkey: base,
          toPubkey: second,
          lamports: 70n,
          seed: "seed",
          programId: SystemProgram.programId,
        }),
        SystemProgram.transfer({ fromPubkey: base, toPubkey: frontKeys[0] ?? tip, lamports: 3 }),
      ],
    });
    const table = new AddressLookupTableAccount({
      key: PublicKey.unique(),
      state: {
        deactivationSlot: 2n ** 64n - 1n,
        lastExtendedSlot: 0,
        lastExtendedSlotStartIndex: 0,
        addresses: [frontKeys[0] ?? tip],
      },
    });
    for (const [compiled, hasFrontKey] of [
      [message.compileToLegacyMessage(), true],
      [message.compileToV0Message(), true],
      [message.compileToV0Message([table]), false],
    ] as const) {
      const transaction = new VersionedTransaction(compiled);
      transaction.sign([payer, authority]);
      const facts = inspector.inspect(transaction.serialize());
      expect(facts).toMatchObject({
        version: compiled.version,
        tipLamports: 5070n,
        computeUnitLimit: 300_000,
        priorityFeeLamports: 3_000_001n,
        hasFrontKey,
        feePayer: payer.publicKey.toBytes(),
        lifetime: new Uint8Array(32),
        nonce: { account: nonce.toBytes(), authority: authority.publicKey.toBytes() },
      });
      expect(facts.signature).toBe(base58.encode(transaction.signatures[0] ?? new Uint8Array()));
    }
  });

  it("parses version 1", () => {
    const payer = new SandboxKeyPair(new Uint8Array(32).fill(4));
    const blockhash = new Uint8Array(32).fill(9);
    const [tip] = tips;
    const wire = v1Transfer(payer, tip?.toBytes() ?? blockhash, 12_345n, {
      blockhash,
      priorityFeeLamports: 2n ** 60n,
      computeUnitLimit: 450,
    });
    expect(inspector.inspect(wire)).toMatchObject({
      version: 1,
      tipLamports: 12_345n,
      computeUnitLimit: 450,
      priorityFeeLamports: 2n ** 60n,
      lifetime: blockhash,
      nonce: null,
    });
    expect(agreedFacts(wire)).not.toBeNull();
  });

  it("reports the expected and received value, the offset and the refusal", () => {
    const payer = new SandboxKeyPair(new Uint8Array(32).fill(4));
    const wire = v1Transfer(payer, new Uint8Array(32).fill(7), 1n, {
      blockhash: new Uint8Array(32),
    });
    const refused = (bytes: Uint8Array, reason: string, details: object, message: string) => {
      expect(() => inspector.inspect(bytes)).toThrow(
        expect.objectContaining({ reason, details, message: `transaction: expected ${message}` }),
      );
    };
    refused(
      Uint8Array.of(...wire, 0),
      "transaction_invalid",
      { refusal: "trailing_bytes", offset: wire.length },
      `no bytes after the transaction, got 1 bytes (offset ${wire.length})`,
    );
    refused(
      wire.subarray(0, 100),
      "transaction_invalid",
      { refusal: "cut_short", offset: 100 },
      "a whole transaction, got 100 bytes of a longer one (offset 100)",
    );
    refused(
      Uint8Array.of(0x82, ...wire),
      "transaction_version",
      { refusal: "version_unknown", offset: 0 },
      "version legacy, 0 or 1, got version 2 (offset 0)",
    );
    refused(
      new Uint8Array(4097),
      "transaction_invalid",
      { refusal: "too_long", offset: 0 },
      "at most 1232 bytes, or 4096 in version 1, got 4097 bytes (offset 0)",
    );
    // "AAAA" in base58, as docs/first-hour.md sends it.
    refused(
      base58.decode("AAAA"),
      "transaction_invalid",
      { refusal: "parts_too_long", offset: 1 },
      "counts and lengths for at most 1232 bytes, or 4096 in version 1, got 1732 bytes (offset 1)",
    );
    expect(refusalOf(new Uint8Array(0))).toBe("cut_short");
    expect(transactionRefusalNames[0]).toBe("accepted");
  });

  it("does not change the bytes and accepts views of other arrays", () => {
    const payer = new SandboxKeyPair(new Uint8Array(32).fill(4));
    const wire = v1Transfer(payer, new Uint8Array(32).fill(7), 1n, {
      blockhash: new Uint8Array(32),
    });
    const inside = new Uint8Array(wire.length + 20).fill(255);
    inside.set(wire, 13);
    const view = inside.subarray(13, 13 + wire.length);
    const facts = inspector.inspect(view);
    expect(plainFacts(facts)).toEqual(plainFacts(inspector.inspect(Buffer.from(wire))));
    expect(facts.wire).toBe(view);
    expect(facts.feePayer).toEqual(payer.publicKey);
    expect(facts.feePayer.buffer).toBe(inside.buffer);
    expect(Buffer.from(wire).equals(view)).toBe(true);
  });

  it("rejects an invalid configuration", () => {
    const make = (tipAddresses: Uint8Array[], dontFrontPrefixes: string[]) => () =>
      new TransactionInspector({ tipAddresses, dontFrontPrefixes });
    expect(make([new Uint8Array(31)], [])).toThrow("32 bytes, got 31");
    expect(make([], ["jit0"])).toThrow('base58 characters, got "0"');
    expect(make([], [""])).toThrow("expected at least one base58 character");
    const many = Array.from({ length: 4097 }, () => new Uint8Array(32));
    expect(make(many, [])).toThrow(expect.objectContaining({ reason: "value_invalid" }));
  });
});

// ---- real transactions ----------------------------------------------------------------------

const captures = [
  { folder: "firedancer-demo", file: "demo-shreds.lpb", transactions: 1280 },
  { folder: "sig-testnet-356797362", file: "data.lpb", transactions: 2293 },
  { folder: "firedancer-localnet", file: "localnet-slot50.lpb", transactions: 1 },
  { folder: "radiance-mainnet-102815960", file: "legacy-shreds.lpb", transactions: 3177 },
];

/** Batches of data shreds from the first index on; these captures are complete. */
function batchesOf(path: string): Buffer[] {
  const shreds = new Map<number, { body: Uint8Array; isLast: boolean }>();
  for (const packet of packetsOf(path).map((one) => Buffer.from(one))) {
    const variant = packet[64] ?? 0;
    if (variant !== 0xa5 && (variant & 0xc0) !== 0x80) continue;
    const body = packet.subarray(88, packet.readUInt16LE(86));
    shreds.set(packet.readUInt32LE(73), { body, isLast: ((packet[85] ?? 0) & 0x40) !== 0 });
  }
  const first = Math.min(...shreds.keys());
  const batches: Buffer[] = [];
  let bodies: Uint8Array[] = [];
  let isOpen = first === 0;
  for (let i = first; shreds.has(i); i++) {
    const { body, isLast } = shreds.get(i) ?? { body: new Uint8Array(), isLast: false };
    bodies.push(body);
    if (!isLast) continue;
    if (isOpen) batches.push(Buffer.concat(bodies));
    bodies = [];
    isOpen = true;
  }
  return batches;
}

function* transactionsOf(batch: Buffer): Generator<Uint8Array> {
  let at = 8;
  for (let entries = batch.readBigUInt64LE(0); entries > 0n; entries--) {
    const transactions = batch.readBigUInt64LE(at + 40);
    at += 48;
    for (let left = transactions; left > 0n; left--) {
      // No transaction of that time is longer; web3.js ignores the bytes after it.
      const { length } = VersionedTransaction.deserialize(
        Uint8Array.from(batch.subarray(at, at + 1232)),
      ).serialize();
      yield Uint8Array.from(batch.subarray(at, at + length));
      at += length;
    }
  }
}

describe.skipIf(!hasTestdata)("real transactions", () => {
  it.each(captures)("of $folder/$file are accepted, agree and verify", async (capture) => {
    const verifier = closing(SignatureVerifier.open({ threads: 2, queueMax: 8192 }));
    const wires = batchesOf(testdataFile(capture.folder, capture.file)).flatMap((batch) => [
      ...transactionsOf(batch),
    ]);
    expect(wires.length).toBe(capture.transactions);
    expect(wires.map(refusalOf).filter((refusal) => refusal !== "accepted")).toEqual([]);
    // The other libraries are slow: every eighth transaction.
    for (let i = 0; i < wires.length; i += 8)
      expect(agreedFacts(wires[i] ?? expect.fail())).not.toBeNull();
    const answers = await Promise.all(wires.map((wire) => verifier.verify(wire) ?? expect.fail()));
    expect(answers.filter((holds) => !holds)).toEqual([]);
  });
});
