// Durable nonces: the present value of an account, and accounts that the service keeps for its keys.
//
// Only types. The gateway asks `Nonces`; the rules of this folder ask the node, the store and the keys
// through the faces below. Addresses and values are base58, wall times milliseconds since 1970.

/** What getNonce answers. */
export interface NonceInfo {
  /** Present value at "confirmed", used in place of a recent blockhash. */
  readonly nonce: string;
  readonly nonceAccount: string;
  readonly nonceAuthority: string;
}

/** Whose account a managed nonce is. */
export interface NonceOwner {
  readonly accountId: string;
  readonly keyId: string;
}

/** The service's nonces as the gateway sees them. */
export interface Nonces {
  /**
   * The managed nonce of this key: made on the chain at the first call, the same one ever after. Throws
   * ShredwayError "nonce_unavailable" (nonces.fundingKeyFile is not configured), "nonce_pending" (being
   * made; with `retryAfterSeconds`), "nonce_failed" (what the node or the funding key lacks), "store_failed",
   * "rpc_failed".
   */
  managed(owner: NonceOwner): Promise<NonceInfo>;
  /** Of any account on the chain. Throws "nonce_invalid" (none, another owner, not initialised) or "rpc_failed". */
  of(account: string): Promise<NonceInfo>;
  /** Who may have this nonce's authority sign; null: it is none of the service's. */
  ownerOf(account: string): NonceOwner | null;
  /**
   * A copy of the transaction with the signature of the managed authority put in its place. The authority
   * must be signer of the first instruction, the advance of exactly this account, and stand nowhere else;
   * its signature must be the only missing one (zeros); the lifetime must be the present value; version
   * legacy or 0. Throws "co_signing_refused", "nonce_stale", or as `of`. Signatures of others are not verified here.
   */
  coSign(account: string, wire: Uint8Array): Promise<Uint8Array>;
}

// ---- what is kept ----

export interface ManagedNonce {
  /** 0, 1, 2, …: both keys of the account are derived from the master secret by it. Never used twice. */
  readonly index: number;
  readonly keyId: string;
  readonly accountId: string;
  /** Of the nonce account. */
  readonly address: string;
  /** making: reserved, perhaps not on the chain yet. */
  readonly state: "making" | "ready";
  readonly createdMs: number;
}

/** Kept by the store. Promises settle when the change survives a loss of power. */
export interface ManagedNonceStore {
  all(): Promise<ManagedNonce[]>;
  find(keyId: string): Promise<ManagedNonce | null>;
  /** Reserves index and key together; false: one of them is taken (by another process, too). */
  add(nonce: ManagedNonce): Promise<boolean>;
  setReady(index: number): Promise<void>;
  /** Told after another process (or connection) changed nonces, or may have. Returns how to end that. */
  onForeignChange(listener: () => void): () => void;
}

// ---- what is asked of the node ----

export interface NonceAccountView {
  readonly owner: string;
  readonly lamports: bigint;
  readonly data: Uint8Array;
}

/** RpcClient is the real one. All may reject with "rpc_failed". */
export interface NonceNode {
  /** At "confirmed"; at most 100 accounts, in their order; null: no such account. */
  accounts(addresses: readonly string[]): Promise<(NonceAccountView | null)[]>;
  minimumBalance(bytes: number): Promise<bigint>;
  /** At "confirmed". */
  latestBlockhash(): Promise<string>;
  isBlockhashValid(blockhash: string): Promise<boolean>;
  /** Without preflight. */
  sendTransaction(wire: Uint8Array): Promise<string>;
  signatureStatuses(signatures: readonly string[]): Promise<
    ({
      readonly err: unknown;
      readonly commitment: "processed" | "confirmed" | "finalized";
    } | null)[]
  >;
}

// ---- keys ----

/** An Ed25519 key pair that never leaves its object. */
export interface Signer {
  /** 32 bytes, and in base58. */
  readonly publicKey: Uint8Array;
  readonly address: string;
  /** 64 bytes. */
  sign(message: Uint8Array): Uint8Array;
}

export interface NonceKeys {
  /** Pays for nonce accounts. */
  readonly funding: Signer;
  /** Key pair of the nonce account with this index; needed once, when it is made. */
  account(index: number): Signer;
  /** Its authority: another one for each index. */
  authority(index: number): Signer;
}
