// Key watch: the keys in memory are those of the store, whoever changed them where.
//
// Made by gateway-service.ts. A key that is revoked through any node stops here with the next reading,
// which begins at once. While the database is away the keys of the last reading hold.

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
      failed: (error) => log.error(`the keys could not be read again: ${messageOf(error)}`),
    });
    this.#endWatch = store.onForeignChange(() => this.#refresher.notifyChange());
  }

  /** Settles when every key that was kept before the call holds. Rejects as the store. */
  refresh(): Promise<void> {
    return this.#refresher.refresh();
  }

  close(): void {
    this.#endWatch();
    this.#refresher.close();
  }
}
