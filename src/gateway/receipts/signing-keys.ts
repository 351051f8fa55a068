// The keys that sign statements: the private key of this node, and the public keys of all nodes.
//
// Opened by compose-gateway.ts, read by the methods and by /.well-known/shredway-keys.json. The private key
// is in a file that `readKey` reads again after each change of the stored keys, so that a rotation needs no
// restart. A public key is stored before its key signs. A failing store or file changes nothing: the
// previous key stays in use.

import type { KeySet, PublishedKey } from "../../client/responses.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { SigningKey, StatementType } from "../../core/signing-key.ts";
import type { SigningKeyStore, StatementSigner, StoredSigningKey } from "./types.ts";

interface SigningKeysDependencies {
  readonly store: SigningKeyStore;
  /** Throws ShredwayError. */
  readonly readKey: () => SigningKey;
  /** Name of this node; "": the database is not shared. */
  readonly node: string;
  readonly clock: Pick<Clock, "nowNs">;
  readonly log: Pick<Logger, "info" | "warn">;
}

function publishedKeyOf({ kid, publicKey, createdMs, retiredMs }: StoredSigningKey): PublishedKey {
  return {
    kty: "OKP",
    crv: "Ed25519",
    x: Buffer.from(publicKey).toString("base64url"),
    kid,
    alg: "EdDSA",
    use: "sig",
    iat: Math.floor(createdMs / 1000),
    ...(retiredMs !== null && { exp: Math.ceil(retiredMs / 1000) }),
  };
}

export class SigningKeys implements StatementSigner {
  readonly #dependencies: SigningKeysDependencies;
  #key: SigningKey;
  #keySet = "";
  #refreshing: Promise<void> | null = null;
  #isChanged = false;
  #isClosed = false;
  readonly #unsubscribe: () => void;

  /** Throws ShredwayError "config_invalid" for the file, "store_failed" for the store. */
  static async open(dependencies: SigningKeysDependencies): Promise<SigningKeys> {
    const keys = new SigningKeys(dependencies, dependencies.readKey());
    try {
      await keys.#use(keys.#key);
    } catch (error) {
      await keys.close();
      throw error;
    }
    return keys;
  }

  private constructor(dependencies: SigningKeysDependencies, key: SigningKey) {
    this.#dependencies = dependencies;
    this.#key = key;
    this.#unsubscribe = dependencies.store.onForeignChange(() => this.#changed());
  }

  /** Name of the key in use. */
  get kid(): string {
    return this.#key.kid;
  }

  get keySet(): string {
    return this.#keySet;
  }

  sign(type: StatementType, payload: string): string {
    return this.#key.sign(type, payload);
  }

  signDetached(type: StatementType, payload: string): string {
    return this.#key.signDetached(type, payload);
  }

  /** Settles when no refresh is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unsubscribe();
    await this.#refreshing;
  }

  /** Changes during a refresh cause another one. */
  #changed(): void {
    this.#isChanged = true;
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = null;
    });
  }

  /** Never rejects. */
  async #refresh(): Promise<void> {
    while (this.#isChanged && !this.#isClosed) {
      this.#isChanged = false;
      try {
        await this.#follow();
      } catch (error) {
        this.#dependencies.log.warn(
          `signing keys: the key ${this.#key.kid} stays in use: ${messageOf(error)}`,
        );
      }
    }
  }

  async #follow(): Promise<void> {
    const { readKey, log } = this.#dependencies;
    const key = readKey();
    if (key.kid === this.#key.kid) {
      await this.#readKeySet();
      return;
    }
    await this.#use(key);
    this.#key = key;
    log.info({ kid: key.kid }, "signing keys: a new key is in use");
  }

  async #use({ kid, publicKey }: SigningKey): Promise<void> {
    const { store, node, clock } = this.#dependencies;
    const createdMs = Number(clock.nowNs() / 1_000_000n);
    await store.use({ kid, publicKey, node, createdMs });
    await this.#readKeySet();
  }

  async #readKeySet(): Promise<void> {
    const stored = await this.#dependencies.store.all();
    const keySet: KeySet = { keys: stored.map(publishedKeyOf) };
    this.#keySet = JSON.stringify(keySet);
  }
}
