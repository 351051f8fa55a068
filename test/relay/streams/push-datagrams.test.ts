// Datagrams of transaction pushes: the product's encoder and the client's reader, which share no code.

import { describe, expect, it } from "vitest";
import { readPushDatagram } from "../../../src/client/push-datagram.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { StreamMessage } from "../../../src/relay/data-plane/relay-streams.ts";
import {
  endDatagram,
  gapDatagram,
  heartbeatDatagram,
  missingIn,
  pushPayloadBytesMax,
  SharedDatagrams,
  stamp,
} from "../../../src/relay/streams/push-datagrams.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { accountOf, transactionOf, v0TransactionOf } from "../../support/streams/stream-relay.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

const random = new SeededRandom(21);

function bytes(count: number): Uint8Array {
  return random.fillBytes(new Uint8Array(count));
}

function u64(): bigint {
  return Buffer.from(bytes(8)).readBigUInt64LE();
}

function u32(): number {
  return Buffer.from(bytes(4)).readUInt32LE();
}

const v1 = v1Transfer(new SandboxKeyPair(bytes(32)), accountOf(1), 5n, { blockhash: bytes(32) });
const v0 = v0TransactionOf([accountOf(1)], accountOf(2)).wire;
const withoutLookups = Buffer.concat([v0.subarray(0, v0.length - 37), Uint8Array.of(0)]);
const loaded = { writable: [accountOf(3)], readonly: [accountOf(4)] };

/** A transaction, its lookups as the relay reports them, and what the datagram says. */
const shapes = [
  { wire: transactionOf().wire, loadedAddresses: undefined, version: "legacy", lookups: null },
  { wire: v0, loadedAddresses: loaded, version: 0, lookups: "resolved" },
  { wire: v0, loadedAddresses: null, version: 0, lookups: "unresolved" },
  { wire: withoutLookups, loadedAddresses: undefined, version: 0, lookups: null },
  { wire: v1, loadedAddresses: undefined, version: 1, lookups: null },
] as const;

function messageOf(fields: Partial<StreamMessage>): StreamMessage {
  return {
    kind: "transaction",
    tier: "tier-1",
    filters: [],
    slot: u64(),
    parent: u64(),
    arrivalNs: u64(),
    generation: 0,
    batchIndex: u32(),
    ordinal: u32(),
    shredIndex: u32(),
    isVote: random.below(2) === 1,
    replay: 0,
    content: new Uint8Array(),
    ...fields,
  };
}

/** Stamps the datagram with random values, and reads it. */
function read(datagram: Buffer): { stamped: object; found: object | null } {
  const streamId = bytes(8);
  const stamped = { sequence: u64(), skipped: u32(), dropped: u32() };
  stamp(datagram, { streamId, ...stamped });
  const found = readPushDatagram(datagram);
  return { stamped: { ...stamped, streamId: Buffer.from(streamId).toString("hex") }, found };
}

describe("a datagram of a push", () => {
  it("contains every field of a transaction of every version", () => {
    const encoder = new SharedDatagrams();
    for (let round = 0; round < 200; round++) {
      for (const { wire, loadedAddresses, version, lookups } of shapes) {
        const message = messageOf({ content: wire, loadedAddresses });
        const { stamped, found } = read(encoder.copyOf(message));
        const { slot, arrivalNs, shredIndex, batchIndex, ordinal, isVote } = message;
        expect(found).toEqual({
          kind: "transaction",
          ...stamped,
          slot,
          timeNs: arrivalNs,
          isVote,
          version,
          lookups,
          shredIndex,
          batchIndex,
          ordinal,
          transaction: Buffer.from(wire),
        });
      }
    }
  });

  it("contains withdrawals, gaps, heartbeats and ends", () => {
    const encoder = new SharedDatagrams();
    for (let round = 0; round < 200; round++) {
      const content = bytes(32);
      const restart = messageOf({ kind: "restart", content });
      const withdrawal = read(encoder.copyOf(restart));
      expect(withdrawal.found).toEqual({
        kind: "withdrawal",
        ...withdrawal.stamped,
        slot: restart.slot,
        timeNs: restart.arrivalNs,
        batchIndex: restart.batchIndex,
        parentSlot: restart.parent,
        parentBlockId: Buffer.from(content),
      });
      const [count, slot, timeNs, endsNs] = [1 + u32(), u64(), u64(), u64()];
      const [first, last] = [u64(), u64()];
      for (const slots of [null, { first, last }]) {
        const datagram = gapDatagram({ count, slots }, timeNs);
        expect(missingIn(datagram)).toBe(BigInt(count));
        const gap = read(datagram);
        const place = { firstSlot: slots?.first ?? 0n, lastSlot: slots?.last ?? 0n };
        const head = { kind: "gap", slot: place.lastSlot, timeNs, count: BigInt(count) };
        expect(gap.found).toEqual({ ...gap.stamped, ...head, ...place });
      }
      const heartbeat = read(heartbeatDatagram(slot, timeNs, endsNs));
      expect(heartbeat.found).toEqual({
        kind: "heartbeat",
        ...heartbeat.stamped,
        slot,
        timeNs,
        endsNs,
      });
      const text = "revoked: ".repeat(random.below(300));
      const end = read(endDatagram(slot, timeNs, text));
      const sent = text.slice(0, pushPayloadBytesMax);
      expect(end.found).toEqual({ kind: "end", ...end.stamped, slot, timeNs, text: sent });
      expect(missingIn(heartbeatDatagram(slot, timeNs, endsNs))).toBe(0n);
    }
  });

  it("is not recognised in other or damaged bytes, and never fails", () => {
    const good = new SharedDatagrams().copyOf(messageOf({ content: v0 }));
    expect(readPushDatagram(good)).not.toBeNull();
    const challenge = Buffer.from("SWPROOF10123456789abcdefshredway: prove this address");
    for (const other of [challenge, bytes(1203), bytes(1228), Buffer.alloc(64), Buffer.alloc(0)]) {
      expect(readPushDatagram(other)).toBeNull();
    }
    for (let length = 0; length < good.length; length++) {
      expect(readPushDatagram(good.subarray(0, length))).toBeNull();
    }
    expect(readPushDatagram(Buffer.concat([good, Uint8Array.of(0)]))).toBeNull();
    for (let round = 0; round < 20_000; round++) {
      const damaged = Buffer.from(good);
      for (let i = random.below(4); i >= 0; i--) damaged[random.below(72)] = random.below(256);
      readPushDatagram(damaged);
    }
  });
});
