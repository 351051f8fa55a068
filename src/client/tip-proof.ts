// The text that the fee payer of a tip signs so that the tip counts for one account.
//
// The signature goes into `proof` of registerTips. Wallets sign the text as a message.

/** `account`: `tipProof.account` of getTier; `signature`: the transaction's first signature, in base58. */
export function tipProofMessage(account: string, signature: string): Uint8Array {
  return new TextEncoder().encode(
    `shredway: register tip\naccount: ${account}\ntransaction: ${signature}\n`,
  );
}
