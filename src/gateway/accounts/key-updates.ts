// Keeps the keys in memory equal to those of the store.
//
// Created by gateway-service.ts. Another node may revoke a key; the change notification of the
// store starts a new read immediately. While the database is unavailable, the last known keys
// apply.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { Refresher } from "../../core/refresher.ts";
import type { KeyRing } from "./key-ring.ts";
import type { KeyStore } from "./types.ts";

interface KeyUpdatesDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "error">;
  readonly store: Pick<KeyStore, "keys" | "onForeignChange">;
  readonly keyRing: Pick<KeyRing, "replace">;
}

export class KeyUpdates {
  readonly #refresher: Refresher;
  readonly #endWatch: () => void;

  constructor({ clock, log, store, keyRing }: KeyUpdatesDependencies) {
    this.#refresher = new Refresher({
      clock,
      read: async () => keyRing.replace(await store.keys()),
      failed: (error) =>
        log.error(
          `accounts: API keys could not be reloaded; the previous keys stay in force: ${messageOf(error)}`,
        ),
    });
    this.#endWatch = store.onForeignChange(() => this.#refresher.notifyChange());
  }

  /**
   * Settles when every key that was stored before the call is in force. Rejects with the store's
   * error.
   */
  refresh(): Promise<void> {
    return this.#refresher.refresh();
  }

  close(): void {
    this.#endWatch();
    this.#refresher.close();
  }
}
