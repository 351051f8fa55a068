// Context of one HTTP request: authorization, rate limit and response headers of its calls.
//
// gateway.ts creates one per request and passes it to the JSON-RPC framing. Every call of an array
// counts against the key's limit; the last result of the limit sets the headers.

import { type Reason, ShredwayError } from "../../core/errors.ts";
import {
  arrayExpected,
  type JsonRpcAnswer,
  type JsonRpcOptions,
  ResultWithMembers,
} from "../../core/json-rpc/handle.ts";
import type { CallParams, Json, JsonObject } from "../../core/json-rpc/json-text.ts";
import { scopeMissing } from "../accounts/missing-scope.ts";
import type { ApiKey } from "../accounts/types.ts";
import type { HttpResponse } from "../http/types.ts";
import type { LimitVerdict } from "../methods/dependencies.ts";
import { FastCall, type FastCallFacts } from "../methods/fast-call.ts";
import type { Call, KeyedMethod, Method, MethodContext, UriOptions } from "../methods/method.ts";
import { findMethod } from "../methods/method-table.ts";
import { readReceiptOption, withReceipt } from "../methods/receipts.ts";
import type { Ingress } from "../submission/types.ts";
import { browserHeaders, jsonHeaders, prefixOf, statusOf } from "./answers.ts";
import { bodyBytesMax, callsMax, depthMax } from "./body-limits.ts";
import { unauthorized } from "./callers.ts";
import { checkNames, keyName, type Query, uriFlag, uriSwitch } from "./query.ts";
import { methodUnknown } from "./read-methods.ts";
import { isReceiptHeaderSet, receiptHeader, receiptHeaderBytesMax } from "./receipt-header.ts";

export const uriParameters = {
  mevProtect: uriFlag("mev-protect", "uses only routes that keep the transaction private"),
  swqosOnly: uriFlag("swqos-only", "uses only SWQoS partners"),
  revertProtection: uriFlag(
    "revert-protection",
    "uses only routes that drop a failing transaction instead of landing it as failed",
  ),
  bundleOnly: uriFlag("bundleOnly", "sends the transaction as its own bundle"),
  receipt: uriSwitch("receipt", "adds a signed receipt to the response (docs/receipts.md)"),
} as const;

/** Parameters of every path that submits. */
export const submissionNames = [
  keyName,
  uriParameters.mevProtect.name,
  uriParameters.swqosOnly.name,
  uriParameters.revertProtection.name,
  uriParameters.receipt.name,
] as const;

const blockEngineNames = [...submissionNames, "uuid", uriParameters.bundleOnly.name] as const;

const noUriOptions: UriOptions = {
  mevProtect: false,
  swqosOnly: false,
  revertProtection: false,
  bundleOnly: false,
  receipt: false,
};

/**
 * Also throws ShredwayError "value_invalid" for an unknown or repeated parameter: a transaction must not
 * be sent without the options that its sender expects.
 */
function readUriOptions(
  { query, receiptHeader: header }: CallerFacts,
  names: readonly string[],
): UriOptions {
  if (query.names.length === 0 && header === undefined) return noUriOptions; // the usual case
  checkNames(query, names);
  return {
    mevProtect: uriParameters.mevProtect.read(query),
    swqosOnly: uriParameters.swqosOnly.read(query),
    revertProtection: uriParameters.revertProtection.read(query),
    bundleOnly: uriParameters.bundleOnly.read(query),
    receipt: uriParameters.receipt.read(query) || isReceiptHeaderSet(header),
  };
}

export { depthMax } from "./body-limits.ts";

interface CallerFacts {
  /** null: the request contains no key. */
  readonly key: ApiKey | null;
  readonly query: Query;
  readonly isBlockEngine: boolean;
  /** Names of the parameters that the URL may have; default: those of JSON-RPC calls. */
  readonly uriNames?: readonly string[];
  /** True for browser requests: the response lists the headers that the page may read. */
  readonly isForBrowser: boolean;
  readonly receivedNs: bigint;
  readonly ingress?: Ingress | undefined;
  /** The request on the fast path; absent: it came in another way. */
  readonly fastPath?: FastCallFacts | undefined;
  /** Value of the request's header x-shredway-receipt. */
  readonly receiptHeader?: string | undefined;
  /** Counts a call without a key against the limit of the caller's address. */
  readonly takeKeyless?: () => LimitVerdict;
  readonly report: (thrown: unknown) => string;
  /** Called at the end of each call. */
  readonly ended: JsonRpcOptions["ended"];
}

