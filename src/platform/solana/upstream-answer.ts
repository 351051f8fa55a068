// A node's JSON-RPC message, split without rewriting.
//
// Called by upstream.ts and upstream-socket.ts for every message of a node. Results stay the node's
// text: integers above 2^53 keep every digit, and forwarding a large one costs a fifth of parsing and
// writing it. The text is untrusted: it must be valid JSON with limited nesting, and error codes that
// stock clients do not know are replaced.

import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { isKnownCode, jsonRpcCodes } from "../../core/json-rpc/codes.ts";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  JsonText,
  readJson,
} from "../../core/json-rpc/json-text.ts";
import type { NodeAnswer, NodeError } from "../../core/json-rpc/node.ts";

/** Far more than any method returns, and less than the limit of clients' parsers. */
const depthMax = 64;
/** Length limit of an error message; the rest is in the error's data. */
const messageMax = 2000;

/** Either an answer (with an id) or a notification (with a method). */
export interface NodeMessage {
  /** JSON text; undefined: absent. */
  readonly id: string | undefined;
  /** The subscription of a notification. */
  readonly method: string | undefined;
  readonly params: JsonText | undefined;
  /** undefined: neither result nor error. */
  readonly answer: NodeAnswer | undefined;
}

function malformed(expected: string, actual: string): ShredwayError {
  return new ShredwayError("rpc_failed", `expected ${expected}, got ${actual}`);
}

const outerMarks = /["[\]{},:]/g;
const innerMarks = /["[\]{}]/g;

/** Index after the string that begins at `start`. */
function stringEnd(text: string, start: number): number {
  for (let end = start; ; ) {
    end = text.indexOf('"', end + 1);
    let backslashes = 0;
    while (text[end - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return end + 1;
  }
}

function nameOf(key: string): string {
  const name: unknown = JSON.parse(key);
  return String(name);
}

/**
 * The fields of a valid JSON object: name -> text of the value. Throws ShredwayError "rpc_failed" if it
 * is nested too deeply.
 */
export function fieldsOf(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  let depth = 0;
  let key = "";
  let start = 0;
  let next = 0;
  for (;;) {
    // A node's arrays have hundreds of thousands of commas; only those of the object itself count.
    const marks = depth > 1 ? innerMarks : outerMarks;
    marks.lastIndex = next;
    const character = marks.exec(text)?.[0];
    if (character === undefined) return fields;
    const at = marks.lastIndex - 1;
    next = at + 1;
    if (character === '"') {
      next = stringEnd(text, at);
      if (depth === 1 && start === 0) key = text.slice(at, next);
    } else if (character === ":") {
      if (depth === 1) start = at + 1;
    } else if (character === ",") {
      if (depth !== 1) continue;
      fields.set(nameOf(key), text.slice(start, at).trim());
      start = 0;
    } else if (character === "{" || character === "[") {
      depth++;
      if (depth > depthMax) throw malformed(`at most ${depthMax} levels of nesting`, "more");
    } else {
      depth--;
      if (depth === 0 && start > 0) fields.set(nameOf(key), text.slice(start, at).trim());
    }
  }
}

function maskAll(value: Json, mask: (text: string) => string): Json {
  if (typeof value === "string") return mask(value);
  if (isJsonArray(value)) return value.map((each) => maskAll(each, mask));
  if (!isJsonObject(value)) return value;
  const masked: Record<string, Json> = Object.create(null);
  for (const [name, field] of Object.entries(value)) masked[name] = maskAll(field, mask);
  return masked;
}

/** Codes that stock clients do not know become -32603; the data contains the node's code. */
function readError(text: string, mask: (text: string) => string): NodeError {
  const error = maskAll(readJson(text, depthMax), mask);
  if (!isJsonObject(error)) throw malformed("an error object", quote(error));
  const { code, message, data } = error;
  const detail = typeof message === "string" ? message.slice(0, messageMax) : quote(message);
  if (isKnownCode(code)) return { code, message: detail, ...(data !== undefined && { data }) };
  return {
    code: jsonRpcCodes.internalError,
    message: detail,
    data: { reason: "rpc_failed", error: { code: code ?? null, message: detail, data } },
  };
}

/** Throws ShredwayError "rpc_failed" unless `text` is one JSON-RPC message. */
export function readNodeMessage(text: string, mask: (text: string) => string): NodeMessage {
  let value: unknown;
  try {
    value = JSON.parse(text); // three times as fast as readJson, but it rounds integers
  } catch (cause) {
    throw malformed("JSON", mask(quote(messageOf(cause))));
  }
  if (!isJsonObject(value)) throw malformed("a JSON-RPC message", mask(quote(value)));
  const fields = fieldsOf(text);
  const { method } = value;
  const params = fields.get("params");
  const error = fields.get("error");
  const result = fields.get("result");
  const answer = (): NodeAnswer | undefined => {
    if (error !== undefined && error !== "null") return { error: readError(error, mask) };
    return result === undefined ? undefined : { result: new JsonText(result) };
  };
  return {
    id: fields.get("id"),
    method: typeof method === "string" ? method : undefined,
    params: params === undefined ? undefined : new JsonText(params),
    answer: answer(),
  };
}
