// The wish for PostgreSQL that a reload brings, and what becomes of it: the database moves while the
// service goes on.
//
// Called by gateway-service.ts. Never throws: a move that fails leaves everything as it was, says so, and
// is tried again at the next reload.

import type { Config } from "../core/configuration/configuration.ts";
import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Store } from "../platform/store/store.ts";

export class DatabaseMove {
  readonly #store: Pick<Store, "isOnFile" | "move">;
  readonly #log: Logger;
  /** Where to, while it is under way. */
  #to: string | undefined;

  constructor(store: Pick<Store, "isOnFile" | "move">, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  apply({ data: { postgres } }: Config): void {
    if (this.#to !== undefined) {
      const message =
        "data.postgres changed while the database is moved: the move goes on as begun";
      if (postgres !== this.#to) this.#log.error(message);
      return;
    }
    if (postgres === undefined || !this.#store.isOnFile) return;
    this.#to = postgres;
    void this.#move(postgres);
  }

  async #move(postgres: string): Promise<void> {
    this.#log.info("the database is moved to PostgreSQL while everything goes on");
    try {
      const { rows, heldMs, movedPath, warnings } = await this.#store.move(postgres);
      for (const warning of warnings) this.#log.warn(warning);
      this.#log.info(
        { rows, heldMs, movedPath },
        "moved: PostgreSQL has the database now, the file is kept under another name",
      );
    } catch (error) {
      this.#log.error(
        `the database was not moved, and is in its file as before; SIGHUP tries again: ${messageOf(error)}`,
      );
    } finally {
      this.#to = undefined;
    }
  }
}