/** Whole seconds for headers, rounded up. */
function wholeSeconds(seconds: number): string {
  return String(Math.max(1, Math.ceil(seconds)));
}

export class RequestContext implements JsonRpcOptions {
  readonly batchMax = callsMax;
  readonly depthMax = depthMax;
  readonly answersWithoutId = true;
  readonly prefixOf = prefixOf;
  readonly report: (thrown: unknown) => string;
  readonly ended: NonNullable<JsonRpcOptions["ended"]>;
  readonly #methodContext: MethodContext;
  readonly #facts: CallerFacts;
  #uri: UriOptions | undefined;
  #verdict: LimitVerdict | undefined;
  #bundleId: string | undefined;
  #retryAfterSeconds: number | undefined;
  /** The last receipt of this request. */
  #receipt: string | null = null;
  #lacksKey = false;

  constructor(methodContext: MethodContext, facts: CallerFacts) {
    this.#methodContext = methodContext;
    this.#facts = facts;
    this.report = facts.report;
    this.ended = (method, reason) => facts.ended?.(method, reason);
  }

  /** Counts a call against the limit. Throws ShredwayError "unauthorized" or "rate_limited". */
  admit(name: string): void {
    const method = findMethod(name);
    const { key } = this.#facts;
    if (method && !("run" in method)) {
      if (method.isCounted) this.#takeOpen(key);
      return;
    }
    if (!key) {
      this.#lacksKey = true;
      throw unauthorized();
    }
    this.#take(key);
  }

