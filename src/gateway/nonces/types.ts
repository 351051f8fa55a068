// Types of durable nonces: present values, managed accounts, and what they depend on.
//
// The gateway uses `Nonces`; this folder uses the node, the store and the keys through the
// interfaces below. Addresses and values are base58, wall times milliseconds since 1970.

import type { BlockhashState } from "../../core/transactions/lifetimes.ts";

/** Result of getNonce. */
export interface NonceInfo {
  /** Present value at "confirmed", used in place of a recent blockhash. */
  readonly nonce: string;
  readonly nonceAccount: string;
  readonly nonceAuthority: string;
}

/** Owner of a managed nonce. */
export interface NonceOwner {
  readonly accountId: string;
  readonly keyId: string;
}

/** The service's nonces, as the gateway uses them. */
export interface Nonces {
  /**
   * The managed nonce of this key, created on the chain at the first call. Throws ShredwayError
   * "nonce_unavailable" (nonces.fundingKeyFile is not configured), "nonce_pending" (being created;
   * with `retryAfterSeconds`), "nonce_failed" (cause at the node or the funding key),
   * "store_failed", or "rpc_failed".
   */
  managed(owner: NonceOwner): Promise<NonceInfo>;
  /**
   * The nonce of any account on the chain. `accountId`: the caller, whose share of the memory it uses. Throws
   * "nonce_invalid" (missing, another owner, not initialised) or "rpc_failed".
   */
  of(account: string, accountId?: string): Promise<NonceInfo>;
  /** The owner that may use this nonce's authority; null: the service does not manage it. */
  ownerOf(account: string): NonceOwner | null;
  /**
   * Returns a copy of the transaction with the signature of the managed authority. The authority
   * must sign the first instruction, the advance of exactly this account, and be used nowhere else.
   * Its signature must be the only missing one (zeros), the lifetime the present value, the version
   * legacy or 0. Throws "co_signing_refused", "nonce_stale", or as `of`. Other signatures are not
   * verified here.
   */
  coSign(account: string, wire: Uint8Array): Promise<Uint8Array>;
}

// ---- store ----

export interface ManagedNonce {
  /**
   * 0, 1, 2, …: both keys of the account are derived from the master secret and this index. Never
   * reused.
   */
  readonly index: number;
  readonly keyId: string;
  readonly accountId: string;
  /** Address of the nonce account. */
  readonly address: string;
  /** making: reserved, possibly not on the chain yet. */
  readonly state: "making" | "ready";
  readonly createdMs: number;
}

/** The store implements it. Promises settle when the change survives a power loss. */
export interface ManagedNonceStore {
  all(): Promise<ManagedNonce[]>;
  find(keyId: string): Promise<ManagedNonce | null>;
  /**
   * Reserves index and key together. Returns false if one of them is in use, possibly by another
   * process.
   */
  add(nonce: ManagedNonce): Promise<boolean>;
  setReady(index: number): Promise<void>;
  /**
   * Calls `listener` after another process or connection may have changed nonces. Returns a
   * function that stops it.
   */
  onForeignChange(listener: () => void): () => void;
}

// ---- RPC node ----

export interface NonceAccountView {
  readonly owner: string;
  readonly lamports: bigint;
  readonly data: Uint8Array;
  /** The slot that the answer is of; absent: the node did not say it. */
  readonly slot?: bigint;
}

/** RpcClient implements it. All methods may reject with "rpc_failed". */
export interface NonceNode {
  /** At "confirmed", in the given order, at most 100 accounts; null: the account does not exist. */
  accounts(addresses: readonly string[]): Promise<(NonceAccountView | null)[]>;
  minimumBalance(bytes: number): Promise<bigint>;
  /** At "confirmed". */
  latestBlockhash(): Promise<string>;
  blockhashState(blockhash: string): Promise<BlockhashState>;
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
  /** The public key as 32 bytes; `address` is its base58 text. */
  readonly publicKey: Uint8Array;
  readonly address: string;
  /** 64 bytes. */
  sign(message: Uint8Array): Uint8Array;
}

export interface NonceKeys {
  /** Funds nonce accounts. */
  readonly funding: Signer;
  /** Key pair of the nonce account with this index; used only when the account is created. */
  account(index: number): Signer;
  /** Authority of that account; each index has its own. */
  authority(index: number): Signer;
}
