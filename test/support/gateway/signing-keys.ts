// Signing keys in a test: a store in memory, and a private key that the test can replace.

import { SigningKey } from "../../../src/core/signing-key.ts";
import { SigningKeys } from "../../../src/gateway/receipts/signing-keys.ts";
import type {
  SigningKeyStore,
  StatementSigner,
  StoredSigningKey,
} from "../../../src/gateway/receipts/types.ts";
import type { ManualClock } from "../clocks/manual-clock.ts";

export class MemorySigningKeyStore implements SigningKeyStore {
  readonly keys = new Map<string, StoredSigningKey>();
  readonly #listeners = new Set<() => void>();
  /** Thrown by every write while it is set. */
  failure: Error | null = null;

  all(): Promise<StoredSigningKey[]> {
    return Promise.resolve([...this.keys.values()]);
  }

  async add(key: Omit<StoredSigningKey, "retiredMs">): Promise<void> {
    await this.#mayFail();
    if (!this.keys.has(key.kid)) this.keys.set(key.kid, { ...key, retiredMs: null });
  }

  async use(key: Omit<StoredSigningKey, "retiredMs">): Promise<void> {
    await this.#mayFail();
    const { kid, node, createdMs } = key;
    for (const each of this.keys.values()) {
      if (each.node !== node || each.retiredMs !== null || each.kid === kid) continue;
      this.keys.set(each.kid, { ...each, retiredMs: createdMs });
    }
    this.keys.set(kid, { ...key, ...this.keys.get(kid), retiredMs: null });
  }

  onForeignChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Another process changed the keys. */
  notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #mayFail(): Promise<void> {
    return this.failure ? Promise.reject(this.failure) : Promise.resolve();
  }
}

export function signingKeyFrom(seed: number): SigningKey {
  return new SigningKey(new Uint8Array(32).fill(seed));
}

/** Signing keys of a test's gateway; `replace` is a rotation by another process. */
export class TestSigningKeys {
  readonly store = new MemorySigningKeyStore();
  readonly warnings: string[] = [];
  #seed = 1;

  open(clock: ManualClock): Promise<SigningKeys> {
    return SigningKeys.open({
      store: this.store,
      readKey: () => signingKeyFrom(this.#seed),
      node: "",
      clock,
      log: { info: () => undefined, warn: (text: unknown) => this.warnings.push(String(text)) },
    });
  }

  replace(seed: number): void {
    this.#seed = seed;
    this.store.notify();
  }
}

/** Signs with one key, without a store. */
export function signerOf(seed: number): StatementSigner & { readonly publicKey: Uint8Array } {
  const key = signingKeyFrom(seed);
  const x = Buffer.from(key.publicKey).toString("base64url");
  const jwk = { kty: "OKP", crv: "Ed25519", x, kid: key.kid, alg: "EdDSA", use: "sig", iat: 0 };
  return {
    publicKey: key.publicKey,
    keySet: JSON.stringify({ keys: [jwk] }),
    sign: (type, payload) => key.sign(type, payload),
    signDetached: (type, payload) => key.signDetached(type, payload),
  };
}