  #takeOpen(key: ApiKey | null): void {
    const verdict = key ? undefined : this.#facts.takeKeyless?.();
    if (key) this.#take(key);
    else if (verdict) this.#judge(verdict, "from this address without a key");
  }

  #take(key: ApiKey): void {
    const { clock, limits } = this.#methodContext.dependencies;
    this.#judge(limits.take(key, clock.monotonicNs()), "with this key");
  }

  #judge(verdict: LimitVerdict, whose: string): void {
    this.#verdict = verdict;
    // The fast path had the call's share of the limit.
    if (verdict.allowed || this.#isTaken) return;
    this.#retryAfterSeconds = verdict.retryAfterSeconds;
    throw new ShredwayError(
      "rate_limited",
      `rate limit exceeded: ${verdict.limit} calls per burst ${whose}; ` +
        `retry in ${wholeSeconds(verdict.retryAfterSeconds)} s`,
      { details: { limit: verdict.limit, retryAfterSeconds: verdict.retryAfterSeconds } },
    );
  }

  /** Returns the result; throws or rejects with ShredwayError. */
  dispatch(name: string, params: readonly Json[]): unknown {
    this.checkUri();
    const method = findMethod(name);
    return method ? this.run(name, method, params) : this.#passOn(name, params);
  }

  /** As `dispatch`: only methods of the node have parameters with names. An empty object stands for none. */
  dispatchNamed(name: string, params: JsonObject): unknown {
    this.checkUri();
    const method = findMethod(name);
    if (!method) return this.#passOn(name, params);
    if (Object.keys(params).length > 0) throw arrayExpected(params);
    return this.run(name, method, []);
  }

  #passOn(name: string, params: CallParams): Promise<unknown> {
    const { reads } = this.#methodContext.dependencies;
    if (!reads.has(name)) throw methodUnknown(name);
    this.#checkScopes(name, ["read"]);
    return reads.call(name, params);
  }

  run(name: string, method: Method, params: readonly Json[]): unknown {
    if (!("run" in method)) return method.answer(this.#methodContext, params);
    const call = this.callOf(name, method.scopes);
    // Other methods submit nothing: there is nothing to limit, and nothing to sign a receipt of.
    if (!name.startsWith("send")) return method.run(call, params);
    return this.limited(() =>
      this.submitted(call, params, (recorded) => method.run(recorded, params)),
    );
  }

  /** Runs a submission. Rejects with ShredwayError "overloaded" if too many are in progress. */
  limited<T>(begin: () => Promise<T> | T): Promise<T> | T {
    // The number of those that the fast path has taken is limited there.
    return this.#isTaken ? begin() : this.#methodContext.submissionLimit.with(begin);
  }

  /** Runs a submitting method. If a receipt is requested, the result has it as a further member. */
  submitted(call: Call, params: readonly Json[], run: (call: Call) => unknown): unknown {
    if (!call.uri.receipt && !readReceiptOption(params)) return run(call);
    return withReceipt(call, run, this.report).then(({ result, receipt }) => {
      this.#receipt = receipt;
      return new ResultWithMembers(result, { receipt });
    });
  }

  /** Throws ShredwayError "value_invalid" for URL parameters that are not among `names`, or invalid. */
  checkUri(names?: readonly string[]): UriOptions {
    this.#uri ??= readUriOptions(this.#facts, names ?? this.#uriNames);
    return this.#uri;
  }

  get #uriNames(): readonly string[] {
    const { uriNames, isBlockEngine } = this.#facts;
    return uriNames ?? (isBlockEngine ? blockEngineNames : submissionNames);
  }

  /**
   * Throws ShredwayError "unauthorized" or "scope_missing", and "value_invalid" like `checkUri`.
   */
  callOf(name: string, scopes: KeyedMethod["scopes"], uriNames?: readonly string[]): Call {
    const { isBlockEngine, receivedNs, ingress, fastPath } = this.#facts;
    const apiKey = this.#checkScopes(name, scopes);
    const uri = this.checkUri(uriNames);
    const { dependencies, settings, admission } = this.#methodContext;
    // Written field by field: spreading the context takes several times as long.
    return {
      dependencies,
      settings,
      admission,
      nextTurn: this.#methodContext.nextTurn,
      key: apiKey,
      uri,
      isBlockEngine,
      receivedNs,
      ingress,
      fastPath: fastPath && new FastCall(fastPath, apiKey, dependencies.clock),
      countCalls: (count) => {
        const { key } = this.#facts;
        if (!key) return;
        for (let i = 0; i < count; i++) this.#take(key);
      },
      setRetryAfter: (seconds) => {
        this.#retryAfterSeconds = seconds;
      },
      setBundleId: (id) => {
        this.#bundleId = id;
      },
    };
  }

  /** Size limit of this body; it depends on whether the key may send batches. */
  bytesMaxOf(text: string): number {
    return bodyBytesMax(text, this.#facts.key?.scopes.includes("batch") ?? false);
  }

  response({ text, reason }: JsonRpcAnswer): HttpResponse {
    const status = this.#lacksKey ? 401 : statusOf(reason);
    const headers = this.#headers(status, reason);
    const receipt = this.#receipt;
    // An array has one receipt for each call, and only in its body.
    if (receipt && receipt.length <= receiptHeaderBytesMax && !text.startsWith("[")) {
      headers[receiptHeader] = receipt;
    }
    return { status, headers, body: text };
  }

  get #isTaken(): boolean {
    return this.#facts.fastPath?.connection.isTaken ?? false;
  }

  #checkScopes(name: string, scopes: KeyedMethod["scopes"]): ApiKey {
    const { key } = this.#facts;
    if (!key) throw unauthorized();
    if (!scopes.some((scope) => key.scopes.includes(scope))) throw scopeMissing(name, key, scopes);
    return key;
  }

  #headers(status: number, reason: Reason | null): Record<string, string> {
    const headers = this.#usualHeaders();
    if (this.#bundleId !== undefined) headers["x-bundle-id"] = this.#bundleId;
    if (this.#facts.isForBrowser) Object.assign(headers, browserHeaders);
    if (status === 401) headers["www-authenticate"] = "Bearer";
    if (this.#retryAfterSeconds !== undefined) {
      headers["retry-after"] = wholeSeconds(this.#retryAfterSeconds);
    } else if (reason === "overloaded") {
      headers["retry-after"] = "1";
    }
    return headers;
  }

  /** Written as one literal: adding fields one by one takes five times as long. */
  #usualHeaders(): Record<string, string> {
    const verdict = this.#verdict;
    if (!verdict) return { ...jsonHeaders };
    return {
      "access-control-allow-origin": jsonHeaders["access-control-allow-origin"],
      "cache-control": jsonHeaders["cache-control"],
      "referrer-policy": jsonHeaders["referrer-policy"],
      "content-type": jsonHeaders["content-type"],
      "x-ratelimit-limit": String(verdict.limit),
      "x-ratelimit-remaining": String(Math.max(0, Math.floor(verdict.remaining))),
      "x-ratelimit-reset": String(Math.ceil(verdict.resetSeconds)),
    };
  }
}
