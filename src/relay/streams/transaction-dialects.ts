// Messages of the gRPC dialects that send transactions and nothing else: Helius's SubscribePreprocessed and
// Shreder's SubscribeTransactions.
//
// Both are like Yellowstone's SubscribeDeshred without slots and update-parent messages.

import { MessageReader } from "../../core/grpc/protobuf.ts";
import { ReverseWriter } from "../../core/grpc/reverse-writer.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import { accountsOf, entriesOf, fieldsMax, signatureOf, votesOf } from "./filter-messages.ts";
import { writeTime } from "./geyser-messages.ts";
import type { NamedFilter } from "./named-filter.ts";
import { writeTransaction, writeTransactionInfo } from "./transaction-message.ts";
import type { WireTransaction } from "./wire-transaction.ts";

export const shrederPaths = {
  entries: "/shredstream.ShrederService/SubscribeEntries",
  transactions: "/shredstream.ShrederService/SubscribeTransactions",
} as const;

export interface TransactionRequest {
  readonly filters: readonly NamedFilter[];
  /** The id of a ping; undefined: the request is not a ping. */
  readonly ping: number | undefined;
}

export interface TransactionDialect {
  readonly hasPings: boolean;
  /** Throws GrpcError, or ProtobufError for a malformed message. */
  decode(request: Uint8Array): TransactionRequest;
  /** All fields of an update but the names of the filters. */
  encode(message: StreamMessage, transaction: WireTransaction): Buffer;
}

/** The largest transaction has 4,096 bytes; a message repeats its field headers and its signature. */
const scratch = new ReverseWriter(64 * 1024);

export const preprocessed: TransactionDialect = {
  hasPings: true,
  decode(request) {
    const reader = new MessageReader(request, fieldsMax);
    const ping = reader.message(2);
    return {
      filters: entriesOf(reader, 1, "transactions").map(([name, filter]) => ({
        name,
        votes: votesOf(filter.optionalBool(1)),
        signature: signatureOf(filter, 2, `transactions.${name}.signature`),
        ...accountsIn(filter, name, { include: 3, exclude: 4, required: 5 }),
      })),
      ping: ping && Number(BigInt.asIntN(32, ping.uint(1))),
    };
  },
  encode(message, transaction) {
    scratch.reset();
    writeTime(scratch, message.arrivalNs);
    const updateEnd = scratch.mark;
    scratch.uint(2, Number(message.slot));
    const infoEnd = scratch.mark;
    writeTransactionInfo(scratch, message, transaction);
    scratch.message(1, infoEnd);
    scratch.message(2, updateEnd);
    return scratch.finish();
  },
};

export const shreder: TransactionDialect = {
  hasPings: false,
  decode(request) {
    const reader = new MessageReader(request, fieldsMax);
    return {
      filters: entriesOf(reader, 3, "transactions").map(([name, filter]) => ({
        name,
        votes: "any",
        signature: null,
        ...accountsIn(filter, name, { include: 3, exclude: 4, required: 6 }),
      })),
      ping: undefined,
    };
  },
  encode(message, transaction) {
    scratch.reset();
    writeTime(scratch, message.arrivalNs, 11);
    const updateEnd = scratch.mark;
    scratch.uint(2, Number(message.slot));
    writeTransaction(scratch, 1, transaction);
    scratch.message(4, updateEnd);
    return scratch.finish();
  },
};

type AccountLists = Pick<NamedFilter, "include" | "exclude" | "required">;

/** `fields`: numbers of the lists. */
function accountsIn(
  filter: MessageReader,
  name: string,
  fields: Readonly<Record<keyof AccountLists, number>>,
): AccountLists {
  const read = (list: keyof AccountLists) =>
    accountsOf(filter, fields[list], `transactions.${name}.account_${list}`);
  return { include: read("include"), exclude: read("exclude"), required: read("required") };
}
