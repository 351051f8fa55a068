// logsSubscribe and signatureSubscribe: the results of transactions.
//
// Called by session.ts through kinds.ts. A signature is looked up in the chain, not searched in
// blocks, so that a thousand waiting callers cost a thousand look-ups.

import type { Commitment, ExecutedTransaction } from "../../chain/types.ts";
import { invalidParams, type Params } from "../params.ts";
import { isVote } from "../transaction-view.ts";
import { atSlot, isBlockAt, type SubscriptionKind } from "./kind.ts";

type Passes = (transaction: ExecutedTransaction) => boolean;

function readLogsFilter(params: Params): Passes {
  const filter = params.at(0, "filter");
  if (typeof filter.json === "string") {
    const name = filter.oneOf(["all", "allWithVotes"]);
    return name === "all" ? (transaction) => !isVote(transaction) : () => true;
  }
  const mentions = filter.object().field("mentions").array(16);
  const [mentioned] = mentions;
  if (!mentioned || mentions.length > 1) {
    throw invalidParams("filter.mentions", "exactly one address", mentions.length);
  }
  const address = mentioned.pubkey();
  return ({ accountKeys }) => accountKeys.includes(address);
}

export const logsKind: SubscriptionKind = {
  paramsMax: 2,
  open: (_context, params, sink) => {
    const passes = readLogsFilter(params);
    const commitment = params.config(1).commitment();
    return {
      accept: (item) => {
        if (!isBlockAt(item, commitment)) return;
        for (const transaction of item.block.transactions) {
          if (!passes(transaction)) continue;
          const { signature, err, logs } = transaction;
          sink.notify(atSlot(item.block.slot, { signature, err, logs }));
        }
      },
    };
  },
};

const order: readonly Commitment[] = ["processed", "confirmed", "finalized"];

function hasReached(status: Commitment, wanted: Commitment): boolean {
  return order.indexOf(status) >= order.indexOf(wanted);
}

/**
 * Sends the result once and ends. "processed" is sent when a leader has executed the transaction;
 * so is "receivedSignature", if requested.
 */
export const signatureKind: SubscriptionKind = {
  paramsMax: 2,
  open: ({ chain }, params, sink) => {
    const signature = params.at(0, "signature").signature();
    const config = params.config(1);
    const commitment = config.commitment();
    const hasReceived = config.boolean("enableReceivedNotification");
    let isReceivedNotified = false;
    const received = (slot: bigint): void => {
      if (!hasReceived || isReceivedNotified) return;
      isReceivedNotified = true;
      sink.notify(atSlot(slot, "receivedSignature"));
    };
    const check = (): void => {
      const status = chain.status(signature);
      if (!status) return;
      received(status.slot);
      if (!hasReached(status.confirmationStatus, commitment)) return;
      sink.notify(atSlot(status.slot, { err: status.err }));
      sink.end();
    };
    return {
      begin: check,
      accept: (item) => {
        const isOurs = item.kind === "executed" && item.transaction.signature === signature;
        if (isOurs || isBlockAt(item, commitment)) check();
      },
    };
  },
};
