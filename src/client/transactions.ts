// Transactions as texts of a call.
//
// Called by client.ts. Looks into none of them: building and signing is what Solana's libraries are for.

import type { TransactionInput } from "./types.ts";

/** A text stays as it is. */
export function base64Of(transaction: TransactionInput): string {
  if (typeof transaction === "string") return transaction;
  let characters = "";
  for (const byte of transaction) characters += String.fromCharCode(byte);
  return btoa(characters);
}

/** undefined: the service looks. */
export function encodingOf(
  transactions: readonly TransactionInput[],
  ofTexts: "base64" | "base58" | undefined,
): "base64" | "base58" | undefined {
  const texts = transactions.filter((each) => typeof each === "string");
  if (texts.length === 0) return "base64";
  return texts.length === transactions.length || ofTexts === "base64" ? ofTexts : undefined;
}
