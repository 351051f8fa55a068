// Preflight: would the transaction succeed? The node simulates it before it is sent.
//
// Called by admission.ts for sendTransaction unless the caller skips it. Signatures were verified already, so the node
// need not. Never says yes without an answer of the node: what cannot be simulated is refused, and
// the caller may ask again with skipPreflight.

import { quote, ShredwayError } from "../../core/errors.ts";
import { isJsonObject, type JsonObject, readJson } from "../../core/json-rpc/json-text.ts";
import type { NodeCalls } from "../../core/json-rpc/node.ts";
import { PassedError } from "../../core/json-rpc/refusal.ts";
import type { Preflight, SimulationOptions } from "./dependencies.ts";

const depthMax = 64;

type Simulation = JsonObject & { readonly err: unknown };

const signatureBytes = 64;

/** A copy that nobody can send: what is submitted goes to the routes alone, and when they may have it. */
function unsigned(wire: Uint8Array): Uint8Array {
  const copy = new Uint8Array(wire);
  const [first = 0, required = 0] = copy;
  // v1: as many as its header requires, at the end; else so many behind their count.
  if (first >= 0x80) copy.fill(0, copy.length - required * signatureBytes);
  else copy.fill(0, 1, 1 + first * signatureBytes);
  return copy;
}

/**
 * `value` of the node's answer, every field as the node wrote it. Throws ShredwayError "rpc_failed"
 * or "overloaded"; PassedError for what the node refuses (-32016: behind minContextSlot).
 */
async function simulate(
  node: NodeCalls,
  wire: Uint8Array,
  { commitment, minContextSlot }: SimulationOptions,
): Promise<Simulation> {
  const answer = await node.call("simulateTransaction", [
    Buffer.from(unsigned(wire)).toString("base64"),
    {
      encoding: "base64",
      commitment,
      sigVerify: false,
      replaceRecentBlockhash: false,
      ...(minContextSlot !== null && { minContextSlot }),
    },
  ]);
  if ("error" in answer) throw new PassedError(answer.error);
  const result = readJson(answer.result.text, depthMax);
  const value = isJsonObject(result) ? result["value"] : undefined;
  if (isJsonObject(value) && value["err"] !== undefined) return { ...value, err: value["err"] };
  throw new ShredwayError(
    "rpc_failed",
    `simulateTransaction: expected a value with err, got ${quote(value)}`,
  );
}

export function preflightOf(node: NodeCalls): Preflight {
  return { simulate: (wire, options) => simulate(node, wire, options) };
}
