// Messages of the two dialects that `shredway stream` speaks: requests, and what it shows of the responses.
//
// Pure. Responses are untrusted: decoders throw ProtobufError, or RangeError for a malformed transaction.

import { encodeBase58 } from "../../core/base58.ts";
import { MessageReader, MessageWriter } from "../../core/grpc/protobuf.ts";
import { WireReader } from "../../core/transactions/wire-reader.ts";
import { readTransaction, type WireTransaction } from "../../relay/streams/wire-transaction.ts";
import type { FilterChoice, StreamDialect } from "./stream-target.ts";

export const streamPaths: Readonly<Record<StreamDialect, string>> = {
  deshred: "/geyser.Geyser/SubscribeDeshred",
  entries: "/shredstream.ShredstreamProxy/SubscribeEntries",
};

export interface ShownTransaction {
  readonly kind: "transaction";
  readonly slot: bigint;
  readonly signature: string;
  readonly isVote: boolean;
  /** null: the dialect does not contain it. */
  readonly createdAtNs: bigint | null;
}

/** Everything in `slot` before the FEC set is withdrawn. */
export interface ShownRestart {
  readonly kind: "update_parent";
  readonly slot: bigint;
  readonly fecSetIndex: bigint;
  readonly parentSlot: bigint;
}

interface SlotBegin {
  readonly kind: "slot";
  readonly slot: bigint;
  /** 0: unknown. */
  readonly parent: bigint;
}

export type StreamEvent =
  | ShownTransaction
  | ShownRestart
  | SlotBegin
  /** The server asks for an answer. */
  | { readonly kind: "ping" };

const voteProgramId = "Vote111111111111111111111111111111111111111";
const filterName = "stream";
/** Yellowstone's SlotStatus. */
const firstShredReceived = 3n;

/** The first request of a call. */
export function encodeRequest(dialect: StreamDialect, filter: FilterChoice): Uint8Array {
  if (dialect === "entries") return new Uint8Array();
  const { vote, include, exclude, required } = filter;
  const conditions = new MessageWriter()
    .optionalBool(1, vote)
    .strings(2, include)
    .strings(3, exclude)
    .strings(4, required)
    .uint(5, 1);
  const entry = new MessageWriter().string(1, filterName).message(2, conditions.finish());
  const slots = new MessageWriter().string(1, filterName).message(2, new Uint8Array());
  return new MessageWriter().message(1, entry.finish()).message(3, slots.finish()).finish();
}

/** The answer to a ping, which changes no filter. */
export const pingRequest = new MessageWriter()
  .message(2, new MessageWriter().uint(1, 1).finish())
  .finish();

export function decodeUpdate(dialect: StreamDialect, bytes: Uint8Array): readonly StreamEvent[] {
  const reader = new MessageReader(bytes);
  return dialect === "entries" ? eventsOfEntries(reader) : eventsOfDeshred(reader);
}

function eventsOfDeshred(reader: MessageReader): readonly StreamEvent[] {
  const update = reader.message(2);
  const info = update?.message(1);
  if (update && info) {
    return [
      {
        kind: "transaction",
        slot: update.uint(2),
        signature: encodeBase58(info.bytes(1)),
        isVote: info.uint(2) !== 0n,
        createdAtNs: timeOf(reader.message(5)),
      },
    ];
  }
  const slot = reader.message(6);
  if (slot) {
    const isBegin = slot.uint(3) === firstShredReceived;
    return isBegin ? [{ kind: "slot", slot: slot.uint(1), parent: slot.uint(2) }] : [];
  }
  const restart = reader.message(7);
  if (restart) {
    const [fecSetIndex, parentSlot] = [restart.uint(2), restart.uint(3)];
    return [{ kind: "update_parent", slot: restart.uint(1), fecSetIndex, parentSlot }];
  }
  return reader.message(3) ? [{ kind: "ping" }] : [];
}

function timeOf(time: MessageReader | undefined): bigint | null {
  return time ? time.uint(1) * 1_000_000_000n + time.uint(2) : null;
}

/** A block marker has no entries, so its batch has no events. */
function eventsOfEntries(message: MessageReader): readonly StreamEvent[] {
  const slot = message.uint(1);
  const reader = new WireReader(message.bytes(2));
  const events: StreamEvent[] = [];
  for (let entries = reader.uint(8); entries > 0n; entries--) {
    reader.take(8 + 32); // number of hashes, hash
    for (let left = reader.uint(8); left > 0n; left--) {
      const transaction = readTransaction(reader);
      events.push({
        kind: "transaction",
        slot,
        signature: encodeBase58(transaction.signatures[0] ?? new Uint8Array()),
        isVote: isVote(transaction),
        createdAtNs: null,
      });
    }
  }
  return events;
}

/** As the relay decides it: one instruction, of the vote program. */
function isVote({ instructions, keys }: WireTransaction): boolean {
  const [only, ...others] = instructions;
  const program = only && keys[only.program];
  return others.length === 0 && program !== undefined && encodeBase58(program) === voteProgramId;
}
