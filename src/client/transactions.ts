// Transactions as texts for calls.
//
// Called by client.ts. It does not parse them: Solana's libraries build and sign transactions.

import { ShredwayCallError } from "./error.ts";
import type { TransactionInput } from "./types.ts";

/** The error of a value that JavaScript passes instead of bytes or a text, usually the object of a library. */
export function notSerialized(value: unknown): ShredwayCallError {
  const found = value === undefined || value === null ? String(value) : `type ${typeof value}`;
  return new ShredwayCallError(
    `value_invalid: transaction: expected bytes (Uint8Array) or a text, got ${found}; serialize it first, with ` +
      "transaction.serialize() of @solana/web3.js or getBase64EncodedWireTransaction of @solana/kit",
    { reason: "value_invalid" },
  );
}

function isIterable(value: unknown): boolean {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

/** Leaves a text unchanged. Throws ShredwayCallError "value_invalid". */
export function base64Of(transaction: TransactionInput): string {
  if (typeof transaction === "string") return transaction;
  if (!isIterable(transaction)) throw notSerialized(transaction);
  let characters = "";
  for (const byte of transaction) characters += String.fromCharCode(byte);
  return btoa(characters);
}

/** undefined: the service detects the encoding. */
export function encodingOf(
  transactions: readonly TransactionInput[],
  ofTexts: "base64" | "base58" | undefined,
): "base64" | "base58" | undefined {
  const texts = transactions.filter((each) => typeof each === "string");
  if (texts.length === 0) return "base64";
  return texts.length === transactions.length || ofTexts === "base64" ? ofTexts : undefined;
}
