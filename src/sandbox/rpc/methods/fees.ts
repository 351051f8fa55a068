// Methods for blockhashes and fees.
//
// Called through table.ts. Fees of messages follow the chain's own rules; the fees of a block are
// computed once.

import { feeOf } from "../../chain/fees.ts";
import type { Block } from "../../chain/types.ts";
import { blocksBetween } from "../blocks.ts";
import { encodeBase58 } from "../bytes.ts";
import { commitmentAt, type MethodContext, type MethodTable, withContext } from "../method.ts";
import type { Params } from "../params.ts";
import { isVote, wireOf, writableKeys } from "../transaction-view.ts";
import { messageAsTransaction } from "../wire-params.ts";

const feeBlocks = 150n;
const lockedAccountsMax = 128;

function latestBlockhash(context: MethodContext, params: Params): unknown {
  const commitment = commitmentAt(context, params.config(0));
  return withContext(context, commitment, context.chain.latestBlockhash(commitment));
}

function isBlockhashValid(context: MethodContext, params: Params): unknown {
  const blockhash = params.at(0, "blockhash").blockhash();
  const commitment = commitmentAt(context, params.config(1));
  return withContext(context, commitment, context.chain.isBlockhashValid(blockhash));
}

function feeForMessage(context: MethodContext, params: Params): unknown {
  const transaction = messageAsTransaction(params.at(0, "message"));
  const commitment = commitmentAt(context, params.config(1));
  const isValid = context.chain.isBlockhashValid(encodeBase58(transaction.blockhash));
  return withContext(context, commitment, isValid ? feeOf(transaction).lamports : null);
}

/** Lowest price of a transaction in a block, and the lowest price per writable account. */
interface BlockPrices {
  readonly lowest: bigint;
  readonly byAccount: ReadonlyMap<string, bigint>;
}

const blockPrices = new WeakMap<Block, BlockPrices>();

function pricesOf(block: Block): BlockPrices {
  const known = blockPrices.get(block);
  if (known) return known;
  const byAccount = new Map<string, bigint>();
  let lowest: bigint | null = null;
  for (const transaction of block.transactions) {
    if (isVote(transaction)) continue;
    const { price } = feeOf(wireOf(transaction));
    if (lowest === null || price < lowest) lowest = price;
    for (const key of writableKeys(transaction)) {
      const before = byAccount.get(key);
      if (before === undefined || price < before) byAccount.set(key, price);
    }
  }
  const prices = { lowest: lowest ?? 0n, byAccount };
  blockPrices.set(block, prices);
  return prices;
}

function recentPrioritizationFees({ chain }: MethodContext, params: Params): unknown {
  const accounts = params
    .at(0, "addresses")
    .or([], (value) => value.array(lockedAccountsMax).map((address) => address.pubkey()));
  const tip = chain.slot("processed");
  const first = tip > feeBlocks ? tip - feeBlocks + 1n : 0n;
  return Array.from(blocksBetween(chain, first, tip), (block) => {
    const { lowest, byAccount } = pricesOf(block);
    const prioritizationFee = accounts.reduce((fee, account) => {
      const price = byAccount.get(account) ?? 0n;
      return price > fee ? price : fee;
    }, lowest);
    return { slot: block.slot, prioritizationFee };
  });
}

export const feeMethods: MethodTable = {
  getLatestBlockhash: { paramsMax: 1, run: latestBlockhash },
  isBlockhashValid: { paramsMax: 2, run: isBlockhashValid },
  getFeeForMessage: { paramsMax: 2, run: feeForMessage },
  getRecentPrioritizationFees: { paramsMax: 1, run: recentPrioritizationFees },
};
