// slotSubscribe, rootSubscribe, slotsUpdatesSubscribe: the slot events of the chain.
//
// Called by session.ts through kinds.ts. It never reads accounts. The endpoint receives no shreds,
// so "firstShredReceived" is sent when a leader begins its slot.

import type { Block } from "../../chain/types.ts";
import { isBlockAt, type SubscriptionKind } from "./kind.ts";

export const slotKind: SubscriptionKind = {
  paramsMax: 0,
  open: (_context, _params, sink) => ({
    accept: (item) => {
      if (item.kind !== "slot") return;
      const { slot, parent, root } = item;
      sink.notify({ slot, parent, root });
    },
  }),
};

export const rootKind: SubscriptionKind = {
  paramsMax: 0,
  open: (_context, _params, sink) => ({
    accept: (item) => {
      if (isBlockAt(item, "finalized")) sink.notify(item.block.slot);
    },
  }),
};

function frozenStats({ transactions }: Block): object {
  const failed = transactions.filter(({ err }) => err !== null).length;
  return {
    numTransactionEntries: transactions.length,
    numSuccessfulTransactions: transactions.length - failed,
    numFailedTransactions: failed,
    maxTransactionsPerEntry: transactions.length === 0 ? 0 : 1,
  };
}

export const slotsUpdatesKind: SubscriptionKind = {
  paramsMax: 0,
  open: ({ clock }, _params, sink) => ({
    accept: (item) => {
      const timestamp = clock.nowNs() / 1_000_000n;
      if (item.kind === "slot") {
        const { slot, parent } = item;
        sink.notify({ type: "firstShredReceived", slot, timestamp });
        sink.notify({ type: "createdBank", slot, parent, timestamp });
      } else if (item.kind === "block") {
        const { slot } = item.block;
        if (item.commitment === "confirmed") {
          sink.notify({ type: "optimisticConfirmation", slot, timestamp });
        } else if (item.commitment === "finalized") {
          sink.notify({ type: "root", slot, timestamp });
        } else {
          sink.notify({ type: "completed", slot, timestamp });
          sink.notify({ type: "frozen", slot, timestamp, stats: frozenStats(item.block) });
        }
      }
    },
  }),
};
