// JSON-RPC 2.0 framing: reads a request text and returns the response text.
//
// Called for every HTTP body and WebSocket message. It accepts single calls and arrays, passes each call to
// `dispatch`, echoes its id unchanged, and converts errors by the table in core/errors.ts. Calls without an
// id are notifications: like Solana's nodes it neither executes nor answers them, unless
// `answersWithoutId` is set. It knows no method, and never throws or rejects.

import { quote, type Reason, ShredwayError } from "../errors.ts";
import {
  type CallParams,
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
  /** Returns the result of a call; an exception becomes an error object. */
  dispatch(method: string, params: readonly Json[]): unknown;
  /** As `dispatch`, for parameters with names instead of positions; absent: such calls are rejected. */
  dispatchNamed?(method: string, params: JsonObject): unknown;
  /**
   * Called first for each call, with its method, or "" if the call is invalid. An exception rejects
   * the call.
   */
  admit?(method: string): void;
  /**
   * Called after each call, with its method ("": invalid call) and the reason of its rejection
   * (null: accepted).
   */
  ended?(method: string, reason: Reason | null): void;
  /** Maximum number of calls in one array; default 100. */
  readonly batchMax?: number;
  /** Maximum nesting depth, including the array of calls. */
  readonly depthMax?: number;
  /** Maximum number of values in one text; default 8,192. */
  readonly valuesMax?: number;
  /** Answers calls without an id, with the id null. */
  readonly answersWithoutId?: boolean;
  /** Method that clients call without an id to keep a connection open: the call is ignored and not counted. */
  readonly heartbeatMethod?: string;
}

export interface JsonRpcAnswer {
  /** Text of the response; empty: no response. */
  readonly text: string;
  /** Why the single call or the whole array was rejected; null: it was accepted. */
  readonly reason: Reason | null;
}

/** A result with further members of the response object, beside `result`. */
export class ResultWithMembers {
  readonly result: unknown;
  readonly members: Readonly<Record<string, unknown>>;

  constructor(result: unknown, members: Readonly<Record<string, unknown>>) {
    this.result = result;
    this.members = members;
  }
}

/** The response to a call that succeeded. */
export function resultText(answer: unknown, id: Json): string {
  if (!(answer instanceof ResultWithMembers)) {
    return `{"jsonrpc":"2.0","result":${writeJson(answer ?? null)},"id":${writeJson(id)}}`;
  }
  const { result, members } = answer;
  return writeJson({ jsonrpc: "2.0", result: result ?? null, id, ...members });
}

interface Call {
  readonly id: Json;
  readonly method: string;
  readonly params: CallParams;
}

function invalidRequest(problem: string, expected: string): ShredwayError {
  return new ShredwayError("request_invalid", `Invalid request: ${problem}; expected ${expected}`);
}

function invalidMember(name: string, expected: string, value: Json | undefined): ShredwayError {
  const problem =
    value === undefined ? `missing ${name}` : `${name}: invalid value ${quote(value)}`;
  return invalidRequest(problem, expected);
}

/** null: a notification. Throws ShredwayError. */
function readCall(value: JsonObject, options: JsonRpcOptions): Call | null {
  const { jsonrpc, method, params } = value;
  const id = value["id"] ?? (options.answersWithoutId ? null : value["id"]);
  if (jsonrpc !== "2.0") throw invalidMember("jsonrpc", '"2.0"', jsonrpc);
  if (typeof method !== "string") throw invalidMember("method", "the name of a method", method);
  if (id === undefined) return null;
  if (params === undefined || params === null) return { id, method, params: [] };
  if (isJsonArray(params)) return { id, method, params };
  if (isJsonObject(params) && options.dispatchNamed) return { id, method, params };
  throw arrayExpected(params);
}

/** The method has no parameters with names. */
export function arrayExpected(params: Json): ShredwayError {
  return new ShredwayError("value_invalid", `Invalid params: ${quote(params)}; expected an array`);
}

function run({ method, params }: Call, options: JsonRpcOptions): unknown {
  return isJsonArray(params)
    ? options.dispatch(method, params)
    : options.dispatchNamed?.(method, params);
}

function refused(id: Json, thrown: unknown, options: JsonRpcOptions): JsonRpcAnswer {
  const error = writeJson(errorObjectOf(thrown, options));
  return {
    text: `{"jsonrpc":"2.0","error":${error},"id":${writeJson(id)}}`,
    reason: reasonOf(thrown),
  };
}

function handleCall(value: Json, options: JsonRpcOptions): Promise<JsonRpcAnswer> {
  const isIgnored = isHeartbeat(value, options);
  return isIgnored ? Promise.resolve({ text: "", reason: null }) : answerCall(value, options);
}

function isHeartbeat(value: Json, { heartbeatMethod }: JsonRpcOptions): boolean {
  if (heartbeatMethod === undefined || !isJsonObject(value)) return false;
  return value["id"] === undefined && value["method"] === heartbeatMethod;
}

function methodOf(value: Json): string {
  const method = isJsonObject(value) ? value["method"] : "";
  return typeof method === "string" ? method : "";
}

async function answerCall(value: Json, options: JsonRpcOptions): Promise<JsonRpcAnswer> {
  const id = isJsonObject(value) ? (value["id"] ?? null) : null;
  let answer: JsonRpcAnswer;
  try {
    options.admit?.(methodOf(value));
    if (!isJsonObject(value)) throw invalidRequest(`invalid value ${quote(value)}`, "an object");
    const call = readCall(value, options);
    const result = call ? await run(call, options) : null;
    answer = { text: call ? resultText(result, id) : "", reason: null };
  } catch (thrown) {
    answer = refused(id, thrown, options);
  }
  options.ended?.(methodOf(value), answer.reason);
  return answer;
}

async function handleBatch(
  values: readonly Json[],
  options: JsonRpcOptions,
): Promise<JsonRpcAnswer> {
  const answers: string[] = [];
  // The calls run sequentially, because calls of an array may depend on each other.
  for (const value of values) {
    const { text } = await handleCall(value, options);
    if (text !== "") answers.push(text);
  }
  return { text: answers.length === 0 ? "" : `[${answers.join(",")}]`, reason: null };
}

/** Invalid calls count too, so that invalid texts are rate-limited like valid ones. */
function refusalOfBatch(thrown: unknown, options: JsonRpcOptions): JsonRpcAnswer {
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

/**
 * The response to `text`, and whether it is a rejection. Not async, which would cost another
 * promise.
 */
export function answerJsonRpc(text: string, options: JsonRpcOptions): Promise<JsonRpcAnswer> {
  const batchMax = options.batchMax ?? 100;
  let value: Json;
  try {
    value = readCallJson(text, options.depthMax ?? jsonDepthMax, options.valuesMax);
    if (isJsonArray(value) && (value.length === 0 || value.length > batchMax)) {
      throw invalidRequest(`got ${value.length} calls`, `an array of 1 to ${batchMax} calls`);
    }
  } catch (thrown) {
    return Promise.resolve(refusalOfBatch(thrown, options));
  }
  return isJsonArray(value) ? handleBatch(value, options) : handleCall(value, options);
}

/** The response to `text`; empty: no response. */
export async function handleJsonRpc(text: string, options: JsonRpcOptions): Promise<string> {
  return (await answerJsonRpc(text, options)).text;
}
