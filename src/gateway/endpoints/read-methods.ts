// Read methods: forwards an allow-list of methods to the configured node.
//
// The gateway calls it for every method that is not its own. The list contains what standard
// clients call to build, send and confirm a transaction. It excludes expensive methods
// (getProgramAccounts, getBlock, getLeaderSchedule, getSignaturesForAddress, …) and all that change
// state. Results and errors are the node's own and are not cached.

import { quote, ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { NodeCalls } from "../../core/json-rpc/node.ts";
import { ForwardedError } from "../../core/json-rpc/refusal.ts";
import type { ReadMethods } from "../methods/dependencies.ts";

/** Each requires the scope "read". */
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
  // Cluster and leader information.
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
    `${what} needs an RPC node, but none is configured; set solana.rpc`,
  );
}

/**
 * Returns the node's result. Throws ShredwayError "method_unknown", "upstream_missing",
 * "rpc_failed" or "overloaded"; throws PassedError for an error of the node. `others`: further
 * methods for the message.
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
  if ("error" in answer) throw new ForwardedError(answer.error);
  return answer.result;
}

export function readMethodsOf(node: NodeCalls | null): ReadMethods {
  return {
    has: isReadMethod,
    call: (method, params) => readMethod(node, method, params),
  };
}
