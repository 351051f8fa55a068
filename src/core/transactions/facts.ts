// Facts of a transaction: the content of its bytes, before its signatures are verified.
//
// Only types. native/transaction parses the bytes, which may be hostile; all values here are
// validated.

/** Transaction version, in the form of Solana's RPC. */
export type TransactionVersion = "legacy" | 0 | 1;

interface NonceUse {
  /** Account and authority, 32 bytes each. The nonce value is the transaction's `lifetime`. */
  readonly account: Uint8Array;
  readonly authority: Uint8Array;
}

export interface TransactionFacts {
  /** The bytes of the transaction. Never modified. */
  readonly wire: Uint8Array;
  readonly version: TransactionVersion;
  /** First signature, 64 bytes; `signature` is the same in base58. */
  readonly signatureBytes: Uint8Array;
  readonly signature: string;
  /** 32 bytes. */
  readonly feePayer: Uint8Array;
  /** 32 bytes: a recent blockhash, or the value of a durable nonce. */
  readonly lifetime: Uint8Array;
  /** Durable nonce that the first instruction advances; null: no durable nonce. */
  readonly nonce: NonceUse | null;
  /** Sum of System Transfer and TransferWithSeed to the configured addresses among the static keys. */
  readonly tipLamports: bigint;
  /** Compute units that the transaction may use: requested, or the default of its instructions. */
  readonly computeUnitLimit: number;
  /** Micro-lamports per compute unit, as requested; 0 for v1, which has no price field. */
  readonly computeUnitPrice: bigint;
  /** Legacy and v0: price x limit, rounded up; v1: the total of its configuration. */
  readonly priorityFeeLamports: bigint;
  /** Whether it contains an account whose base58 text begins with one of the configured prefixes. */
  readonly hasFrontKey: boolean;
}
