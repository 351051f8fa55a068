// accountSubscribe and programSubscribe: accounts that a block may have changed.
//
// One notification per account and block, when the block reaches the commitment, with the account's
// state in that block.

import { u64Max } from "../../../core/primitives.ts";
import type { Account, Block } from "../../chain/types.ts";
import { readAccountFilter } from "../account-filters.ts";
import { encodeAccount, readAccountFormat } from "../encode-account.ts";
import { systemProgramId } from "../programs.ts";
import { writableKeys } from "../transaction-view.ts";
import { atSlot, isBlockAt, type SubscriptionKind } from "./kind.ts";

const written = new WeakMap<Block, ReadonlySet<string>>();

function writtenBy(block: Block): ReadonlySet<string> {
  let keys = written.get(block);
  if (!keys) {
    keys = new Set(block.transactions.flatMap(writableKeys));
    written.set(block, keys);
  }
  return keys;
}

/** The node's representation of a deleted account. */
const emptyAccount: Account = {
  lamports: 0n,
  data: new Uint8Array(0),
  owner: systemProgramId,
  executable: false,
  rentEpoch: u64Max,
};

export const accountKind: SubscriptionKind = {
  paramsMax: 2,
  open: ({ chain }, params, sink) => {
    const address = params.at(0, "address").pubkey();
    const config = params.config(1);
    const format = readAccountFormat(config);
    const commitment = config.commitment();
    return {
      accept: (item) => {
        if (!isBlockAt(item, commitment) || !writtenBy(item.block).has(address)) return;
        const account = chain.account(address, commitment) ?? emptyAccount;
        const value = encodeAccount(account, format, (other) => chain.account(other, commitment));
        sink.notify(atSlot(item.block.slot, value));
      },
    };
  },
};

export const programKind: SubscriptionKind = {
  paramsMax: 2,
  open: ({ chain }, params, sink) => {
    const program = params.at(0, "program").pubkey();
    const config = params.config(1);
    const format = readAccountFormat(config);
    const passes = readAccountFilter(config);
    const commitment = config.commitment();
    return {
      accept: (item) => {
        if (!isBlockAt(item, commitment)) return;
        for (const pubkey of writtenBy(item.block)) {
          const account = chain.account(pubkey, commitment);
          if (account?.owner !== program || !passes(account)) continue;
          const encoded = encodeAccount(account, format, (other) =>
            chain.account(other, commitment),
          );
          sink.notify(atSlot(item.block.slot, { pubkey, account: encoded }));
        }
      },
    };
  },
};
