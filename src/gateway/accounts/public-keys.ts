// Public keys of accounts in memory: registration, removal, and the API key for which each one acts.
//
// Created by compose-gateway.ts; methods/public-keys.ts, callers.ts and the QUIC ingress use it. KeyUpdates
// fills it from the store together with the API keys. A change is durable, in force, and in the log when its
// promise settles.

import type { Clock } from "../../core/clock.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { pubkeyOf } from "../../core/primitives.ts";
import { scopeMissing } from "./missing-scope.ts";
import { checkClaim, checkPublicKey } from "./public-key-proof.ts";
import {
  type PublicKeyPurpose,
  type PublicKeyStore,
  purposeScopes,
  type RegisteredPublicKey,
} from "./public-key-types.ts";
import type { ApiKey } from "./types.ts";

export const publicKeysPerAccountMax = 16;
const nsPerMs = 1_000_000n;

/** Parameter of a registration. */
interface PublicKeyRegistration {
  readonly publicKey: string;
  readonly purpose: PublicKeyPurpose;
  readonly expiresAt: string;
  readonly signature: string;
}

interface PublicKeysDependencies {
  readonly store: Pick<PublicKeyStore, "add" | "remove">;
  /** The API key with that id, if it is in force. */
  readonly apiKey: (id: string) => ApiKey | null;
  /** Settles when everything that was stored before the call is in memory. */
  readonly refresh: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info">;
}

function takenPublicKey(publicKey: string): ShredwayError {
  return new ShredwayError(
    "public_key_refused",
    `public key ${publicKey} is already registered; expected another key pair, or its removal first`,
  );
}

/** Throws ShredwayError "public_key_refused". */
export function checkAddedPublicKey(
  answer: "added" | "taken" | "too_many",
  publicKey: string,
): void {
  if (answer === "taken") throw takenPublicKey(publicKey);
  if (answer === "added") return;
  throw new ShredwayError(
    "public_key_refused",
    `the account has ${publicKeysPerAccountMax} public keys, which is the limit; remove one first`,
  );
}

export function unknownPublicKey(publicKey: string): ShredwayError {
  return new ShredwayError(
    "public_key_unknown",
    `unknown public key ${quote(publicKey)}; expected one that the account has registered`,
  );
}

function requireScope(what: string, key: ApiKey, purpose: PublicKeyPurpose): void {
  const wanted = purposeScopes[purpose];
  if (!key.scopes.includes(wanted)) throw scopeMissing(what, key, [wanted]);
}

export class PublicKeys {
  readonly #dependencies: PublicKeysDependencies;
  #byKey: ReadonlyMap<string, RegisteredPublicKey> = new Map();

  constructor(dependencies: PublicKeysDependencies) {
    this.#dependencies = dependencies;
  }

  /** Replaces all public keys. */
  replace(all: readonly RegisteredPublicKey[]): void {
    this.#byKey = new Map(all.map((each) => [each.publicKey, each]));
  }

  /** Oldest first. */
  ofAccount(accountId: string): RegisteredPublicKey[] {
    return [...this.#byKey.values()].filter((each) => each.accountId === accountId);
  }

  withPurpose(purpose: PublicKeyPurpose): RegisteredPublicKey[] {
    return [...this.#byKey.values()].filter((each) => each.purpose === purpose);
  }

  /** null: its API key has ended, or lacks the scope; then it has no effect. */
  apiKeyOf({ keyId, purpose }: RegisteredPublicKey): ApiKey | null {
    const key = this.#dependencies.apiKey(keyId);
    return key?.scopes.includes(purposeScopes[purpose]) ? key : null;
  }

  /** The API key for which a public key acts. null: it is unknown, for another purpose, or without effect. */
  find(purpose: PublicKeyPurpose, publicKey: Uint8Array): ApiKey | null {
    const found = this.#byKey.get(pubkeyOf(publicKey));
    return found?.purpose === purpose ? this.apiKeyOf(found) : null;
  }

  /** Rejects with ShredwayError. The repetition of a registration returns the first one. */
  async register(
    key: ApiKey,
    { signature, ...rest }: PublicKeyRegistration,
  ): Promise<RegisteredPublicKey> {
    const { store, clock, log, refresh } = this.#dependencies;
    requireScope(`registerPublicKey for ${rest.purpose}`, key, rest.purpose);
    const nowMs = Number(clock.nowNs() / nsPerMs);
    const { id: keyId, accountId, accountName } = key;
    await checkClaim({ accountId, ...rest }, signature, nowMs);
    const { publicKey, purpose } = rest;
    const wanted = { publicKey, purpose, accountId, accountName, keyId, registeredMs: nowMs };
    const answer = await store.add(wanted, { keyId, nowMs }, publicKeysPerAccountMax);
    await refresh();
    if (answer !== "added") return this.#repeated(wanted, answer);
    log.info(
      { account: accountName, key: keyId, publicKey, purpose },
      "accounts: public key added",
    );
    return wanted;
  }

  /** Throws ShredwayError "public_key_refused", unless it is the same registration. */
  #repeated(wanted: RegisteredPublicKey, answer: "taken" | "too_many"): RegisteredPublicKey {
    const { publicKey, accountId, keyId, purpose } = wanted;
    const found = this.#byKey.get(publicKey);
    const isSame =
      found?.accountId === accountId && found.keyId === keyId && found.purpose === purpose;
    if (isSame) return found;
    checkAddedPublicKey(answer, publicKey);
    return wanted;
  }

  /** Rejects with ShredwayError. */
  async remove(key: ApiKey, text: string): Promise<void> {
    const { store, clock, log, refresh } = this.#dependencies;
    const { id: keyId, accountId, accountName } = key;
    const publicKey = checkPublicKey(text);
    const found = this.#byKey.get(publicKey);
    if (found?.accountId !== accountId) throw unknownPublicKey(publicKey);
    requireScope(`removePublicKey for ${found.purpose}`, key, found.purpose);
    const nowMs = Number(clock.nowNs() / nsPerMs);
    const isRemoved = await store.remove(accountId, publicKey, { keyId, nowMs });
    await refresh();
    if (!isRemoved) throw unknownPublicKey(publicKey);
    const { purpose } = found;
    log.info(
      { account: accountName, key: keyId, publicKey, purpose },
      "accounts: public key removed",
    );
  }
}
