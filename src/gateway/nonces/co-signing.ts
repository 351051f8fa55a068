// Where a managed authority may sign: the place of its missing signature, and the bytes it is for.
//
// Only types. Nonce rules ask before the authority's key touches anything; data-plane/co-signing.ts
// is the real one. Who passes may have signed exactly the message that was looked at, and nothing
// else: callers keep the bytes to themselves from the look to the signature.

export interface CoSigningPlace {
  /** Offset of the 64 bytes of the missing signature. */
  readonly signatureAt: number;
  /** First byte of what is signed, and the first one behind it: exactly what a validator verifies. */
  readonly messageBegin: number;
  readonly messageEnd: number;
  /** Copy of the transaction's 32 bytes of lifetime; whether they are the nonce's value, the caller sees. */
  readonly lifetime: Uint8Array;
}

export interface CoSigningCheck {
  /**
   * Account and authority: 32 bytes each. Throws ShredwayError "co_signing_refused" when the authority
   * would sign anything else than the advance of exactly this account, or nothing is missing, or
   * somebody else's signature is, too; "transaction_invalid" or "transaction_version" when no validator
   * would take the transaction.
   */
  place(wire: Uint8Array, nonceAccount: Uint8Array, authority: Uint8Array): CoSigningPlace;
}
