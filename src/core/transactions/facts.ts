// What is known of a transaction after a look at its bytes, before its signatures are checked.
//
// Only types. Made by data-plane/transactions.ts (native/transaction does the reading); read by the
// rules of the submission pipeline. Bytes of hostile origin, but sanitised: what is here is in range.

/** As the RPC writes it. */
export type TransactionVersion = "legacy" | 0 | 1;

interface NonceUse {
  /** 32 bytes each. The nonce value is the transaction's lifetime. */
  readonly account: Uint8Array;
  readonly authority: Uint8Array;
}

export interface TransactionFacts {
  /** The whole transaction, nothing behind it. Never changed by anybody. */
  readonly wire: Uint8Array;
  readonly version: TransactionVersion;
  /** First signature, 64 bytes; `signature` is the same in base58. */
  readonly signatureBytes: Uint8Array;
  readonly signature: string;
  /** 32 bytes. */
  readonly feePayer: Uint8Array;
  /** 32 bytes: a recent blockhash or a durable nonce's value. */
  readonly lifetime: Uint8Array;
  /** Set when the first instruction advances a durable nonce. */
  readonly nonce: NonceUse | null;
  /** Sum of System Transfer and TransferWithSeed to the configured addresses among the static keys. */
  readonly tipLamports: bigint;
  /** Units that the transaction may use: asked for, or the default of its instructions. */
  readonly computeUnitLimit: number;
  /** Micro-lamports per compute unit, as asked for; 0 in v1, which has no price. */
  readonly computeUnitPrice: bigint;
  /** Legacy and v0: price x limit, rounded up; v1: the total of its configuration. */
  readonly priorityFeeLamports: bigint;
  /** Holds an account whose base58 text begins with one of the configured prefixes. */
  readonly hasFrontKey: boolean;
}
