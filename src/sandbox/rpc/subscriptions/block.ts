// blockSubscribe: whole blocks, or their transactions that mention an account.
//
// Called by session.ts through kinds.ts. If the caller does not support the version of a
// transaction, the notification contains an error, and the next block is sent normally (the node
// sends nothing from then on).

import { isShredwayError } from "../../../core/errors.ts";
import type { Block, ExecutedTransaction } from "../../chain/types.ts";
import { settledCommitment } from "../blocks.ts";
import { type BlockFormat, encodeBlock, readBlockFormat } from "../encode-transaction.ts";
import type { Params } from "../params.ts";
import { atSlot, isBlockAt, type SubscriptionKind } from "./kind.ts";

/** The transactions to send; null: no transaction matches the filter. */
type Choose = (block: Block) => readonly ExecutedTransaction[] | null;

function readFilter(params: Params): Choose {
  const filter = params.at(0, "filter");
  if (typeof filter.json === "string") {
    filter.oneOf(["all"]);
    return ({ transactions }) => transactions;
  }
  const address = filter.object().field("mentionsAccountOrProgram").pubkey();
  return ({ transactions }) => {
    const chosen = transactions.filter(({ accountKeys }) => accountKeys.includes(address));
    return chosen.length === 0 ? null : chosen;
  };
}

/** A block with an unsupported version is sent as an error, not omitted. */
function encode(
  block: Block,
  format: BlockFormat,
  transactions: readonly ExecutedTransaction[],
): object {
  const { slot } = block;
  try {
    return { slot, block: encodeBlock(block, format, transactions), err: null };
  } catch (thrown) {
    if (!isShredwayError(thrown, "transaction_version")) throw thrown;
    const { details } = thrown;
    const version = details !== undefined && "version" in details ? details.version : null;
    return { slot, block: null, err: { UnsupportedTransactionVersion: version } };
  }
}

export const blockKind: SubscriptionKind = {
  paramsMax: 2,
  open: (_context, params, sink) => {
    const choose = readFilter(params);
    const config = params.config(1);
    const format = readBlockFormat(config, "showRewards");
    const commitment = settledCommitment(config);
    return {
      accept: (item) => {
        if (!isBlockAt(item, commitment)) return;
        const transactions = choose(item.block);
        if (!transactions) return;
        sink.notify(atSlot(item.block.slot, encode(item.block, format, transactions)));
      },
    };
  },
};
