// Messages of Yellowstone's service geyser.Geyser, as far as this server speaks them.
//
// Field numbers: docs/streams.md names the source. Requests are untrusted.

import { MessageReader, MessageWriter } from "../../core/grpc/protobuf.ts";
import { ReverseWriter } from "../../core/grpc/reverse-writer.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import { accountsOf, entriesOf, fieldsMax, votesOf } from "./filter-messages.ts";
import type { NamedFilter } from "./named-filter.ts";
import { writeTransactionInfo } from "./transaction-message.ts";
import { readWireTransaction } from "./wire-transaction.ts";

const service = "/geyser.Geyser";
export const geyserPaths = {
  subscribe: `${service}/Subscribe`,
  subscribeDeshred: `${service}/SubscribeDeshred`,
  subscribePreprocessed: `${service}/SubscribePreprocessed`,
  subscribeReplayInfo: `${service}/SubscribeReplayInfo`,
  ping: `${service}/Ping`,
  getVersion: `${service}/GetVersion`,
  getSlot: `${service}/GetSlot`,
  getBlockHeight: `${service}/GetBlockHeight`,
  getLatestBlockhash: `${service}/GetLatestBlockhash`,
  isBlockhashValid: `${service}/IsBlockhashValid`,
} as const;

const slotStatus = { firstShredReceived: 3, completed: 4 } as const;

export interface DeshredRequest {
  readonly filters: readonly (NamedFilter & { readonly includesUpdateParent: boolean })[];
  /** Names of the filters of slots. */
  readonly slots: readonly string[];
  /** The id of a ping; undefined: the request is not a ping. */
  readonly ping: number | undefined;
}

/** Throws GrpcError, or ProtobufError for a malformed message. */
export function decodeDeshredRequest(bytes: Uint8Array): DeshredRequest {
  const reader = new MessageReader(bytes, fieldsMax);
  const ping = reader.message(2);
  return {
    filters: entriesOf(reader, 1, "deshred_transactions").map(([name, value]) =>
      filterOf(name, value),
    ),
    slots: entriesOf(reader, 3, "slots").flatMap(([name, value]) =>
      wantsSlots(value) ? [name] : [],
    ),
    ping: ping && Number(BigInt.asIntN(32, ping.uint(1))),
  };
}

function filterOf(name: string, reader: MessageReader): DeshredRequest["filters"][number] {
  const accounts = (field: number, key: string) =>
    accountsOf(reader, field, `deshred_transactions.${name}.${key}`);
  return {
    name,
    votes: votesOf(reader.optionalBool(1)),
    signature: null,
    include: accounts(2, "account_include"),
    exclude: accounts(3, "account_exclude"),
    required: accounts(4, "account_required"),
    includesUpdateParent: reader.optionalBool(5) ?? false,
  };
}

/** Slots have no commitment before they are executed, so a filter by commitment matches none. */
function wantsSlots(filter: MessageReader): boolean {
  return filter.optionalBool(1) !== true && filter.optionalBool(2) !== false;
}

/** The largest transaction has 4,096 bytes; a message repeats its field headers and its signature. */
const scratch = new ReverseWriter(64 * 1024);

/** All fields of SubscribeUpdateDeshred but the names of the filters. */
export function encodeDeshredTransaction(message: StreamMessage): Buffer {
  const transaction = readWireTransaction(message.content);
  scratch.reset();
  writeTime(scratch, message.arrivalNs);
  const updateEnd = scratch.mark;
  scratch.uint(2, Number(message.slot));
  const infoEnd = scratch.mark;
  scratch.uint(7, message.shredIndex + 1);
  scratch.uint(6, message.batchIndex);
  // Both lists are empty if an address is unknown.
  const { writable = [], readonly = [] } = message.loadedAddresses ?? {};
  for (const address of readonly.toReversed()) scratch.bytes(5, address);
  for (const address of writable.toReversed()) scratch.bytes(4, address);
  writeTransactionInfo(scratch, message, transaction);
  scratch.message(1, infoEnd);
  scratch.message(2, updateEnd);
  return scratch.finish();
}

/** The same for the beginning or the end of a slot. */
export function encodeSlotUpdate({ kind, slot, parent, arrivalNs }: StreamMessage): Buffer {
  scratch.reset();
  writeTime(scratch, arrivalNs);
  const end = scratch.mark;
  scratch.uint(3, slotStatus[kind === "slot_begin" ? "firstShredReceived" : "completed"]);
  scratch.uint(2, parent);
  scratch.uint(1, Number(slot));
  scratch.message(6, end);
  return scratch.finish();
}

/** The same for an update-parent marker. */
export function encodeUpdateParent(message: StreamMessage): Buffer {
  scratch.reset();
  writeTime(scratch, message.arrivalNs);
  const end = scratch.mark;
  scratch.bytes(4, message.content);
  scratch.uint(3, message.parent);
  scratch.uint(2, message.batchIndex);
  scratch.uint(1, Number(message.slot));
  scratch.message(7, end);
  return scratch.finish();
}

/** The field `created_at`. */
export function writeTime(writer: ReverseWriter, timeNs: bigint, field = 5): void {
  const end = writer.mark;
  writer.uint(2, Number(timeNs % 1_000_000_000n));
  writer.uint(1, Number(timeNs / 1_000_000_000n));
  writer.message(field, end);
}

/** The names of the filters, to be followed by the other fields. */
export function encodeFilterNames(names: readonly string[]): Uint8Array {
  return new MessageWriter().strings(1, names).finish();
}

export const pingUpdate = new MessageWriter().message(3, new Uint8Array()).finish();

export function pongUpdate(id: number): Uint8Array {
  const pong = new MessageWriter().uint(1, BigInt.asUintN(64, BigInt(id))).finish();
  return new MessageWriter().message(4, pong).finish();
}
