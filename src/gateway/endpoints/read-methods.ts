// Read methods: what a stock client asks besides submitting, passed on to the configured node.
//
// Called by the gateway for every method that is not its own. An allow-list: what stock clients ask
// while they build, send and confirm a transaction. What makes a node work hard (getProgramAccounts,
// getBlock, getLeaderSchedule, getSignaturesForAddress, …) stays out, and so does all that changes
// something. Answers are the node's own, errors too; nothing is kept from one call to the next.

import { quote, ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { NodeCalls } from "../../core/json-rpc/node.ts";
import { PassedError } from "../../core/json-rpc/refusal.ts";
import type { ReadMethods } from "../methods/dependencies.ts";

/** Each needs the scope "read". */
export const readMethodNames = [
  // Building: blockhash, nonce, lookup tables, fees.
  "getLatestBlockhash",
  "isBlockhashValid",
  "getAccountInfo",
  "getMultipleAccounts",
  "getBalance",
  "getTokenAccountBalance",
  "getMinimumBalanceForRentExemption",
  "getFeeForMessage",
  "getRecentPrioritizationFees",
  "simulateTransaction",
  // Confirming.
  "getSignatureStatuses",
  "getTransaction",
  "getBlockHeight",
  "getBlockTime",
  "getSlot",
  "getEpochInfo",
  // Finding out where one is.
  "getEpochSchedule",
  "getGenesisHash",
  "getSlotLeader",
  "getSlotLeaders",
  "getVersion",
] as const;
const names: ReadonlySet<string> = new Set<string>(readMethodNames);

function isReadMethod(method: string): boolean {
  return names.has(method);
}

export function upstreamMissing(what: string): ShredwayError {
  return new ShredwayError(
    "upstream_missing",
    `${what} is answered by a node and none is configured: set solana.rpc`,
  );
}

/**
 * The node's result. Throws ShredwayError: "method_unknown", "upstream_missing", "rpc_failed" or
 * "overloaded"; PassedError for an error of the node. `others`: what else exists, for the message.
 */
export async function readMethod(
  node: NodeCalls | null,
  method: string,
  params: readonly Json[],
  others: readonly string[] = [],
): Promise<unknown> {
  if (!isReadMethod(method)) {
    const all = [...others, ...readMethodNames].join(", ");
    throw new ShredwayError(
      "method_unknown",
      `Method not found: expected one of ${all}; got ${quote(method)}`,
    );
  }
  if (!node) throw upstreamMissing(method);
  const answer = await node.call(method, params);
  if ("error" in answer) throw new PassedError(answer.error);
  return answer.result;
}

export function readMethodsOf(node: NodeCalls | null): ReadMethods {
  return {
    has: isReadMethod,
    call: (method, params) => readMethod(node, method, params),
  };
}
