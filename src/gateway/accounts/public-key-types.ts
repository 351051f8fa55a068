// Types of the Ed25519 public keys that accounts register.
//
// A registered public key replaces an API key where a protocol has no place for one: in the certificate of a
// QUIC client, and in the login of a ShredStream proxy. It acts for the API key that registered it.

import type { Scope } from "./types.ts";
import type { UnusablePublicKey } from "./unusable-keys.ts";

/** tpu: submissions over QUIC. shredstream: a subscriber of the block engine for stock proxies. */
export const publicKeyPurposes = ["tpu", "shredstream"] as const;
export type PublicKeyPurpose = (typeof publicKeyPurposes)[number];

/** The scope that the API key needs. */
export const purposeScopes: Readonly<Record<PublicKeyPurpose, Scope>> = {
  tpu: "submit",
  shredstream: "shreds",
};

export interface RegisteredPublicKey {
  /** Base58; unique. */
  readonly publicKey: string;
  readonly purpose: PublicKeyPurpose;
  readonly accountId: string;
  readonly accountName: string;
  /** Id of the API key whose rights and limits it has. A rotation replaces it. */
  readonly keyId: string;
  readonly registeredMs: number;
}

export interface PublicKeyRows {
  /** Oldest first. */
  readonly publicKeys: readonly RegisteredPublicKey[];
  readonly unusable: readonly UnusablePublicKey[];
}

export const publicKeyEventKinds = ["registered", "removed"] as const;

/** One line of the audit trail. */
export interface PublicKeyEvent {
  readonly accountId: string;
  /** Counts from 1 in each account. */
  readonly number: number;
  readonly atMs: number;
  readonly kind: (typeof publicKeyEventKinds)[number];
  readonly publicKey: string;
  /** A newer version may have written another one than `publicKeyPurposes`. */
  readonly purpose: string;
  /** The API key that made the call; null: the operator. */
  readonly keyId: string | null;
}

/** Author and time of a change, for the audit trail. */
export interface PublicKeyActor {
  /** null: the operator. */
  readonly keyId: string | null;
  readonly nowMs: number;
}

/** The store implements it. Changes survive a power loss when the promise settles. */
export interface PublicKeyStore {
  read(): Promise<PublicKeyRows>;
  /** The usable public keys of `read`. */
  all(): Promise<readonly RegisteredPublicKey[]>;
  /** The database decides who owns a public key, because several processes may write at once. */
  add(
    key: RegisteredPublicKey,
    actor: PublicKeyActor,
    perAccountMax: number,
  ): Promise<"added" | "taken" | "too_many">;
  /** false: the account has no such public key. */
  remove(accountId: string, publicKey: string, actor: PublicKeyActor): Promise<boolean>;
  /** The audit trail of all accounts, oldest first; each account has a bounded number of lines. */
  events(): Promise<PublicKeyEvent[]>;
  /** As KeyStore.onForeignChange. */
  onForeignChange(listener: () => void): () => void;
}
