// JSON-RPC 2.0 framing: one text in, at most one text out.
//
// Called with every body of HTTP and every message of a WebSocket. Reads single calls and arrays of
// them, hands each to `dispatch`, echoes its id exactly as it came and answers every error by the
// one table. Calls without an id are notifications: neither executed nor answered, as Solana's node
// does. Knows no method; never throws, never rejects.

import { quote, ShredwayError } from "../core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonDepthMax,
  readJson,
  writeJson,
} from "./json-text.ts";
import { errorObjectOf, type ReportFault } from "./refusal.ts";

export interface JsonRpcOptions {
  /** The result of a call; a throw or rejection becomes an error object. */
  dispatch(method: string, params: readonly Json[]): unknown;
  readonly report: ReportFault;
  /** Calls of one array; default 100. */
  readonly batchMax?: number;
  /** Levels of nesting of the text, the array of calls included. */
  readonly depthMax?: number;
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
function readCall(value: JsonObject): Call | null {
  const { jsonrpc, id, method, params } = value;
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

function answer(id: Json, body: Readonly<Record<string, unknown>>): string {
  return writeJson({ jsonrpc: "2.0", ...body, id });
}

async function handleCall(value: Json, options: JsonRpcOptions): Promise<string | null> {
  const id = isJsonObject(value) ? (value["id"] ?? null) : null;
  try {
    if (!isJsonObject(value)) throw invalidRequest("an object", value);
    const call = readCall(value);
    if (!call) return null;
    const result = await options.dispatch(call.method, call.params);
    return answer(id, { result: result ?? null });
  } catch (thrown) {
    return answer(id, { error: errorObjectOf(thrown, options.report) });
  }
}

async function handleBatch(values: readonly Json[], options: JsonRpcOptions): Promise<string> {
  const answers: string[] = [];
  // One after the other: the calls of an array may build on each other.
  for (const value of values) {
    const text = await handleCall(value, options);
    if (text !== null) answers.push(text);
  }
  return answers.length === 0 ? "" : `[${answers.join(",")}]`;
}

/** The answer to `text`; empty when nothing is to be answered. */
export async function handleJsonRpc(text: string, options: JsonRpcOptions): Promise<string> {
  const batchMax = options.batchMax ?? 100;
  try {
    const value = readJson(text, options.depthMax ?? jsonDepthMax);
    if (!isJsonArray(value)) return (await handleCall(value, options)) ?? "";
    if (value.length === 0 || value.length > batchMax) {
      throw invalidRequest(`1 to ${batchMax} calls in an array`, value.length);
    }
    return await handleBatch(value, options);
  } catch (thrown) {
    return answer(null, { error: errorObjectOf(thrown, options.report) });
  }
}
