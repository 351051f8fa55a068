// Methods for blocks, transactions and signatures.
//
// Called through table.ts. As in the node, blocks and transactions are visible when confirmed; only
// getSignatureStatuses returns processed ones.

import { ShredwayError } from "../../../core/errors.ts";
import type { ExecutedTransaction } from "../../chain/types.ts";
import { blockAt, blocksBetween, settledCommitment } from "../blocks.ts";
import {
  encodeBlock,
  encodeTransaction,
  readBlockFormat,
  readTransactionFormat,
} from "../encode-transaction.ts";
import {
  checkMinContextSlot,
  type MethodContext,
  type MethodTable,
  withContext,
} from "../method.ts";
import { Config, invalidParams, type Params } from "../params.ts";
import { memoOf } from "../transaction-view.ts";

const signatureStatusesMax = 256;
/** Number of rooted slots in a node's status cache; older statuses are in its history only. */
const statusCacheSlots = 300n;
const signaturesMax = 1000;
const blockRangeMax = 500_000n;

/** The configuration, or only the name of an encoding. */
function encodingConfig(params: Params): Config {
  const value = params.at(1, "configuration");
  return typeof value.json === "string"
    ? new Config(value.what, { encoding: value.json })
    : params.config(1);
}

function getBlock({ chain }: MethodContext, params: Params): unknown {
  const slot = params.at(0, "slot").integer();
  const config = encodingConfig(params);
  const format = readBlockFormat(config, "rewards");
  return encodeBlock(blockAt(chain, slot, settledCommitment(config)), format);
}

function getBlocks({ chain }: MethodContext, params: Params): unknown {
  const first = params.at(0, "start slot").integer();
  const second = params.at(1, "end slot");
  const isConfigSecond = typeof second.json === "object" && second.json !== null;
  const tip = chain.slot(settledCommitment(params.config(isConfigSecond ? 1 : 2)));
  const last = isConfigSecond ? tip : second.or(tip, (value) => value.integer());
  if (last > first + blockRangeMax) {
    throw invalidParams("end slot", `at most ${first + blockRangeMax}`, last);
  }
  return slotsOf(blocksBetween(chain, first, last < tip ? last : tip));
}

function slotsOf(blocks: Iterable<{ readonly slot: bigint }>): bigint[] {
  return Array.from(blocks, ({ slot }) => slot);
}

function getBlocksWithLimit({ chain }: MethodContext, params: Params): unknown {
  const first = params.at(0, "start slot").integer();
  const limit = params.at(1, "limit").count(Number(blockRangeMax));
  const tip = chain.slot(settledCommitment(params.config(2)));
  return slotsOf(blocksBetween(chain, first, tip)).slice(0, limit);
}

function getBlockTime({ chain }: MethodContext, params: Params): bigint {
  return blockAt(chain, params.at(0, "slot").integer(), "processed").blockTime;
}

function getTransaction({ chain }: MethodContext, params: Params): unknown {
  const signature = params.at(0, "signature").signature();
  const config = encodingConfig(params);
  const format = readTransactionFormat(config);
  const commitment = settledCommitment(config);
  const found = chain.transaction(signature);
  if (!found || found.block.slot > chain.slot(commitment)) return null;
  const { slot, blockTime } = found.block;
  return { slot, ...encodeTransaction(found.transaction, format), blockTime };
}

function getSignatureStatuses(context: MethodContext, params: Params): unknown {
  const signatures = params
    .at(0, "signatures")
    .array(signatureStatusesMax)
    .map((value) => value.signature());
  const searchesHistory = params.config(1).boolean("searchTransactionHistory");
  const { chain } = context;
  const firstCached = chain.slot("finalized") - statusCacheSlots;
  const statuses = signatures.map((signature) => {
    const status = chain.status(signature);
    if (!status || (status.slot < firstCached && !searchesHistory)) return null;
    return { ...status, status: resultOf(status.err) };
  });
  return withContext(context, "processed", statuses);
}

function resultOf(err: ExecutedTransaction["err"]): object {
  return err === null ? { Ok: null } : { Err: err };
}

function getSignaturesForAddress({ chain }: MethodContext, params: Params): unknown {
  const address = params.at(0, "address").pubkey();
  const config = params.config(1);
  const before = config.field("before").or(null, (value) => value.signature());
  const until = config.field("until").or(null, (value) => value.signature());
  const limit = config.field("limit").or(signaturesMax, (value) => value.count(signaturesMax, 1));
  const commitment = settledCommitment(config);
  checkMinContextSlot(chain, commitment, config.minContextSlot());
  const tip = chain.slot(commitment);
  const rows: object[] = [];
  let hasBegun = before === null;
  for (const { signature, slot } of chain.signaturesFor(address)) {
    if (signature === until || rows.length === limit) break;
    if (hasBegun && slot <= tip) rows.push(signatureRow(chain, signature, slot));
    hasBegun ||= signature === before;
  }
  return rows;
}

function signatureRow(chain: MethodContext["chain"], signature: string, slot: bigint): object {
  const found = chain.transaction(signature);
  return {
    signature,
    slot,
    err: found?.transaction.err ?? null,
    memo: found ? memoOf(found.transaction) : null,
    blockTime: found?.block.blockTime ?? null,
    confirmationStatus: chain.status(signature)?.confirmationStatus ?? "finalized",
  };
}

function firstRetainedSlot({ chain }: MethodContext): bigint {
  return chain.firstKeptSlot();
}

function getBlockCommitment({ chain }: MethodContext, params: Params): unknown {
  const slot = params.at(0, "slot").integer();
  const totalStake = chain.validators().reduce((sum, each) => sum + each.stakeLamports, 0n);
  if (slot <= chain.slot("processed")) return { commitment: null, totalStake };
  throw new ShredwayError("block_unavailable", `Block not available for slot ${slot}`);
}

export const historyMethods: MethodTable = {
  getBlock: { paramsMax: 2, run: getBlock },
  getBlocks: { paramsMax: 3, run: getBlocks },
  getBlocksWithLimit: { paramsMax: 3, run: getBlocksWithLimit },
  getBlockTime: { paramsMax: 1, run: getBlockTime },
  getBlockCommitment: { paramsMax: 1, run: getBlockCommitment },
  getFirstAvailableBlock: { paramsMax: 0, run: firstRetainedSlot },
  minimumLedgerSlot: { paramsMax: 0, run: firstRetainedSlot },
  getTransaction: { paramsMax: 2, run: getTransaction },
  getSignatureStatuses: { paramsMax: 2, run: getSignatureStatuses },
  getSignaturesForAddress: { paramsMax: 2, run: getSignaturesForAddress },
};
