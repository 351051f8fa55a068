// Preflight: simulates a transaction on the node before it is sent.
//
// Called by transaction-admission.ts for sendTransaction unless the caller skips it. The node need
// not verify signatures, because the service already did. A transaction that cannot be simulated is
// refused; the caller may retry with skipPreflight.

import { quote, ShredwayError } from "../../core/errors.ts";
import { isJsonObject, type JsonObject, readJson } from "../../core/json-rpc/json-text.ts";
import type { NodeCalls } from "../../core/json-rpc/node.ts";
import { ForwardedError } from "../../core/json-rpc/refusal.ts";
import type { Preflight, SimulationOptions } from "./dependencies.ts";

const depthMax = 64;

type Simulation = JsonObject & { readonly err: unknown };

const signatureBytes = 64;

/**
 * Removes the signatures, so that the node cannot send the transaction: only routes may receive it.
 */
function unsigned(wire: Uint8Array): Uint8Array {
  const copy = new Uint8Array(wire);
  const [first = 0, required = 0] = copy;
  // v1: the header has the number of signatures, which are at the end; else they follow their count.
  if (first >= 0x80) copy.fill(0, copy.length - required * signatureBytes);
  else copy.fill(0, 1, 1 + first * signatureBytes);
  return copy;
}

/**
 * Returns `value` of the node's response unchanged. Throws ShredwayError "rpc_failed" or
 * "overloaded"; throws PassedError for an error of the node (-32016: behind minContextSlot).
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
  if ("error" in answer) throw new ForwardedError(answer.error);
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
