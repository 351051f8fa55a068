// RPC client of a Solana node: JSON-RPC over HTTP, a few methods, validated answers.
//
// It reads what shreds do not contain. The service reads the leader schedule, the current epoch and a
// second source of the slot. The submission pipeline reads outcomes, payments of landed transactions,
// and nonce accounts. No packet waits for it. Answers are untrusted: their size is limited, and an
// undocumented shape is an error. URLs may contain keys, so errors name only the host.

import { readBounded } from "../../core/bounded-body.ts";
import { basicAuthorization, maskerOf } from "../../core/configuration/url-secrets.ts";
import {
  type ErrorDetails,
  isShredwayError,
  messageOf,
  quote,
  ShredwayError,
} from "../../core/errors.ts";
import { jsonRpcCodes } from "../../core/json-rpc/codes.ts";
import { parsePubkey } from "../../core/primitives.ts";
import { withTimeout } from "../../core/request-timeout.ts";
import type { BlockhashState } from "../../core/transactions/lifetimes.ts";
import { isObject } from "../../core/values.ts";
import { findNonceAccount, nonceAccountBytes } from "../../gateway/nonces/nonce-account.ts";
import type { NonceAccountView, NonceNode } from "../../gateway/nonces/types.ts";
import {
  commitments,
  type Outcomes,
  type SignatureOutcome,
  type StatusSearch,
} from "../../gateway/submission/types.ts";
import type { EpochInfo, EpochLeaders } from "../../relay/leaders/rpc-leader-schedule.ts";
import { leaderKeysMax } from "../../relay/leaders/schedule.ts";
import type {
  LandedTransaction,
  LandedTransactions,
  LandingState,
  LandingStates,
} from "../../shreds/registrations/registration-types.ts";

/** Parsing an answer blocks the event loop, about 10 ms per MB. */
const answerBytesMax = 64 * 1024;
/** A schedule of 432,000 slots with 2,000 leaders has about 4 MB. */
const scheduleBytesMax = 16 * 1024 * 1024;
const defaultTimeoutMs = 10_000;
/** Signatures in one getSignatureStatuses call. */
const statusesMax = 256;
/** Errors of custom programs are small, but the programs choose their names. */
const statusesBytesMax = 1024 * 1024;
/** Inner instructions may contain as much data as the virtual machine moves, in base58. */
const transactionBytesMax = 2 * 1024 * 1024;
/** The newest version that clients can register; nodes also return older ones. */
const transactionVersionMax = 1;
/**
 * Accounts in one getMultipleAccounts call; each has about 500 bytes, because its data is truncated.
 */
const accountsMax = 100;
const accountsBytesMax = 256 * 1024;

/** A node of the cluster, by its own report. */
interface ClusterNode {
  /** Base58. */
  readonly identity: string;
  /** Its TPU address for QUIC, such as "192.0.2.1:8009"; not validated. null: not reported. */
  readonly tpuQuic: string | null;
}

/** Answer of getSignatureStatuses. */
interface Statuses {
  readonly outcomes: (SignatureOutcome | null)[];
  /** Not validated. */
  readonly slot: unknown;
}

/** The field `value` of an answer with a context. */
function valueIn(result: unknown): unknown {
  return isObject(result) ? result["value"] : undefined;
}

/** The slot that the answer is of; absent: the node did not say it. */
function slotOf(result: unknown): { readonly slot?: bigint } {
  const context = isObject(result) ? result["context"] : undefined;
  const slot = isObject(context) ? context["slot"] : undefined;
  return typeof slot === "number" && Number.isSafeInteger(slot) ? { slot: BigInt(slot) } : {};
}

function hasNoHistory(error: unknown): boolean {
  const code = isShredwayError(error, "rpc_failed") ? error.details?.code : undefined;
  return code === jsonRpcCodes.transactionHistoryNotAvailable;
}

export class RpcClient implements Outcomes, LandedTransactions, NonceNode {
  /** Host and port for messages; never the whole URL. */
  readonly host: string;
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  /** Parts of the URL may be keys, so no message about the node may contain them. */
  readonly #mask: (text: string) => string;
  readonly #timeoutMs: number;
  #nextId = 1;

