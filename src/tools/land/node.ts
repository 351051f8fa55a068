// The node of a landing benchmark: blockhashes, slots, balances, and the fate of transactions.
//
// A thin layer over RpcClient for the methods that only this command needs. Answers are untrusted.

import { quote, ShredwayError } from "../../core/errors.ts";
import { parsePubkey } from "../../core/primitives.ts";
import { isObject } from "../../core/values.ts";
import { readNonceAccount } from "../../gateway/nonces/nonce-account.ts";
import type { SignatureOutcome } from "../../gateway/submission/types.ts";
import { RpcClient } from "../../platform/solana/rpc-client.ts";

/** Signatures of a block with 20,000 transactions. */
const blockBytesMax = 4 * 1024 * 1024;
const statusesAtOnce = 256;

interface Blockhash {
  readonly blockhash: string;
  readonly lastValidBlockHeight: number;
}

function failure(method: string, expected: string, value: unknown): ShredwayError {
  return new ShredwayError("rpc_failed", `${method}: expected ${expected}, got ${quote(value)}`);
}

function integer(method: string, value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw failure(method, "an integer", value);
}

export class LandNode {
  /** For the leader schedule. */
  readonly rpc: RpcClient;

  /** Throws ShredwayError "value_invalid" unless `url` is http or https. */
  constructor(url: string) {
    this.rpc = new RpcClient(url);
  }

  async genesisHash(): Promise<string> {
    const result = await this.rpc.call("getGenesisHash");
    if (typeof result === "string") return result;
    throw failure("getGenesisHash", "a hash", result);
  }

  /** At "confirmed". */
  async blockhash(): Promise<Blockhash> {
    const method = "getLatestBlockhash";
    const result = await this.rpc.call(method, [{ commitment: "confirmed" }]);
    const value = isObject(result) ? result["value"] : null;
    if (!isObject(value) || typeof value["blockhash"] !== "string") {
      throw failure(method, "a blockhash", result);
    }
    const lastValidBlockHeight = integer(method, value["lastValidBlockHeight"]);
    return { blockhash: parsePubkey(value["blockhash"]), lastValidBlockHeight };
  }

  /** The newest slot, at "processed". */
  async slot(): Promise<number> {
    return Number(await this.rpc.slot());
  }

  /** At "confirmed". */
  async blockHeight(): Promise<number> {
    const method = "getBlockHeight";
    return integer(method, await this.rpc.call(method, [{ commitment: "confirmed" }]));
  }

  /** Lamports, at "confirmed". */
  async balance(address: string): Promise<bigint> {
    const method = "getBalance";
    const result = await this.rpc.call(method, [address, { commitment: "confirmed" }]);
    const value = isObject(result) ? result["value"] : null;
    // Balances above 2^53 lamports have the precision of a number.
    if (typeof value === "number" && Number.isInteger(value) && value >= 0) return BigInt(value);
    throw failure(method, "a balance", result);
  }

  /** Throws ShredwayError "nonce_invalid" if it is not a nonce account. */
  async nonce(address: string): Promise<{ readonly authority: string; readonly value: string }> {
    const [account = null] = await this.rpc.accounts([address]);
    return readNonceAccount(address, account);
  }

  /** Lamports of the message of a transaction on a recent blockhash; null: the node cannot say. */
  async fee(message: Uint8Array): Promise<bigint | null> {
    const method = "getFeeForMessage";
    const text = Buffer.from(message).toString("base64");
    const result = await this.rpc.call(method, [text, { commitment: "processed" }]);
    const value = isObject(result) ? result["value"] : null;
    return value === null ? null : BigInt(integer(method, value));
  }

  /** In the order of `signatures`. */
  async statuses(
    signatures: readonly string[],
    searchHistory: boolean,
  ): Promise<(SignatureOutcome | null)[]> {
    const outcomes: (SignatureOutcome | null)[] = [];
    for (let at = 0; at < signatures.length; at += statusesAtOnce) {
      const part = signatures.slice(at, at + statusesAtOnce);
      outcomes.push(...(await this.rpc.signatureStatuses(part, { searchHistory })));
    }
    return outcomes;
  }

  /** Signatures of a confirmed block, in its order; null: the node does not have it. */
  async blockSignatures(slot: number): Promise<readonly string[] | null> {
    const options = {
      commitment: "confirmed",
      transactionDetails: "signatures",
      rewards: false,
      maxSupportedTransactionVersion: 1,
    };
    const result = await this.rpc.call("getBlock", [slot, options], blockBytesMax);
    if (result === null) return null;
    const signatures = isObject(result) ? result["signatures"] : null;
    if (Array.isArray(signatures) && signatures.every((each) => typeof each === "string")) {
      return signatures;
    }
    throw failure("getBlock", "signatures", result);
  }
}
