// Read methods: forwards an allow-list of methods to the configured node.
//
// The gateway calls it for every method that is not its own. The default list contains what wallets
// and standard clients call to build, send, confirm and show transactions. It excludes expensive
// methods (getProgramAccounts, getLeaderSchedule, …) and all that change state. getBlock is excluded,
// because checking its answer of up to 8 MB blocks the event loop. `gateway.readMethods` changes the
// list. Results and errors are the node's own and are not cached.

import { quote, ShredwayError } from "../../core/errors.ts";
import type { NodeCalls } from "../../core/json-rpc/node.ts";
import { ForwardedError } from "../../core/json-rpc/refusal.ts";
import type { ReadMethods } from "../methods/dependencies.ts";

/** The default list. Each requires the scope "read". */
export const readMethodNames = [
  // Building: blockhash, nonce, lookup tables, fees.
  "getLatestBlockhash",
  "isBlockhashValid",
  "getAccountInfo",
  "getMultipleAccounts",
  "getBalance",
  "getTokenAccountBalance",
  "getTokenAccountsByOwner",
  "getTokenSupply",
  "getMinimumBalanceForRentExemption",
  "getFeeForMessage",
  "getRecentPrioritizationFees",
  "simulateTransaction",
  // Confirming.
  "getSignatureStatuses",
  "getSignaturesForAddress",
  "getTransaction",
  "getBlockHeight",
  "getBlockTime",
  "getSlot",
  "getEpochInfo",
  // Cluster and leader information.
  "getTransactionCount",
  "getFirstAvailableBlock",
  "getEpochSchedule",
  "getGenesisHash",
  "getSlotLeader",
  "getSlotLeaders",
  "getVersion",
] as const;
const defaultNames: ReadonlySet<string> = new Set<string>(readMethodNames);

export function methodUnknown(name: string): ShredwayError {
  return new ShredwayError(
    "method_unknown",
    `Method not found: ${quote(name)}; rpc.discover lists the methods, and the operator can pass on others ` +
      "of the node with gateway.readMethods",
  );
}

export function upstreamMissing(what: string): ShredwayError {
  return new ShredwayError(
    "upstream_missing",
    `${what} needs an RPC node, but none is configured; set solana.rpc`,
  );
}

/**
 * `names`: the methods that are passed on now. A call throws ShredwayError "method_unknown", "upstream_missing",
 * "rpc_failed" or "overloaded", and ForwardedError for an error of the node.
 */
export function readMethodsOf(
  node: NodeCalls | null,
  names: () => ReadonlySet<string> = () => defaultNames,
): ReadMethods {
  const has = (method: string): boolean => names().has(method);
  return {
    has,
    call: async (method, params) => {
      if (!has(method)) throw methodUnknown(method);
      if (!node) throw upstreamMissing(method);
      const answer = await node.call(method, params);
      if ("error" in answer) throw new ForwardedError(answer.error);
      return answer.result;
    },
  };
}
