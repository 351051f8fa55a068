// A transaction as JSON, in the form of Solana's RPC with the encoding "json".
//
// Pure but for base58, which the addon encodes.

import { writeJson } from "../../core/json-rpc/json-text.ts";
import { encodeBase58 } from "../data-plane/base58.ts";
import type { WireTransaction } from "./wire-transaction.ts";

/** Depth of an instruction of the transaction itself, as nodes number it. */
const stackHeight = 1;

/** JSON text of `{signatures, message}`. */
export function transactionJson(transaction: WireTransaction): string {
  const { header, keys, lifetime, instructions, lookups, version, config } = transaction;
  return writeJson({
    signatures: transaction.signatures.map(encodeBase58),
    message: {
      header: {
        numRequiredSignatures: header[0],
        numReadonlySignedAccounts: header[1],
        numReadonlyUnsignedAccounts: header[2],
      },
      accountKeys: keys.map(encodeBase58),
      recentBlockhash: encodeBase58(lifetime),
      instructions: instructions.map(({ program, accounts, data }) => ({
        programIdIndex: program,
        accounts: [...accounts],
        data: encodeBase58(data),
        stackHeight,
      })),
      ...(version === 0 && {
        addressTableLookups: lookups.map(({ table, writable, readonly }) => ({
          accountKey: encodeBase58(table),
          writableIndexes: [...writable],
          readonlyIndexes: [...readonly],
        })),
      }),
      // Values that were not requested are absent.
      ...(config && { config }),
    },
  });
}

/** JSON text of `{signatures, accountKeys}`, as with the detail "accounts". */
export function accountsJson({ signatures, keys, header }: WireTransaction): string {
  const [signers, readonlySigners, readonlyOthers] = header;
  return writeJson({
    signatures: signatures.map(encodeBase58),
    accountKeys: keys.map((key, i) => ({
      pubkey: encodeBase58(key),
      signer: i < signers,
      writable: i < signers ? i < signers - readonlySigners : i < keys.length - readonlyOthers,
      source: "transaction",
    })),
  });
}
