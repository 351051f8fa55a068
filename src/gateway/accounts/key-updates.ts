// Keeps the API keys and public keys in memory equal to those of the store.
//
// Created by gateway-service.ts. Another node may revoke a key; the change notification of the
// store starts a new read immediately. While the database is unavailable, the last known keys
// apply.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { Refresher } from "../../core/refresher.ts";
import type { KeyRing } from "./key-ring.ts";
import type { PublicKeyStore } from "./public-key-types.ts";
import type { PublicKeys } from "./public-keys.ts";
import type { KeyStore } from "./types.ts";

interface KeyUpdatesDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "error">;
  readonly store: Pick<KeyStore, "keys" | "onForeignChange">;
  readonly keyRing: Pick<KeyRing, "replace">;
  readonly publicKeyStore: Pick<PublicKeyStore, "all" | "onForeignChange">;
  readonly publicKeys: Pick<PublicKeys, "replace">;
}

export class KeyUpdates {
  readonly #refresher: Refresher;
  readonly #endWatches: readonly (() => void)[];

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
  }: KeyUpdatesDependencies): Promise<void> {
    const registered = await publicKeyStore.all();
    keyRing.replace(await store.keys());
    publicKeys.replace(registered);
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
