// Landed transactions and blocks in the format of the RPC.
//
// Called by getTransaction, getBlock, blockSubscribe and simulateTransaction (inner instructions).
// Forms: json, jsonParsed, base58, base64, and accounts only. As in the node, a caller that gives
// no version gets only legacy transactions, and otherwise the error -32015.

import { ShredwayError } from "../../core/errors.ts";
import type { Block, ExecutedTransaction, InnerInstructions } from "../chain/types.ts";
import type { WireTransaction } from "../chain/wire.ts";
import { dataText, encodeBase58, encodeBase64 } from "./bytes.ts";
import type { Config } from "./params.ts";
import { encodeParsedInstruction } from "./parse-instruction.ts";
import { isWritable, wireOf } from "./transaction-view.ts";

const encodings = ["json", "jsonParsed", "base58", "base64", "binary"] as const;
type TransactionEncoding = (typeof encodings)[number];
const details = ["full", "accounts", "signatures", "none"] as const;
/** Stack height of top-level instructions. */
const topStackHeight = 1;

interface TransactionFormat {
  readonly encoding: TransactionEncoding;
  /** null: the caller supports only legacy transactions. */
  readonly versionMax: number | null;
}

export interface BlockFormat extends TransactionFormat {
  readonly details: (typeof details)[number];
  readonly hasRewards: boolean;
}

export function readTransactionFormat(config: Config): TransactionFormat {
  return {
    encoding: config.encoding(encodings, "json"),
    versionMax: config
      .field("maxSupportedTransactionVersion")
      .or<number | null>(null, (value) => value.count(255)),
  };
}

/** `rewards`: the name of the field; subscriptions use showRewards. */
export function readBlockFormat(config: Config, rewards: string): BlockFormat {
  return {
    ...readTransactionFormat(config),
    details: config.field("transactionDetails").or("full", (value) => value.oneOf(details)),
    hasRewards: config.boolean(rewards, true),
  };
}

/**
 * Throws ShredwayError "transaction_version" if the caller does not support the transaction's
 * version.
 */
function versionFields(
  { version }: ExecutedTransaction,
  { versionMax }: TransactionFormat,
): { version?: "legacy" | number } {
  if (versionMax === null && version === "legacy") return {};
  if (versionMax !== null && (version === "legacy" || version <= versionMax)) return { version };
  throw new ShredwayError(
    "transaction_version",
    `Transaction version (${version}) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": ${version}`,
    { details: { version } },
  );
}

function encodeInner(
  { index, instructions }: InnerInstructions,
  accountKeys: readonly string[],
  isParsed: boolean,
): object {
  return {
    index,
    instructions: instructions.map(({ programIdIndex, accounts, data, stackHeight }) =>
      isParsed
        ? encodeParsedInstruction({
            programId: accountKeys[programIdIndex] ?? "",
            accounts: accounts.map((account) => accountKeys[account] ?? ""),
            data,
            stackHeight,
          })
        : { programIdIndex, accounts, data: dataText(data), stackHeight },
    ),
  };
}

export function encodeInnerInstructions(
  inner: readonly InnerInstructions[],
  accountKeys: readonly string[],
  isParsed: boolean,
): object[] {
  return inner.map((instructions) => encodeInner(instructions, accountKeys, isParsed));
}

export function encodeReturnData(data: ExecutedTransaction["returnData"]): object | null {
  return data && { programId: data.programId, data: [encodeBase64(data.data), "base64"] };
}

function shortMeta(transaction: ExecutedTransaction): object {
  const { err, fee, preBalances, postBalances } = transaction;
  return {
    err,
    status: err === null ? { Ok: null } : { Err: err },
    fee,
    preBalances,
    postBalances,
    // The VM stores no history of token amounts.
    preTokenBalances: [],
    postTokenBalances: [],
  };
}

function fullMeta(transaction: ExecutedTransaction, isParsed: boolean): object {
  const { accountKeys, innerInstructions, loadedAddresses, logs, computeUnits } = transaction;
  const returnData = encodeReturnData(transaction.returnData);
  return {
    ...shortMeta(transaction),
    innerInstructions: encodeInnerInstructions(innerInstructions, accountKeys, isParsed),
    logMessages: logs,
    rewards: [],
    ...(isParsed ? {} : { loadedAddresses }),
    ...(returnData ? { returnData } : {}),
    computeUnitsConsumed: computeUnits,
  };
}

function annotatedKeys({ accountKeys }: ExecutedTransaction, wire: WireTransaction): object[] {
  return accountKeys.map((pubkey, index) => ({
    pubkey,
    signer: index < wire.requiredSignatures,
    writable: isWritable(wire, index),
    source: index < wire.keys.length ? "transaction" : "lookupTable",
  }));
}

