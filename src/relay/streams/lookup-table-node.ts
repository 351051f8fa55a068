// Address lookup tables by a node: one read call for several tables, with a validated answer.
//
// Account data: u32 type 1, u64 slot of the deactivation, u64 slot of the last extension, u8 first index
// of that extension, …; addresses from byte 56.

import { quote, ShredwayError } from "../../core/errors.ts";
import { isObject } from "../../core/values.ts";
import type { LookupTableContent } from "../data-plane/relay-lookup-tables.ts";

const lookupTableProgram = "AddressLookupTab1e1111111111111111111111111";

/** Tables in one call. A table has at most 11 kB in base64, so parsing stays below 3 ms. */
export const tablesPerCall = 20;
const answerBytesMax = 320 * 1024;
const method = "getMultipleAccounts";
const headerBytes = 56;
const addressBytes = 32;
const addressesMax = 256;
const lookupTableType = 1;

/** A read call of a node, with the maximum length of its answer. */
export type NodeCall = (
  method: string,
  params: readonly unknown[],
  bytesMax: number,
) => Promise<unknown>;

interface LookupTableAnswer {
  /** The newest slot that the node has at the commitment "confirmed". */
  readonly slot: bigint;
  /** In the order of the request; null: not an address lookup table. */
  readonly tables: readonly (LookupTableContent | null)[];
}

/** Tables at "confirmed". Throws ShredwayError "rpc_failed". */
export async function readLookupTables(
  call: NodeCall,
  addresses: readonly string[],
): Promise<LookupTableAnswer> {
  const options = { encoding: "base64", commitment: "confirmed" };
  const result = await call(method, [addresses, options], answerBytesMax);
  const { context, value } = isObject(result) ? result : {};
  const slot = isObject(context) ? context["slot"] : undefined;
  if (typeof slot !== "number" || !Number.isSafeInteger(slot) || slot < 0) {
    throw failure(`expected a slot in the context, got ${quote(slot)}`);
  }
  if (!Array.isArray(value) || value.length !== addresses.length) {
    const came = Array.isArray(value) ? `${value.length}` : quote(value);
    throw failure(`expected ${addresses.length} accounts, got ${came}`);
  }
  return { slot: BigInt(slot), tables: value.map(contentOf) };
}

function contentOf(account: unknown): LookupTableContent | null {
  if (account === null) return null;
  const { owner, data } = isObject(account) ? account : {};
  const [text, encoding]: readonly unknown[] = Array.isArray(data) ? data : [];
  if (typeof owner !== "string" || typeof text !== "string" || encoding !== "base64") {
    throw failure(`expected an account in base64, got ${quote(account)}`);
  }
  return owner === lookupTableProgram ? parseLookupTable(Buffer.from(text, "base64")) : null;
}

/** null: the data of another account. */
function parseLookupTable(data: Buffer): LookupTableContent | null {
  const count = (data.length - headerBytes) / addressBytes;
  if (!Number.isInteger(count) || count < 0 || count > addressesMax) return null;
  if (data.readUInt32LE(0) !== lookupTableType) return null;
  return {
    extendedSlot: data.readBigUInt64LE(12),
    extensionBegin: data.readUInt8(20),
    addresses: Array.from({ length: count }, (_, i) => {
      const begin = headerBytes + i * addressBytes;
      return data.subarray(begin, begin + addressBytes);
    }),
  };
}

function failure(text: string): ShredwayError {
  return new ShredwayError("rpc_failed", `${method}: ${text}`);
}
