// JSON-RPC 2.0 framing: one text in, at most one text out.
//
// Called with every body of HTTP and every message of a WebSocket. Reads single calls and arrays of
// them, hands each to `dispatch`, echoes its id exactly as it came and answers every error by the
// one table. Calls without an id are notifications: neither executed nor answered, as Solana's node
// does, unless `answersWithoutId` says otherwise. Knows no method; never throws, never rejects.

import { quote, type Reason, ShredwayError } from "../errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonDepthMax,
  readCallJson,
  writeJson,
} from "./json-text.ts";
import { errorObjectOf, type RefusalOptions, reasonOf } from "./refusal.ts";

export interface JsonRpcOptions extends RefusalOptions {
  /** The result of a call; a throw or rejection becomes an error object. */
  dispatch(method: string, params: readonly Json[]): unknown;
  /**
   * Before anything else of each call: its method, or "" for what is no call. A throw refuses it
   * unread.
   */
  admit?(method: string): void;
  /** After each call: its method, or "" for what is no call, and why it was refused (null: it was not). */
  ended?(method: string, reason: Reason | null): void;
  /** Calls of one array; default 100. */
  readonly batchMax?: number;
  /** Levels of nesting of the text, the array of calls included. */
  readonly depthMax?: number;
  /** A call without an id is a call with the id null. */
  readonly answersWithoutId?: boolean;
}

export interface JsonRpcAnswer {
  /** Empty when nothing is to be answered. */
  readonly text: string;
  /** Why a single call (or the whole array) was refused; null: it was not. */
  readonly reason: Reason | null;
}

interface Call {
  readonly id: Json;
  readonly method: string;
  readonly params: readonly Json[];
}

function invalidRequest(expected: string, actual: unknown): ShredwayError {
  return new ShredwayError(
    "request_invalid",
    `Invalid request: expected ${expected}, got ${quote(actual)}`,
  );
}

/** Throws ShredwayError; null: a notification. */
function readCall(value: JsonObject, options: JsonRpcOptions): Call | null {
  const { jsonrpc, method, params } = value;
  const id = value["id"] ?? (options.answersWithoutId ? null : value["id"]);
  if (jsonrpc !== "2.0") throw invalidRequest('"jsonrpc": "2.0"', jsonrpc);
  if (typeof method !== "string") throw invalidRequest("a method name", method);
  if (id === undefined) return null;
  if (params === undefined || params === null) return { id, method, params: [] };
  if (isJsonArray(params)) return { id, method, params };
  throw new ShredwayError(
    "value_invalid",
    `Invalid params: expected an array, got ${quote(params)}`,
  );
}

function refused(id: Json, thrown: unknown, options: JsonRpcOptions): JsonRpcAnswer {
  const error = writeJson(errorObjectOf(thrown, options));
  return {
    text: `{"jsonrpc":"2.0","error":${error},"id":${writeJson(id)}}`,
    reason: reasonOf(thrown),
  };
}

async function handleCall(value: Json, options: JsonRpcOptions): Promise<JsonRpcAnswer> {
  const answer = await answerCall(value, options);
  if (options.ended) options.ended(methodOf(value), answer.reason);
  return answer;
}

function methodOf(value: Json): string {
  const method = isJsonObject(value) ? value["method"] : "";
  return typeof method === "string" ? method : "";
}

async function answerCall(value: Json, options: JsonRpcOptions): Promise<JsonRpcAnswer> {
  const id = isJsonObject(value) ? (value["id"] ?? null) : null;
  try {
    options.admit?.(methodOf(value));
    if (!isJsonObject(value)) throw invalidRequest("an object", value);
    const call = readCall(value, options);
    if (!call) return { text: "", reason: null };
    const result = await options.dispatch(call.method, call.params);
    const text = `{"jsonrpc":"2.0","result":${writeJson(result ?? null)},"id":${writeJson(id)}}`;
    return { text, reason: null };
  } catch (thrown) {
    return refused(id, thrown, options);
  }
}

async function handleBatch(
  values: readonly Json[],
  options: JsonRpcOptions,
): Promise<JsonRpcAnswer> {
  const answers: string[] = [];
  // One after the other: the calls of an array may build on each other.
  for (const value of values) {
    const { text } = await handleCall(value, options);
    if (text !== "") answers.push(text);
  }
  return { text: answers.length === 0 ? "" : `[${answers.join(",")}]`, reason: null };
}

/** What is no call counts as one, so that texts of rubbish are limited like all others. */
function refusedWhole(thrown: unknown, options: JsonRpcOptions): JsonRpcAnswer {
  let answer: JsonRpcAnswer;
  try {
    options.admit?.("");
    answer = refused(null, thrown, options);
  } catch (refusal) {
    answer = refused(null, refusal, options);
  }
  options.ended?.("", answer.reason);
  return answer;
}

/** The answer to `text`, and whether it is a refusal. Not async: that would cost another promise. */
export function answerJsonRpc(text: string, options: JsonRpcOptions): Promise<JsonRpcAnswer> {
  const batchMax = options.batchMax ?? 100;
  let value: Json;
  try {
    value = readCallJson(text, options.depthMax ?? jsonDepthMax);
    if (isJsonArray(value) && (value.length === 0 || value.length > batchMax)) {
      throw invalidRequest(`1 to ${batchMax} calls in an array`, value.length);
    }
  } catch (thrown) {
    return Promise.resolve(refusedWhole(thrown, options));
  }
  return isJsonArray(value) ? handleBatch(value, options) : handleCall(value, options);
}

/** The answer to `text`; empty when nothing is to be answered. */
export async function handleJsonRpc(text: string, options: JsonRpcOptions): Promise<string> {
  return (await answerJsonRpc(text, options)).text;
}
