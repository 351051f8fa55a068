// Address lookup tables: the accounts that a v0 transaction loads in addition to its static keys.
//
// Called by the executor before execution, to determine the writable accounts. The VM resolves the
// tables again by the same rules. Account data: u32 type, u64 deactivation slot, u64 slot of the
// last extension, u8 first index of that extension, …; addresses from byte 56.

import { addressLookupTableProgram, sameKey } from "./addresses.ts";
import type { TransactionErrorName } from "./failures.ts";
import type { VmAccount } from "./svm.ts";
import { keyBytes, type WireTransaction } from "./wire.ts";

const headerBytes = 56;
const lookupTableType = 1;

export interface LoadedKeys {
  readonly writable: readonly Uint8Array[];
  readonly readonly: readonly Uint8Array[];
}

/** Addresses in use: those added in the current slot apply from the next slot on. */
function activeCount(data: Uint8Array, slot: bigint): number {
  const stored = Math.floor((data.length - headerBytes) / keyBytes);
  const lastExtended = new DataView(data.buffer, data.byteOffset).getBigUint64(12, true);
  return slot > lastExtended ? stored : Math.min(stored, data[20] ?? 0);
}

/** The loaded keys in the order of the message, or the runtime's error name. */
export function loadLookups(
  { lookups }: WireTransaction,
  slot: bigint,
  accountOf: (key: Uint8Array) => VmAccount | null,
): LoadedKeys | TransactionErrorName {
  const writable: Uint8Array[] = [];
  const readonly: Uint8Array[] = [];
  for (const lookup of lookups) {
    const table = accountOf(lookup.table);
    if (!table) return "AddressLookupTableNotFound";
    if (!sameKey(table.owner, addressLookupTableProgram)) return "InvalidAddressLookupTableOwner";
    const { data } = table;
    if (data.length < headerBytes || data[0] !== lookupTableType) {
      return "InvalidAddressLookupTableData";
    }
    const count = activeCount(data, slot);
    const keyAt = (index: number): Uint8Array =>
      data.subarray(headerBytes + index * keyBytes, headerBytes + (index + 1) * keyBytes);
    if ([...lookup.writable, ...lookup.readonly].some((index) => index >= count)) {
      return "InvalidAddressLookupTableIndex";
    }
    writable.push(...Array.from(lookup.writable, keyAt));
    readonly.push(...Array.from(lookup.readonly, keyAt));
  }
  return { writable, readonly };
}