  /** Throws ShredwayError "value_invalid" unless `url` is http or https. */
  constructor(url: string, timeoutMs = defaultTimeoutMs) {
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    if (!parsed || !/^https?:$/.test(parsed.protocol)) {
      throw new ShredwayError("value_invalid", "RPC address: expected a URL of http or https");
    }
    this.host = parsed.host;
    this.#timeoutMs = timeoutMs;
    this.#mask = maskerOf(parsed);
    const authorization = basicAuthorization(parsed);
    parsed.username = parsed.password = ""; // fetch rejects a URL that contains them
    this.#url = parsed.href;
    this.#headers = {
      "Content-Type": "application/json",
      ...(authorization !== null && { Authorization: authorization }),
    };
  }

  /**
   * The result of one call. Throws ShredwayError "rpc_failed": no answer in time, invalid JSON-RPC, or
   * an error of the node (with its code in `details`).
   */
  async call(
    method: string,
    params: readonly unknown[] = [],
    bytesMax = answerBytesMax,
  ): Promise<unknown> {
    const id = this.#nextId++;
    const request = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    const answer = await this.#post(method, request, bytesMax);
    if (isObject(answer) && isObject(answer["error"])) {
      const { code, message } = answer["error"];
      throw this.#failure(
        method,
        `the node answered error ${quote(code)}: ${quote(message)}`,
        typeof code === "number" ? { details: { code } } : {},
      );
    }
    if (!isObject(answer) || answer["id"] !== id || !Object.hasOwn(answer, "result")) {
      throw this.#failure(method, `expected a JSON-RPC answer with id ${id}, got another`);
    }
    return answer["result"];
  }

  /** At commitment "processed", the newest slot of the node. */
  async slot(): Promise<bigint> {
    return this.#u53("getSlot", await this.call("getSlot", [{ commitment: "processed" }]));
  }

  async epochInfo(): Promise<EpochInfo> {
    const result = await this.call("getEpochInfo", [{ commitment: "processed" }]);
    const field = (name: string) =>
      this.#u53("getEpochInfo", isObject(result) ? result[name] : result);
    const info = {
      epoch: field("epoch"),
      absoluteSlot: field("absoluteSlot"),
      slotIndex: field("slotIndex"),
      slotsInEpoch: field("slotsInEpoch"),
    };
    if (info.slotIndex >= info.slotsInEpoch || info.slotIndex > info.absoluteSlot) {
      throw this.#failure(
        "getEpochInfo",
        `expected slotIndex within the epoch, got ${quote(result)}`,
      );
    }
    return info;
  }

  /** The schedule of the epoch that contains `slot`; null: the node does not know it yet. */
  async leaderSchedule(slot: bigint): Promise<EpochLeaders | null> {
    const result = await this.call("getLeaderSchedule", [Number(slot)], scheduleBytesMax);
    if (result === null) return null;
    if (!isObject(result)) throw this.#failure("getLeaderSchedule", "expected an object, got none");
    const entries = Object.entries(result);
    if (entries.length > leaderKeysMax) {
      throw this.#failure(
        "getLeaderSchedule",
        `expected at most ${leaderKeysMax} leaders, got ${entries.length}`,
      );
    }
    const leaders = new Map<string, readonly number[]>();
    for (const [identity, slots] of entries) {
      if (!Array.isArray(slots) || !slots.every((one) => Number.isSafeInteger(one))) {
        throw this.#failure("getLeaderSchedule", "expected slot numbers, got something else");
      }
      leaders.set(
        identity,
        slots.map((one) => Number(one)),
      );
    }
    return leaders;
  }

  /** A few thousand nodes with about 0.5 kB each; invalid ones are left out. */
  async clusterNodes(): Promise<ClusterNode[]> {
    const method = "getClusterNodes";
    const result = await this.call(method, [], scheduleBytesMax);
    if (!Array.isArray(result)) {
      throw this.#failure(method, `expected a list, got ${quote(result)}`);
    }
    const nodes = result.flatMap((node: unknown) => {
      const { pubkey, tpuQuic = null } = isObject(node) ? node : {};
      const isReadable =
        typeof pubkey === "string" && (tpuQuic === null || typeof tpuQuic === "string");
      return isReadable ? [{ identity: pubkey, tpuQuic }] : [];
    });
    if (nodes.length === 0 && result.length > 0) {
      throw this.#failure(method, `expected pubkey and tpuQuic, got ${quote(result[0])}`);
    }
    return nodes;
  }

  /** At commitment "confirmed". */
  async latestBlockhash(): Promise<string> {
    const method = "getLatestBlockhash";
    const value = valueIn(await this.call(method, [{ commitment: "confirmed" }]));
    const blockhash = isObject(value) ? value["blockhash"] : undefined;
    try {
      return parsePubkey(typeof blockhash === "string" ? blockhash : "");
    } catch {
      throw this.#failure(method, `expected a blockhash, got ${quote(blockhash)}`);
    }
  }

  /** Without preflight. Returns the signature in base58, as reported by the node. */
  async sendTransaction(wire: Uint8Array): Promise<string> {
    const options = { encoding: "base64", skipPreflight: true };
    const result = await this.call("sendTransaction", [
      Buffer.from(wire).toString("base64"),
      options,
    ]);
    if (typeof result === "string") return result;
    throw this.#failure("sendTransaction", `expected a signature, got ${quote(result)}`);
  }

  /**
   * Statuses of at most 256 signatures, in the same order: from the node's recent blocks, or also from
   * its history, which costs it more. A node without a history returns recent ones only.
   */
  async signatureStatuses(
    signatures: readonly string[],
    { searchHistory = false }: StatusSearch = {},
  ): Promise<(SignatureOutcome | null)[]> {
    const answer = this.#statuses(signatures, searchHistory).catch((error: unknown) => {
      if (!searchHistory || !hasNoHistory(error)) throw error;
      return this.#statuses(signatures, false);
    });
    return (await answer).outcomes;
  }

  /** Signatures as in `signatureStatuses`; rejects if history is searched and the node has none. */
  async landingStates(
    signatures: readonly string[],
    searchHistory: boolean,
  ): Promise<LandingStates> {
    const { outcomes, slot } = await this.#statuses(signatures, searchHistory);
    const states = outcomes.map((outcome): LandingState => {
      if (outcome === null) return "absent";
      return outcome.commitment === "processed" ? "processed" : "landed";
    });
    return { slot: this.#u53("getSignatureStatuses", slot), states };
  }

  async blockhashState(blockhash: string): Promise<BlockhashState> {
    const method = "isBlockhashValid";
    const result = await this.call(method, [blockhash, { commitment: "confirmed" }]);
    const { context, value } = isObject(result) ? result : {};
    if (typeof value !== "boolean") {
      throw this.#failure(method, `expected true or false, got ${quote(result)}`);
    }
    return {
      isValid: value,
      slot: this.#u53(method, isObject(context) ? context["slot"] : undefined),
    };
  }

  /**
   * null: no account, or not a nonce account (any more), so no transaction can use it. Throws
   * "rpc_failed" for an invalid answer.
   */
  async nonceValue(account: string): Promise<string | null> {
    const method = "getAccountInfo";
    const options = { encoding: "base64", commitment: "confirmed" };
    const value = valueIn(await this.call(method, [account, options]));
    if (value === null) return null;
    return findNonceAccount(this.#account(method, value))?.value ?? null;
  }

  /** With the first 81 bytes of their data, enough to recognise a nonce account. At "confirmed". */
  async accounts(addresses: readonly string[]): Promise<(NonceAccountView | null)[]> {
    const method = "getMultipleAccounts";
    if (addresses.length === 0) return [];
    if (addresses.length > accountsMax) {
      throw new ShredwayError(
        "value_invalid",
        `${method}: expected at most ${accountsMax} addresses, got ${addresses.length}`,
      );
    }
    const dataSlice = { offset: 0, length: nonceAccountBytes + 1 };
    const options = { encoding: "base64", commitment: "confirmed", dataSlice };
    const result = await this.call(method, [addresses, options], accountsBytesMax);
    const value = valueIn(result);
    if (!Array.isArray(value) || value.length !== addresses.length) {
      const came = Array.isArray(value) ? `${value.length}` : quote(value);
      throw this.#failure(method, `expected ${addresses.length} accounts, got ${came}`);
    }
    const slot = slotOf(result);
    return value.map((one: unknown) => {
      return one === null ? null : { ...this.#account(method, one), ...slot };
    });
  }

  /** Rent-exempt minimum, in lamports, of an account with the given number of bytes. */
  async minimumBalance(bytes: number): Promise<bigint> {
    const method = "getMinimumBalanceForRentExemption";
    return this.#u53(method, await this.call(method, [bytes, { commitment: "confirmed" }]));
  }

  /**
   * At "confirmed", as far back as the node's history. Accounts from lookup tables are not counted.
   */
  async landedTransaction(
    signature: string,
    addresses: ReadonlySet<string>,
  ): Promise<LandedTransaction | null> {
    const method = "getTransaction";
    const options = {
      encoding: "json",
      commitment: "confirmed",
      maxSupportedTransactionVersion: transactionVersionMax,
    };
    const result = await this.call(method, [signature, options], transactionBytesMax);
    if (result === null) return null;
    const { slot, meta, transaction } = isObject(result) ? result : {};
    const { signatures, message } = isObject(transaction) ? transaction : {};
    if (!isObject(meta) || !Object.hasOwn(meta, "err") || !isObject(message)) {
      throw this.#failure(method, `expected a transaction with its meta, got ${quote(result)}`);
    }
    if (!Array.isArray(signatures) || signatures[0] !== signature) {
      throw this.#failure(method, `expected signature ${signature}, got ${quote(signatures)}`);
    }
    const gainLamports = this.#gain(method, { ...meta, keys: message["accountKeys"] }, addresses);
    return { slot: this.#u53(method, slot), err: meta["err"], gainLamports };
  }

  #gain(
    method: string,
    { keys, preBalances, postBalances }: Readonly<Record<string, unknown>>,
    addresses: ReadonlySet<string>,
  ): bigint {
    if (!Array.isArray(keys) || !Array.isArray(preBalances) || !Array.isArray(postBalances)) {
      throw this.#failure(method, "expected keys and balances, got a transaction without them");
    }
    let gain = 0n;
    for (const [i, key] of keys.entries()) {
      if (typeof key !== "string") {
        throw this.#failure(method, `expected keys in base58, got ${quote(key)}`);
      }
      if (!addresses.has(key)) continue;
      gain += this.#u53(method, postBalances[i]) - this.#u53(method, preBalances[i]);
    }
    return gain;
  }

  async #statuses(signatures: readonly string[], searchHistory: boolean): Promise<Statuses> {
    const method = "getSignatureStatuses";
    if (signatures.length === 0) return { outcomes: [], slot: 0 };
    if (signatures.length > statusesMax) {
      throw new ShredwayError(
        "value_invalid",
        `${method}: expected at most ${statusesMax} signatures, got ${signatures.length}`,
      );
    }
    const params = [signatures, { searchTransactionHistory: searchHistory }];
    const result = await this.call(method, params, statusesBytesMax);
    const { context, value } = isObject(result) ? result : {};
    if (!Array.isArray(value) || value.length !== signatures.length) {
      const came = Array.isArray(value) ? `${value.length}` : quote(value);
      throw this.#failure(method, `expected ${signatures.length} statuses, got ${came}`);
    }
    return {
      outcomes: value.map((status: unknown) =>
        status === null ? null : this.#outcome(method, status),
      ),
      slot: isObject(context) ? context["slot"] : undefined,
    };
  }

  #account(method: string, value: unknown): NonceAccountView {
    const { data, owner, lamports } = isObject(value) ? value : {};
    const [text, encoding]: readonly unknown[] = Array.isArray(data) ? data : [];
    // Balances above 2^53 lamports have the precision of a number.
    const isAmount = typeof lamports === "number" && Number.isInteger(lamports) && lamports >= 0;
    const isData = typeof text === "string" && encoding === "base64";
    if (isData && typeof owner === "string" && isAmount) {
      return { owner, lamports: BigInt(lamports), data: Buffer.from(text, "base64") };
    }
    throw this.#failure(method, `expected an account in base64, got ${quote(value)}`);
  }

  #outcome(method: string, status: unknown): SignatureOutcome {
    if (!isObject(status)) throw this.#failure(method, `expected a status, got ${quote(status)}`);
    const commitment = commitments.find((one) => one === status["confirmationStatus"]);
    if (!commitment || !Object.hasOwn(status, "err")) {
      throw this.#failure(
        method,
        `expected err and confirmationStatus (${commitments.join(", ")}), got ${quote(status)}`,
      );
    }
    return { slot: this.#u53(method, status["slot"]), err: status["err"], commitment };
  }

  #u53(method: string, value: unknown): bigint {
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0)
      return BigInt(value);
    throw this.#failure(method, `expected an integer 0 to 2^53 - 1, got ${quote(value)}`);
  }

  async #post(method: string, body: string, bytesMax: number): Promise<unknown> {
    try {
      const { status, text } = await withTimeout(this.#timeoutMs, async (signal) => {
        const response = await fetch(this.#url, {
          method: "POST",
          headers: this.#headers,
          body,
          redirect: "error", // a node must not send requests to other machines
          signal,
        });
        return { status: response.status, text: await readBounded(response, { bytesMax, signal }) };
      });
      if (status !== 200) {
        throw this.#failure(method, `expected HTTP status 200, got ${status}`);
      }
      const answer: unknown = JSON.parse(text);
      return answer;
    } catch (cause) {
      if (cause instanceof ShredwayError) throw cause;
      const inner = cause instanceof Error && cause.cause !== undefined ? cause.cause : cause;
      throw this.#failure(method, messageOf(inner));
    }
  }

  #failure(
    method: string,
    text: string,
    options: { details?: ErrorDetails["rpc_failed"] & object } = {},
  ): ShredwayError {
    // Without the cause, whose text and stack may contain the whole URL.
    const message = `${method} at ${this.host}: ${this.#mask(text)}`;
    return new ShredwayError("rpc_failed", message, options);
  }
}
