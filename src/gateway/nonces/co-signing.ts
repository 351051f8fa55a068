// Types of the check before a managed nonce authority signs a transaction.
//
// The nonce service calls it before the authority's key is used; transactions/co-signing.ts
// implements it. Only the inspected message may be signed: callers must not share the bytes between
// check and signature.

export interface NonceAdvancePosition {
  /** Offset of the 64 bytes of the missing signature. */
  readonly signatureAt: number;
  /** Range of the signed message, end exclusive: the bytes that a validator verifies. */
  readonly messageBegin: number;
  readonly messageEnd: number;
  /** Copy of the transaction's 32-byte lifetime; the caller compares it with the nonce value. */
  readonly lifetime: Uint8Array;
}

export interface CoSigningCheck {
  /**
   * Account and authority: 32 bytes each. Throws ShredwayError "co_signing_refused" unless the
   * authority signs only the advance of exactly this account and its signature is the only missing
   * one. Throws "transaction_invalid" or "transaction_version" if no validator would accept the
   * transaction.
   */
  place(wire: Uint8Array, nonceAccount: Uint8Array, authority: Uint8Array): NonceAdvancePosition;
}
