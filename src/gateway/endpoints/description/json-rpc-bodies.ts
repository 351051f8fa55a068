// Schemas of JSON-RPC bodies over HTTP: calls, responses, and arrays of both.
//
// Used by paths.ts. The OpenRPC document describes the parameters of each method.

import {
  anyJson,
  closed,
  described,
  type JsonSchema,
  listOf,
  orNull,
  string,
  word,
} from "../../schema/json-schema.ts";
import { callsMax } from "../body-limits.ts";
import { jsonRpcError } from "./http-answers.ts";

const version = word("2.0");
/** Any JSON value; the response returns it unchanged. */
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
    closed(
      "CallResult",
      {
        jsonrpc: version,
        result: anyJson,
        id,
        receipt: described("signed receipt, if a submission requested one", orNull(string)),
      },
      ["receipt"],
    ),
    closed("CallError", { jsonrpc: version, error: jsonRpcError, id }),
  ],
};

const bounds = { minItems: 1, maxItems: callsMax };

export const callBody: JsonSchema = { oneOf: [call, listOf(call, bounds)] };
export const callAnswer: JsonSchema = { oneOf: [answer, listOf(answer, bounds)] };
/** Response of the paths with raw bodies. */
export const rawAnswer: JsonSchema = answer;
