// Well-known accounts, as bytes.

import { parsePubkey, pubkeyBytes } from "../../core/primitives.ts";

function key(text: string): Uint8Array {
  return pubkeyBytes(parsePubkey(text));
}

export const addressLookupTableProgram = key("AddressLookupTab1e1111111111111111111111111");
export const computeBudgetProgram = key("ComputeBudget111111111111111111111111111111");
export const voteProgram = key("Vote111111111111111111111111111111111111111");
export const sysvarOwner = key("Sysvar1111111111111111111111111111111111111");
export const slotHashesSysvar = key("SysvarS1otHashes111111111111111111111111111");
export const clockSysvar = key("SysvarC1ock11111111111111111111111111111111");
export const rentSysvar = key("SysvarRent111111111111111111111111111111111");

/** Built-in programs, whose instructions cost a fixed small number of compute units (SIMD-0170). */
export const builtinPrograms: readonly Uint8Array[] = [
  new Uint8Array(32), // System program
  voteProgram,
  computeBudgetProgram,
  key("BPFLoader1111111111111111111111111111111111"),
  key("BPFLoader2111111111111111111111111111111111"),
  key("BPFLoaderUpgradeab1e11111111111111111111111"),
  key("LoaderV411111111111111111111111111111111111"),
  key("Ed25519SigVerify111111111111111111111111111"),
  key("KeccakSecp256k11111111111111111111111111111"),
];

/** Programs whose instructions contain signatures, which cost as much as the transaction's. */
export const signatureVerifyPrograms: readonly Uint8Array[] = [
  key("Ed25519SigVerify111111111111111111111111111"),
  key("KeccakSecp256k11111111111111111111111111111"),
  key("Secp256r1SigVerify1111111111111111111111111"),
];

export function sameKey(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0;
}
