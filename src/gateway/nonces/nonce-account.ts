// Parses nonce accounts: validity, authority and value.
//
// Pure. This folder and solana/rpc-client.ts use it as the only parser of the 80 bytes: u32 version
// (1), u32 state (1: initialised), 32 authority, 32 value, u64 lamports per signature;
// little-endian. The bytes are untrusted.

import { quote, ShredwayError } from "../../core/errors.ts";
import { pubkeyOf } from "../../core/primitives.ts";
import type { NonceAccountView } from "./types.ts";

export const systemProgram = "11111111111111111111111111111111";
export const nonceAccountBytes = 80;
const currentVersion = 1;
const initialised = 1;
const authorityAt = 8;
const valueAt = 40;
const keyBytes = 32;

export interface NonceAccount {
  /** Base58. */
  readonly authority: string;
  readonly value: string;
}

type Content = Pick<NonceAccountView, "owner" | "data">;

/** The reason why it is not a usable durable nonce account; null: it is usable. */
function faultOf({ owner, data }: Content): string | null {
  if (owner !== systemProgram) return `owner ${systemProgram}, got ${quote(owner)}`;
  if (data.length !== nonceAccountBytes) {
    const got = data.length > nonceAccountBytes ? "more" : String(data.length);
    return `${nonceAccountBytes} bytes of data, got ${got}`;
  }
  const view = new DataView(data.buffer, data.byteOffset);
  const version = view.getUint32(0, true);
  if (version !== currentVersion) return `version ${currentVersion}, got ${version}`;
  const state = view.getUint32(4, true);
  if (state !== initialised) return `state ${initialised} (initialised), got ${state}`;
  return null;
}

function read(data: Uint8Array): NonceAccount {
  return {
    authority: pubkeyOf(data.subarray(authorityAt, authorityAt + keyBytes)),
    value: pubkeyOf(data.subarray(valueAt, valueAt + keyBytes)),
  };
}

/** null: it is not a usable durable nonce account. */
export function findNonceAccount(content: Content | null): NonceAccount | null {
  return content && faultOf(content) === null ? read(content.data) : null;
}

/** `content`: null if the account does not exist. Throws ShredwayError "nonce_invalid". */
export function readNonceAccount(address: string, content: Content | null): NonceAccount {
  const fault = content ? faultOf(content) : "an initialised nonce account, got no account";
  if (content && fault === null) return read(content.data);
  throw new ShredwayError("nonce_invalid", `nonce account ${address}: expected ${fault}`);
}
