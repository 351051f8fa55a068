// Messages of Yellowstone's dialect with the codec of core/grpc/protobuf.ts: updates whose numbers a leader
// chooses, and requests that would cost much time.

import { describe, expect, it } from "vitest";
import { MessageReader, MessageWriter } from "../../../src/core/grpc/protobuf.ts";
import type { StreamMessage } from "../../../src/relay/data-plane/relay-streams.ts";
import {
  decodeDeshredRequest,
  encodeDeshredTransaction,
  encodeUpdateParent,
} from "../../../src/relay/streams/geyser-messages.ts";

const largest = 2n ** 64n - 1n;

const messageWith = (fields: Partial<StreamMessage>): StreamMessage => ({
  kind: "transaction",
  tier: "tier-1",
  filters: [],
  slot: 120n,
  parent: 0n,
  arrivalNs: 1_000_000_000n,
  generation: 0,
  batchIndex: 32,
  ordinal: 0,
  shredIndex: 40,
  isVote: false,
  replay: 0,
  content: new Uint8Array(32),
  ...fields,
});

/** Version 1 with one account, one instruction without data, and this priority fee. */
function transactionWith(priorityFee: bigint): Uint8Array {
  const fee = Buffer.alloc(8);
  fee.writeBigUInt64LE(priorityFee);
  return Buffer.concat([
    Uint8Array.of(0x81, 1, 0, 0, 3, 0, 0, 0),
    new Uint8Array(32).fill(2), // lifetime
    Uint8Array.of(1, 1),
    new Uint8Array(32).fill(3), // account
    fee,
    Uint8Array.of(0, 0, 0, 0),
    new Uint8Array(64).fill(4), // signature
  ]);
}

describe("updates", () => {
  it("contain the parent slot of a marker as the leader wrote it", () => {
    const update = encodeUpdateParent(messageWith({ kind: "restart", parent: largest }));
    expect(new MessageReader(update).message(7)?.uint(3)).toBe(largest);
  });

  it("contain the priority fee of a transaction as it was signed", () => {
    for (const fee of [0n, 5000n, 2n ** 53n + 1n, largest]) {
      const update = encodeDeshredTransaction(messageWith({ content: transactionWith(fee) }));
      const transaction = new MessageReader(update).message(2)?.message(1)?.message(3);
      expect(transaction?.message(2)?.message(7)?.uint(1)).toBe(fee);
    }
  });
});

describe("a request", () => {
  /** Fields 1 of these filters. */
  const requestOf = (filters: readonly Uint8Array[]): Uint8Array => {
    const request = new MessageWriter();
    for (const [i, filter] of filters.entries()) {
      request.message(1, new MessageWriter().string(1, `${i}`).message(2, filter).finish());
    }
    return request.finish();
  };

  it("is refused with more filters than all streams may have", () => {
    const filters = Array.from({ length: 4097 }, () => new Uint8Array());
    expect(decodeDeshredRequest(requestOf(filters.slice(1))).filters).toHaveLength(4096);
    expect(() => decodeDeshredRequest(requestOf(filters))).toThrow(
      "INVALID_ARGUMENT: deshred_transactions: expected at most 4096 filters, got 4097",
    );
  });

  it("is refused with more fields in all its filters than a request may have", () => {
    const unknownFields = Buffer.alloc(60_000, Uint8Array.of(0x78, 1));
    expect(decodeDeshredRequest(requestOf([unknownFields])).filters).toHaveLength(1);
    expect(() => decodeDeshredRequest(requestOf([unknownFields, unknownFields]))).toThrow(
      "INVALID_ARGUMENT: deshred_transactions: expected at most 60000 fields in all filters, got more",
    );
  });
});
