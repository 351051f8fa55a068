// Accounts and API keys: what is known of a caller.
//
// Only types. Keys themselves exist at the moment of their making only: what is kept is a hash.
// Wall times are nanoseconds since 1970.

/**
 * submit: sendTransaction, sendBundle, sendIdeal, sendAlt and their statuses. batch: sendBatch.
 * read: read methods and subscriptions passed to the upstream node. shreds: registration of tips, tier,
 * destinations. operate: the portal's numbers of the whole service, for those who run it.
 */
export const scopes = ["submit", "batch", "read", "shreds", "operate"] as const;
export type Scope = (typeof scopes)[number];

export interface Account {
  readonly id: string;
  /** Unique. */
  readonly name: string;
  readonly createdNs: bigint;
}

export interface ApiKey {
  /** Short, public: "k_…". What people name it by. */
  readonly id: string;
  readonly accountId: string;
  readonly accountName: string;
  /** SHA-256 of the key's text, 32 bytes. */
  readonly hash: Uint8Array;
  /** First characters of the key's text, to recognise it by. */
  readonly hint: string;
  readonly label: string;
  readonly scopes: readonly Scope[];
  /** Of all calls of this key on this node; null: the gateway's default. */
  readonly requestsPerSecond: number | null;
  readonly burst: number | null;
  /** Addresses and CIDR ranges that may use it; empty: all. */
  readonly allowedRanges: readonly string[];
  readonly createdNs: bigint;
  /** Set by a rotation: the old key holds until then. */
  readonly expiresNs: bigint | null;
  readonly revokedNs: bigint | null;
}

/** Kept by the store. Changes are durable (also against a loss of power) when the promise settles. */
export interface KeyStore {
  /** All of them, revoked and expired ones too, oldest first. */
  keys(): Promise<ApiKey[]>;
  accounts(): Promise<Account[]>;
  /** The account of that name, made when there is none. */
  ensureAccount(name: string, nowNs: bigint): Promise<Account>;
  addKey(key: ApiKey): Promise<void>;
  /** Both or neither. Throws ShredwayError "key_unknown". */
  replaceKey(oldId: string, expiresNs: bigint, key: ApiKey): Promise<void>;
  /** Throws ShredwayError "key_unknown"; revoking a revoked one changes nothing. */
  revokeKey(id: string, nowNs: bigint): Promise<void>;
  /** Told after another process (or connection) changed keys, or may have. Returns how to end that. */
  onForeignChange(listener: () => void): () => void;
}
