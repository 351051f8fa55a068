// Messages of the gRPC dialects that `shredway stream` and `shredway race` speak: requests, and what they show of
// the responses.
//
// Pure. Responses are untrusted: decoders throw ProtobufError, or RangeError for a malformed transaction.

import { encodeBase58 } from "../../core/base58.ts";
import { MessageReader, MessageWriter } from "../../core/grpc/protobuf.ts";
import { WireReader } from "../../core/transactions/wire-reader.ts";
import { readTransaction } from "../../relay/streams/wire-transaction.ts";
import type { FilterChoice, StreamDialect } from "./stream-target.ts";

export const streamPaths: Readonly<Record<StreamDialect, string>> = {
  deshred: "/geyser.Geyser/SubscribeDeshred",
  preprocessed: "/geyser.Geyser/SubscribePreprocessed",
  transactions: "/shredstream.ShrederService/SubscribeTransactions",
  entries: "/shredstream.ShredstreamProxy/SubscribeEntries",
};

export interface ShownTransaction {
  readonly kind: "transaction";
  readonly slot: bigint;
  readonly signature: string;
  readonly isVote: boolean;
  /** First data shred of its batch; 0: the dialect does not contain it. */
  readonly batchIndex: bigint;
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
  const conditions = new MessageWriter();
  const named = (bytes: Uint8Array) =>
    new MessageWriter().string(1, filterName).message(2, bytes).finish();
  if (dialect === "transactions") {
    conditions.strings(3, include).strings(4, exclude).strings(6, required);
    return new MessageWriter().message(3, named(conditions.finish())).finish();
  }
  conditions.optionalBool(1, vote);
  if (dialect === "preprocessed") {
    conditions.strings(3, include).strings(4, exclude).strings(5, required);
    return new MessageWriter().message(1, named(conditions.finish())).finish();
  }
  conditions.strings(2, include).strings(3, exclude).strings(4, required).uint(5, 1);
  return new MessageWriter()
    .message(1, named(conditions.finish()))
    .message(3, named(new Uint8Array()))
    .finish();
}

/** The answer to a ping, which changes no filter. */
export const pingRequest = new MessageWriter()
  .message(2, new MessageWriter().uint(1, 1).finish())
  .finish();

export function decodeUpdate(dialect: StreamDialect, bytes: Uint8Array): readonly StreamEvent[] {
  const reader = new MessageReader(bytes);
  if (dialect === "entries") return eventsOfEntries(reader);
  return dialect === "transactions" ? eventsOfTransactions(reader) : eventsOfUpdate(reader);
}

/** Updates of `preprocessed` have some of the fields of `deshred`. */
function eventsOfUpdate(reader: MessageReader): readonly StreamEvent[] {
  const update = reader.message(2);
  const info = update?.message(1);
  if (update && info) {
    return [
      {
        kind: "transaction",
        slot: update.uint(2),
        signature: encodeBase58(info.bytes(1)),
        isVote: info.uint(2) !== 0n,
        batchIndex: info.uint(6),
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

function eventsOfTransactions(reader: MessageReader): readonly StreamEvent[] {
  const update = reader.message(4);
  const transaction = update?.message(1);
  const message = transaction?.message(2);
  if (!update || !transaction || !message) return [];
  const [signature = new Uint8Array()] = transaction.byteStrings(1);
  const programs = message
    .byteStrings(4)
    .map((instruction) => Number(new MessageReader(instruction).uint(1)));
  return [
    {
      kind: "transaction",
      slot: update.uint(2),
      signature: encodeBase58(signature),
      isVote: isVote(programs, message.byteStrings(2)),
      batchIndex: 0n,
      createdAtNs: timeOf(reader.message(11)),
    },
  ];
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
        isVote: isVote(
          transaction.instructions.map(({ program }) => program),
          transaction.keys,
        ),
        batchIndex: 0n,
        createdAtNs: null,
      });
    }
  }
  return events;
}

/** As the relay decides it: one instruction, of the vote program. `programs`: their places among the keys. */
function isVote(programs: readonly number[], keys: readonly Uint8Array[]): boolean {
  const [only, ...others] = programs;
  const program = only === undefined ? undefined : keys[only];
  return others.length === 0 && program !== undefined && encodeBase58(program) === voteProgramId;
}
