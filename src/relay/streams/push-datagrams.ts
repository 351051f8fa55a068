// Datagrams of transaction pushes: a header of 64 bytes in little endian, and a payload.
//
// Pure. docs/transaction-push.md has the same layout for receivers. A datagram is encoded once for all
// pushes; each push copies it and stamps its own fields.

import type { StreamMessage } from "../data-plane/relay-streams.ts";
import type { StreamGap } from "./stream-gap.ts";

const magic = Buffer.from("SWTX", "latin1");
const version = 1;
const pushHeaderBytes = 64;
/** The longest transaction of the versions before 1. With the header, it fits an MTU of 1,500. */
export const pushPayloadBytesMax = 1232;
export const streamIdBytes = 8;

const kinds = { transaction: 1, withdrawal: 2, gap: 3, heartbeat: 4, end: 5 } as const;
const flags = { vote: 1, version0: 2, version1: 4, resolved: 8, unresolved: 16 } as const;
const version0Prefix = 0x80;
const version1Prefix = 0x81;
const signatureBytes = 64;

interface HeaderFields {
  readonly kind: keyof typeof kinds;
  readonly flags?: number;
  readonly slot: bigint;
  /** Wall time. */
  readonly atNs: bigint;
  readonly shredIndex?: number;
  readonly batchIndex?: number;
  readonly ordinal?: number;
}

function datagramOf(head: HeaderFields, payload: Uint8Array): Buffer {
  const { kind, slot, atNs, shredIndex = 0, batchIndex = 0, ordinal = 0 } = head;
  const datagram = Buffer.alloc(pushHeaderBytes + payload.length);
  magic.copy(datagram);
  datagram.writeUInt8(version, 4);
  datagram.writeUInt8(kinds[kind], 5);
  datagram.writeUInt16LE(head.flags ?? 0, 6);
  datagram.writeBigUInt64LE(slot, 24);
  datagram.writeBigUInt64LE(atNs, 32);
  datagram.writeUInt32LE(shredIndex, 40);
  datagram.writeUInt32LE(batchIndex, 44);
  datagram.writeUInt32LE(ordinal, 48);
  datagram.writeUInt16LE(pushHeaderBytes, 60);
  datagram.writeUInt16LE(payload.length, 62);
  datagram.set(payload, pushHeaderBytes);
  return datagram;
}

/** The fields that differ between pushes. */
interface Stamp {
  /** 8 bytes. */
  readonly streamId: Uint8Array;
  readonly sequence: bigint;
  /** Totals, modulo 2^32. */
  readonly skipped: number;
  readonly dropped: number;
}

/** Writes into the datagram. */
export function stamp(datagram: Buffer, { streamId, sequence, skipped, dropped }: Stamp): void {
  datagram.set(streamId, 8);
  datagram.writeBigUInt64LE(sequence, 16);
  datagram.writeUInt32LE(skipped % 2 ** 32, 52);
  datagram.writeUInt32LE(dropped % 2 ** 32, 56);
}

/** Numbers that a gap takes from the sequence; 0 for all other datagrams. */
export function missingIn(datagram: Buffer): bigint {
  return datagram.readUInt8(5) === kinds.gap ? datagram.readBigUInt64LE(pushHeaderBytes) : 0n;
}

/** Expects a transaction that the native parser accepted. */
function flagsOf({ content, isVote, loadedAddresses }: StreamMessage): number {
  const vote = isVote ? flags.vote : 0;
  if (content[0] === version1Prefix) return vote | flags.version1;
  // The number of signatures takes one byte: 128 of them would not fit.
  const isVersion0 = content[1 + signatureBytes * (content[0] ?? 0)] === version0Prefix;
  if (!isVersion0) return vote;
  if (loadedAddresses === undefined) return vote | flags.version0;
  return vote | flags.version0 | (loadedAddresses ? flags.resolved : flags.unresolved);
}

function transactionDatagram(message: StreamMessage): Buffer {
  const { slot, arrivalNs, shredIndex, batchIndex, ordinal, content } = message;
  const place = { slot, atNs: arrivalNs, shredIndex, batchIndex, ordinal };
  return datagramOf({ kind: "transaction", flags: flagsOf(message), ...place }, content);
}

/** Everything in the slot before the batch is withdrawn. The payload: parent slot, its block id. */
function withdrawalDatagram({
  slot,
  arrivalNs,
  batchIndex,
  parent,
  content,
}: StreamMessage): Buffer {
  const payload = Buffer.concat([u64(parent), content]);
  return datagramOf({ kind: "withdrawal", slot, atNs: arrivalNs, batchIndex }, payload);
}

/** The payload: number of messages, first and last slot; 0: unknown. */
export function gapDatagram({ count, slots }: StreamGap, atNs: bigint): Buffer {
  const { first = 0n, last = 0n } = slots ?? {};
  const payload = Buffer.concat([u64(BigInt(count)), u64(first), u64(last)]);
  return datagramOf({ kind: "gap", slot: last, atNs }, payload);
}

/** `slot`: of the last message; 0: none. The payload: end of the lease in wall time. */
export function heartbeatDatagram(slot: bigint, atNs: bigint, endsNs: bigint): Buffer {
  return datagramOf({ kind: "heartbeat", slot, atNs }, u64(endsNs));
}

/** The payload: "reason: explanation" in UTF-8. */
export function endDatagram(slot: bigint, atNs: bigint, text: string): Buffer {
  const payload = Buffer.from(text).subarray(0, pushPayloadBytesMax);
  return datagramOf({ kind: "end", slot, atNs }, payload);
}

function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

/** Encodes a message for the first push that needs it. */
export class SharedDatagrams {
  #message: StreamMessage | undefined;
  #datagram: Buffer = Buffer.alloc(0);

  /** A copy for one push. `message`: a transaction of at most `pushPayloadBytesMax`, or a restart. */
  copyOf(message: StreamMessage): Buffer {
    if (this.#message !== message) {
      const encode = message.kind === "restart" ? withdrawalDatagram : transactionDatagram;
      this.#datagram = encode(message);
      this.#message = message;
    }
    return Buffer.from(this.#datagram);
  }
}
