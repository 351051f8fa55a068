// Bodies of JSON-RPC over HTTP: calls, answers, and arrays of both.
//
// Used by paths.ts. Which parameters a method takes stands in the OpenRPC document.

import {
  anyJson,
  closed,
  described,
  type JsonSchema,
  listOf,
  word,
} from "../../schema/json-schema.ts";
import { callsMax } from "../request-context.ts";
import { jsonRpcError } from "./http-answers.ts";

const version = word("2.0");
/** Of any type; it comes back as it came. */
const id = described("id of the call; null if it has none", anyJson);

const call: JsonSchema = {
  title: "Call",
  type: "object",
  required: ["jsonrpc", "method"],
  properties: {
    jsonrpc: version,
    id,
    method: { type: "string" },
    params: { anyOf: [{ type: "array" }, { type: "null" }], description: "parameters by position" },
  },
};

const answer: JsonSchema = {
  title: "CallAnswer",
  oneOf: [
    closed("CallResult", { jsonrpc: version, result: anyJson, id }),
    closed("CallError", { jsonrpc: version, error: jsonRpcError, id }),
  ],
};

const bounds = { minItems: 1, maxItems: callsMax };

export const callBody: JsonSchema = { oneOf: [call, listOf(call, bounds)] };
export const callAnswer: JsonSchema = { oneOf: [answer, listOf(answer, bounds)] };
/** Of the paths that take no JSON. */
export const rawAnswer: JsonSchema = answer;
