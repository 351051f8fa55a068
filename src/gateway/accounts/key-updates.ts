// Keeps the API keys and public keys in memory equal to those of the store.
//
// Created by gateway-service.ts. Another node may revoke a key; the change notification of the
// store starts a new read immediately. While the database is unavailable, the last known keys
// apply. A row that this version cannot use is named in the log; it affects only its own key.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { Refresher } from "../../core/refresher.ts";
import type { KeyRing } from "./key-ring.ts";
import type { PublicKeyStore } from "./public-key-types.ts";
import type { PublicKeys } from "./public-keys.ts";
import type { KeyStore } from "./types.ts";
import { unusableKeyTexts } from "./unusable-keys.ts";

interface KeyUpdatesDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "error" | "warn">;
  readonly store: Pick<KeyStore, "read" | "onForeignChange">;
  readonly keyRing: Pick<KeyRing, "replace">;
  readonly publicKeyStore: Pick<PublicKeyStore, "read" | "onForeignChange">;
  readonly publicKeys: Pick<PublicKeys, "replace">;
}

export class KeyUpdates {
  readonly #refresher: Refresher;
  readonly #endWatches: readonly (() => void)[];
  #unusable: readonly string[] = [];

  constructor(dependencies: KeyUpdatesDependencies) {
    const { clock, log, store, publicKeyStore } = dependencies;
    this.#refresher = new Refresher({
      clock,
      read: () => this.#read(dependencies),
      failed: (error) =>
        log.error(
          `accounts: API keys could not be reloaded; the previous keys stay in force: ${messageOf(error)}`,
        ),
    });
    this.#endWatches = [store, publicKeyStore].map((one) =>
      one.onForeignChange(() => this.#refresher.notifyChange()),
    );
  }

  /** API keys last: each key to which a rotation moved public keys is known then. */
  async #read({
    store,
    keyRing,
    publicKeyStore,
    publicKeys,
    log,
  }: KeyUpdatesDependencies): Promise<void> {
    const registered = await publicKeyStore.read();
    const stored = await store.read();
    keyRing.replace(stored.keys);
    publicKeys.replace(registered.publicKeys);
    const reported = new Set(this.#unusable);
    this.#unusable = unusableKeyTexts(stored.unusable, registered.unusable);
    for (const text of this.#unusable) if (!reported.has(text)) log.warn(`accounts: ${text}`);
  }

  /** One sentence for each stored key that this version cannot use. */
  get unusable(): readonly string[] {
    return this.#unusable;
  }

  /**
   * Settles when every key that was stored before the call is in force. Rejects with the store's
   * error.
   */
  refresh(): Promise<void> {
    return this.#refresher.refresh();
  }

  close(): void {
    for (const end of this.#endWatches) end();
    this.#refresher.close();
  }
}
