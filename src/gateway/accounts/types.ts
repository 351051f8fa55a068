// Types of accounts and API keys.
//
// The text of a key exists only when it is created; the store has its hash. Wall times are
// nanoseconds since 1970.

import type { UnusableKey } from "./unusable-keys.ts";

/**
 * submit: sendTransaction, sendBundle, sendIdeal, sendAlt and their statuses. batch: sendBatch.
 * read: read methods and subscriptions that the upstream node answers. shreds: registration of
 * tips, tier, destinations. stream: decoded streams. operate: the portal's figures of the whole service, for operators.
 */
export const scopes = ["submit", "batch", "read", "shreds", "stream", "operate"] as const;
export type Scope = (typeof scopes)[number];

export interface Account {
  readonly id: string;
  /** Unique. */
  readonly name: string;
  readonly createdNs: bigint;
}

export interface ApiKey {
  /** Short public name of the key: "k_…". */
  readonly id: string;
  readonly accountId: string;
  readonly accountName: string;
  /** SHA-256 of the key's text, 32 bytes. */
  readonly hash: Uint8Array;
  /** First characters of the key's text, so that users recognise it. */
  readonly hint: string;
  readonly label: string;
  readonly scopes: readonly Scope[];
  /** Limit on all calls with this key on this node; null: the gateway's default. */
  readonly requestsPerSecond: number | null;
  readonly burst: number | null;
  /** Addresses and CIDR ranges from which the key may be used; empty: all. */
  readonly allowedRanges: readonly string[];
  readonly createdNs: bigint;
  /** Set by a rotation: end of the overlap in which the old key stays valid. */
  readonly expiresNs: bigint | null;
  readonly revokedNs: bigint | null;
}

export interface KeyRows {
  /** Includes revoked and expired keys, oldest first. */
  readonly keys: readonly ApiKey[];
  readonly unusable: readonly UnusableKey[];
}

/** The store implements it. Changes survive a power loss when the promise settles. */
export interface KeyStore {
  read(): Promise<KeyRows>;
  /** The usable keys of `read`. */
  keys(): Promise<readonly ApiKey[]>;
  accounts(): Promise<Account[]>;
  /** The account of that name; it is created if missing. */
  ensureAccount(name: string, nowNs: bigint): Promise<Account>;
  addKey(key: ApiKey): Promise<void>;
  /**
   * Sets the expiry of the old key, adds the new one and gives it the public keys of the old one, in one
   * transaction. `onlyOnce`: the old key must have no expiry, so that a second rotation fails. Throws
   * ShredwayError "key_unknown".
   */
  replaceKey(
    oldId: string,
    expiresNs: bigint,
    key: ApiKey,
    options?: { readonly onlyOnce: boolean },
  ): Promise<void>;
  /** Throws ShredwayError "key_unknown". Revoking a revoked key changes nothing. */
  revokeKey(id: string, nowNs: bigint): Promise<void>;
  /**
   * Calls `listener` after another process or connection may have changed keys. Returns a function
   * that stops it.
   */
  onForeignChange(listener: () => void): () => void;
}
