// The result of simulateTransaction, and the data of a preflight failure.
//
// Called by methods/transactions.ts. An invalid signature is reported as the transaction error
// "SignatureFailure", as in the node's simulation since version 3.1.

import { ShredwayError } from "../../core/errors.ts";
import type { ChainApi, SimulateOptions, Simulation } from "../chain/types.ts";
import { parseTransaction } from "../chain/wire.ts";
import { encodeBase58, Fields } from "./bytes.ts";
import { type AccountFormat, encodeAccount } from "./encode-account.ts";
import { encodeInnerInstructions, encodeReturnData } from "./encode-transaction.ts";

/** Size of each account in addition to its data, and of each lookup table (SIMD-0186). */
const accountBaseBytes = 64;
const lookupTableBytes = 8248;
const lookupTableMetaBytes = 56;

/** Static keys, then the current keys of the lookup tables: writable, then read-only. */
function accountKeysOf(chain: ChainApi, wire: Uint8Array): string[] {
  const { keys, lookups } = parseTransaction(wire);
  const loaded = (indexes: "writable" | "readonly"): string[] =>
    lookups.flatMap((lookup) => {
      const table = chain.account(encodeBase58(lookup.table));
      return [...lookup[indexes]].map((index) => {
        const at = lookupTableMetaBytes + 32 * index;
        return table && table.data.length >= at + 32 ? new Fields(table.data).key(at) : "";
      });
    });
  return [...keys.map(encodeBase58), ...loaded("writable"), ...loaded("readonly")];
}

function loadedBytes(simulation: Simulation, wire: Uint8Array): number {
  let bytes = parseTransaction(wire).lookups.length * lookupTableBytes;
  for (const account of simulation.accounts.values()) {
    if (account) bytes += accountBaseBytes + account.data.length;
  }
  return bytes;
}

/** Throws "transaction_invalid" and "transaction_version" if the transaction cannot be executed. */
export function simulate(chain: ChainApi, wire: Uint8Array, options: SimulateOptions): Simulation {
  try {
    return chain.simulate(wire, options);
  } catch (thrown) {
    if (!(thrown instanceof ShredwayError) || thrown.reason !== "signature_invalid") throw thrown;
    return {
      err: "SignatureFailure",
      logs: [],
      unitsConsumed: 0n,
      returnData: null,
      innerInstructions: [],
      fee: null,
      accounts: new Map(),
      replacementBlockhash: null,
    };
  }
}

export interface SimulationFormat {
  readonly hasInnerInstructions: boolean;
  /** null: accounts were not requested. */
  readonly accounts: {
    readonly addresses: readonly string[];
    readonly format: AccountFormat;
  } | null;
}

function encodeAccounts(
  chain: ChainApi,
  simulation: Simulation,
  { addresses, format }: NonNullable<SimulationFormat["accounts"]>,
): (object | null)[] {
  return addresses.map((address) => {
    const account = simulation.accounts.get(address) ?? null;
    return account && encodeAccount(account, format, (key) => chain.account(key));
  });
}

export function encodeSimulation(
  chain: ChainApi,
  wire: Uint8Array,
  simulation: Simulation,
  { hasInnerInstructions, accounts }: SimulationFormat,
): Readonly<Record<string, unknown>> & { readonly err: unknown } {
  const { err, logs, unitsConsumed, innerInstructions, returnData, fee } = simulation;
  return {
    err,
    logs,
    accounts: accounts ? encodeAccounts(chain, simulation, accounts) : null,
    unitsConsumed,
    loadedAccountsDataSize: loadedBytes(simulation, wire),
    returnData: encodeReturnData(returnData),
    innerInstructions: hasInnerInstructions
      ? encodeInnerInstructions(innerInstructions, accountKeysOf(chain, wire), true)
      : null,
    fee,
    replacementBlockhash: simulation.replacementBlockhash,
  };
}
