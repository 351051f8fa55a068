// Filters for the accounts of a program: by size, or by bytes at an offset.
//
// Called by getProgramAccounts and programSubscribe. At most four filters, which must all match.
// Parsing throws like params.ts; matching never throws, for any account data.

import type { Account } from "../chain/types.ts";
import { decodeBase58, decodeBase64 } from "./bytes.ts";
import { type Config, invalidParams, type Value } from "./params.ts";
import { readTokenAccount } from "./token-layout.ts";

type AccountFilter = (account: Account) => boolean;

const filtersMax = 4;
const compareBytesMax = 128;

function readCompareBytes(memcmp: Config): Uint8Array {
  const value = memcmp.field("bytes");
  if (Array.isArray(value.json)) {
    return Uint8Array.from(value.array(compareBytesMax), (byte) => byte.count(255));
  }
  const decode =
    memcmp.encoding(["base58", "base64"], "base58") === "base58" ? decodeBase58 : decodeBase64;
  const bytes = decode(value.text(), 2 * compareBytesMax);
  if (bytes && bytes.length <= compareBytesMax) return bytes;
  throw value.refuse(`at most ${compareBytesMax} bytes in the encoding`);
}

function readFilter(value: Value): AccountFilter {
  const fields = value.object();
  const [name, ...others] = fields.names;
  if (others.length > 0) throw value.refuse("one filter in each object");
  switch (name ?? "") {
    case "dataSize": {
      const size = fields.field("dataSize").integer();
      return ({ data }) => BigInt(data.length) === size;
    }
    case "memcmp": {
      const memcmp = fields.field("memcmp").object();
      const offset = memcmp.field("offset").count(2 ** 32 - 1);
      const bytes = readCompareBytes(memcmp);
      return ({ data }) =>
        Buffer.compare(data.subarray(offset, offset + bytes.length), bytes) === 0;
    }
    case "tokenAccountState":
      return ({ data }) => readTokenAccount(data) !== undefined;
    default:
      throw invalidParams(value.what, "dataSize, memcmp or tokenAccountState", name);
  }
}

/** Whether an account passes all filters of `config`; without filters, every account does. */
export function readAccountFilter(config: Config): AccountFilter {
  const filters = config
    .field("filters")
    .or<AccountFilter[]>([], (value) => value.array(filtersMax).map(readFilter));
  return (account) => filters.every((passes) => passes(account));
}
