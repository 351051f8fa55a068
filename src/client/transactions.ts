// Transactions as texts for calls.
//
// Called by client.ts. It does not parse them: Solana's libraries build and sign transactions.

import type { TransactionInput } from "./types.ts";

/** Leaves a text unchanged. */
export function base64Of(transaction: TransactionInput): string {
  if (typeof transaction === "string") return transaction;
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
