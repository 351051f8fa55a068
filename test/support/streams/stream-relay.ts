// A relay on loopback with sources of two tiers and one for own use, and slots whose transactions a test
// chooses.

import type { TransactionInstruction } from "@solana/web3.js";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { Relay } from "../../../src/relay/data-plane/relay.ts";
import { Shredder } from "../../../src/relay/data-plane/shredder.ts";
import { buildSchedule } from "../../../src/relay/leaders/schedule.ts";
import { closing } from "../closing.ts";
import { slotPackets } from "../shreds/slot-packets.ts";

const shredder = new Shredder(new Uint8Array(32).fill(9));
const random = new SeededRandom(4);

export const voteProgram = Buffer.from(
  "0761481d357474bb7c4d7624ebd3bdb3d8355e73d11043fc0da3538000000000",
  "hex",
);

export interface MadeTransaction {
  readonly signature: Uint8Array;
  readonly wire: Uint8Array;
}

/** 32 bytes that begin with the number. */
export function accountOf(number: number): Uint8Array {
  const account = new Uint8Array(32).fill(0x5a);
  new DataView(account.buffer).setUint32(0, number, true);
  return account;
}

/** A legacy transaction with these accounts and one instruction, of the last account. */
export function transactionOf(accounts: readonly Uint8Array[] = [accountOf(0)]): MadeTransaction {
  const signature = new Uint8Array(64);
  random.fillBytes(signature);
  const wire = Buffer.concat([
    Uint8Array.of(1),
    signature,
    Uint8Array.of(1, 0, 0, accounts.length),
    ...accounts,
    new Uint8Array(32).fill(0xab),
    Uint8Array.of(1, accounts.length - 1, 1, 0, 2, 7, 8),
  ]);
  return { signature, wire };
}

/** A legacy transaction with one instruction, by web3.js. */
export function legacyInstruction({
  programId,
  keys,
  data,
}: TransactionInstruction): MadeTransaction {
  const accounts = [...keys.map(({ pubkey }) => pubkey.toBytes()), programId.toBytes()];
  const { signature, wire } = transactionOf(accounts);
  const instruction = Buffer.concat([
    Uint8Array.of(1, keys.length, keys.length),
    Uint8Array.from(keys, (_, i) => i),
    Uint8Array.of(data.length),
    data,
  ]);
  return { signature, wire: Buffer.concat([wire.subarray(0, -7), instruction]) };
}

export interface MadeLookup {
  readonly table: Uint8Array;
  /** Indexes, at most 127 each. */
  readonly writable: readonly number[];
  readonly readonly: readonly number[];
}

/** The same as transactionOf in version 0, with lookups. */
export function lookupTransactionOf(
  accounts: readonly Uint8Array[],
  lookups: readonly MadeLookup[],
): MadeTransaction {
  const { signature, wire } = transactionOf(accounts);
  const message = wire.subarray(1 + signature.length);
  const encoded = lookups.flatMap(({ table, writable, readonly }) => [
    table,
    Uint8Array.of(writable.length, ...writable),
    Uint8Array.of(readonly.length, ...readonly),
  ]);
  const parts = [Uint8Array.of(1), signature, Uint8Array.of(0x80), message];
  const wireWithLookups = Buffer.concat([...parts, Uint8Array.of(lookups.length), ...encoded]);
  return { signature, wire: wireWithLookups };
}

/** With a lookup of two accounts in a table. `indexes`: of the writable and of the read-only one. */
export function v0TransactionOf(
  accounts: readonly Uint8Array[],
  table: Uint8Array,
  [writable, readonly]: readonly [number, number] = [4, 5],
): MadeTransaction {
  return lookupTransactionOf(accounts, [{ table, writable: [writable], readonly: [readonly] }]);
}

/** A batch of one entry. */
export function batchOf(transactions: readonly MadeTransaction[]): Uint8Array {
  const header = Buffer.alloc(8 + 48);
  header.writeBigUInt64LE(1n, 0); // entries
  header.writeBigUInt64LE(1n, 8); // hashes
  header.writeBigUInt64LE(BigInt(transactions.length), 48);
  return Buffer.concat([header, ...transactions.map(({ wire }) => wire)]);
}

/** A block marker, in place of a batch: kind 1 begins a block, kind 2 begins it again. */
export function markerOf(kind: 1 | 2, parent = 100n): Uint8Array {
  const head = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, kind, 41, 0, 1]);
  const slot = Buffer.alloc(8);
  slot.writeBigUInt64LE(parent);
  return Buffer.concat([head, slot, new Uint8Array(32).fill(6)]);
}

/** Packets of a whole slot of these batches. */
export function slotOf(slot: bigint, batches: readonly Uint8Array[]): Uint8Array[] {
  return slotPackets(shredder, slot, batches);
}

type SourceName = "tier-1" | "tier-2" | "own-use";

export interface StreamRelay {
  readonly relay: Relay;
  /** Slots 100 to 299 are possible. */
  readonly send: (packets: readonly Uint8Array[], from?: SourceName) => void;
}

/** `leader`: the one of a real capture, which leads from slot `firstSlot` on; default: the tests' own. */
export function openStreamRelay({
  leader = shredder.publicKey,
  firstSlot = 100n,
}: {
  readonly leader?: Uint8Array;
  readonly firstSlot?: bigint;
} = {}): StreamRelay {
  const relay = closing(
    Relay.open({
      listen: ["127.0.0.1:0"],
      workers: 1,
      tiers: ["tier-1", "tier-2"],
      authentication: "leader-schedule",
      shredVersion: 0,
      prefault: false,
    }),
  );
  relay.publishSources([
    { name: "a", address: "127.0.0.2", tier: "tier-1" },
    { name: "b", address: "127.0.0.3", tier: "tier-2" },
    { name: "c", address: "127.0.0.4", tier: "tier-1", forward: false },
  ]);
  const slots = Array.from({ length: 200 }, (_, i) => i);
  relay.publishLeaders(buildSchedule(firstSlot, [{ key: leader, slots }]));
  const to = relay.addresses[0] ?? "";
  const senderFrom = (from: string) => closing(PacedSender.open({ to, from: `${from}:0` }));
  const senders = {
    "tier-1": senderFrom("127.0.0.2"),
    "tier-2": senderFrom("127.0.0.3"),
    "own-use": senderFrom("127.0.0.4"),
  };
  return {
    relay,
    send: (packets, from = "tier-1") =>
      senders[from].enqueue(packets, new BigUint64Array(packets.length)),
  };
}
