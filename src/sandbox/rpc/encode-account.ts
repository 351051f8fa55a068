// Accounts in the format of the RPC.
//
// Called by the account, token and simulation methods and by subscriptions. All of them use one
// parser of the configuration (encoding, dataSlice) and one encoder, so their errors and results
// agree.

import { ShredwayError } from "../../core/errors.ts";
import type { Account } from "../chain/types.ts";
import { encodeBase58, encodeBase64 } from "./bytes.ts";
import type { Config } from "./params.ts";
import { parseAccount, type ReadAccount } from "./parse-account.ts";
import { zstdFrame } from "./zstd-frame.ts";

const encodings = ["binary", "base58", "base64", "base64+zstd", "jsonParsed"] as const;
type AccountEncoding = (typeof encodings)[number];

export interface AccountFormat {
  readonly encoding: AccountEncoding;
  /** null: all data. */
  readonly slice: { readonly offset: number; readonly length: number } | null;
}

const base58BytesMax = 128;
const sliceMax = 2 ** 32 - 1;

export function readAccountEncoding(config: Config, fallback: AccountEncoding): AccountEncoding {
  return config.encoding(encodings, fallback);
}

/** Without an encoding: `fallback`; that of the node's account methods is "binary". */
export function readAccountFormat(
  config: Config,
  fallback: AccountEncoding = "binary",
): AccountFormat {
  const slice = config.field("dataSlice").or(null, (value) => {
    const fields = value.object();
    return {
      offset: fields.field("offset").count(sliceMax),
      length: fields.field("length").count(sliceMax),
    };
  });
  return { encoding: readAccountEncoding(config, fallback), slice };
}

function base58Text(data: Uint8Array): string {
  if (data.length <= base58BytesMax) return encodeBase58(data);
  throw new ShredwayError(
    "request_invalid",
    `Encoded binary (base 58) data: expected at most ${base58BytesMax} bytes, got ${data.length}; use base64`,
  );
}

function encodeData(account: Account, format: AccountFormat, read: ReadAccount): unknown {
  if (format.encoding === "jsonParsed") {
    const parsed = parseAccount(account, read);
    if (parsed) return parsed;
  }
  const { slice } = format;
  const data = slice
    ? account.data.subarray(slice.offset, slice.offset + slice.length)
    : account.data;
  switch (format.encoding) {
    case "binary":
      return base58Text(data);
    case "base58":
      return [base58Text(data), "base58"];
    case "base64+zstd":
      return [encodeBase64(zstdFrame(data)), "base64+zstd"];
    case "base64":
    case "jsonParsed":
      return [encodeBase64(data), "base64"];
  }
}

export function encodeAccount(account: Account, format: AccountFormat, read: ReadAccount): object {
  return {
    data: encodeData(account, format, read),
    executable: account.executable,
    lamports: account.lamports,
    owner: account.owner,
    rentEpoch: account.rentEpoch,
    space: account.data.length,
  };
}
