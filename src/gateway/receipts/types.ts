// Types of this folder: the stored public keys, and what the gateway uses to sign.

import type { StatementType } from "../../core/signing-key.ts";

/** A public key that signs or has signed statements. Its private key is in a file of its node. */
export interface StoredSigningKey {
  /** Thumbprint of the public key (RFC 7638). */
  readonly kid: string;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Name of its node; "": the database is not shared. */
  readonly node: string;
  readonly createdMs: number;
  /** When another key replaced it; null: it is in use. */
  readonly retiredMs: number | null;
}

/** Public keys are never deleted, so that earlier statements can be verified. */
export interface SigningKeyStore {
  /** Oldest first. */
  all(): Promise<StoredSigningKey[]>;
  /** Publishes a key before its first use. Changes nothing if it is known. Durable when it settles. */
  add(key: Omit<StoredSigningKey, "retiredMs">): Promise<void>;
  /** Like `add`; marks all other keys of the node as retired at `createdMs`. */
  use(key: Omit<StoredSigningKey, "retiredMs">): Promise<void>;
  onForeignChange(listener: () => void): () => void;
}

/** Signs with the key in use; implemented by signing-keys.ts. */
export interface StatementSigner {
  /** JWS in compact serialization; `payload` is JSON. */
  sign(type: StatementType, payload: string): string;
  /** JWS with detached content. */
  signDetached(type: StatementType, payload: string): string;
  /** The JWK Set (RFC 7517) of all public keys, as JSON. */
  readonly keySet: string;
}