function versionedFields(wire: WireTransaction): object {
  if (wire.version === 0) {
    return {
      addressTableLookups: wire.lookups.map(({ table, writable, readonly }) => ({
        accountKey: encodeBase58(table),
        writableIndexes: [...writable],
        readonlyIndexes: [...readonly],
      })),
    };
  }
  if (wire.version === "legacy") return {};
  const { computeUnitLimit, heapBytes, loadedBytesLimit, priorityFeeLamports } = wire.config;
  return {
    transactionConfig: {
      computeUnitLimit: computeUnitLimit ?? null,
      heapSize: heapBytes ?? null,
      loadedAccountsDataSizeLimit: loadedBytesLimit ?? null,
      priorityFee: priorityFeeLamports ?? null,
    },
  };
}

function jsonMessage(transaction: ExecutedTransaction, wire: WireTransaction): object {
  return {
    header: {
      numRequiredSignatures: wire.requiredSignatures,
      numReadonlySignedAccounts: wire.readonlySigned,
      numReadonlyUnsignedAccounts: wire.readonlyUnsigned,
    },
    accountKeys: transaction.accountKeys.slice(0, wire.keys.length),
    recentBlockhash: encodeBase58(wire.blockhash),
    instructions: wire.instructions.map(({ program, accounts, data }) => ({
      programIdIndex: program,
      accounts: [...accounts],
      data: dataText(data),
      stackHeight: topStackHeight,
    })),
    ...versionedFields(wire),
  };
}

function parsedMessage(transaction: ExecutedTransaction, wire: WireTransaction): object {
  const { accountKeys } = transaction;
  return {
    accountKeys: annotatedKeys(transaction, wire),
    recentBlockhash: encodeBase58(wire.blockhash),
    instructions: wire.instructions.map(({ program, accounts, data }) =>
      encodeParsedInstruction({
        programId: accountKeys[program] ?? "",
        accounts: [...accounts].map((account) => accountKeys[account] ?? ""),
        data,
        stackHeight: topStackHeight,
      }),
    ),
    ...versionedFields(wire),
  };
}

function encodeWire(transaction: ExecutedTransaction, encoding: TransactionEncoding): unknown {
  const wire = wireOf(transaction);
  const signatures = wire.signatures.map(encodeBase58);
  switch (encoding) {
    case "json":
      return { signatures, message: jsonMessage(transaction, wire) };
    case "jsonParsed":
      return { signatures, message: parsedMessage(transaction, wire) };
    case "base64":
      return [encodeBase64(transaction.wire), "base64"];
    case "base58":
      return [encodeBase58(transaction.wire), "base58"];
    case "binary":
      return encodeBase58(transaction.wire);
  }
}

/** Returns { transaction, meta, version? }. Throws ShredwayError "transaction_version". */
export function encodeTransaction(
  transaction: ExecutedTransaction,
  format: TransactionFormat,
): object {
  const version = versionFields(transaction, format);
  return {
    transaction: encodeWire(transaction, format.encoding),
    meta: fullMeta(transaction, format.encoding === "jsonParsed"),
    ...version,
  };
}

function encodeAccountsOnly(transaction: ExecutedTransaction, format: TransactionFormat): object {
  const version = versionFields(transaction, format);
  const wire = wireOf(transaction);
  return {
    transaction: {
      signatures: wire.signatures.map(encodeBase58),
      accountKeys: annotatedKeys(transaction, wire),
    },
    meta: shortMeta(transaction),
    ...version,
  };
}

function encodeDetails(
  transactions: readonly ExecutedTransaction[],
  format: BlockFormat,
): Record<string, unknown> {
  switch (format.details) {
    case "full":
      return { transactions: transactions.map((each) => encodeTransaction(each, format)) };
    case "accounts":
      return { transactions: transactions.map((each) => encodeAccountsOnly(each, format)) };
    case "signatures":
      return { signatures: transactions.map(({ signature }) => signature) };
    case "none":
      return {};
  }
}

/** Throws ShredwayError "transaction_version". */
export function encodeBlock(
  block: Block,
  format: BlockFormat,
  transactions: readonly ExecutedTransaction[] = block.transactions,
): object {
  const { blockhash, previousBlockhash, parentSlot, blockTime, blockHeight } = block;
  return {
    previousBlockhash,
    blockhash,
    parentSlot,
    ...encodeDetails(transactions, format),
    ...(format.hasRewards ? { rewards: [], numRewardPartitions: null } : {}),
    blockTime,
    blockHeight,
  };
}
