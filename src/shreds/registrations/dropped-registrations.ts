// Dropped registrations: deletes them when they are old, or when an account has too many.
//
// Composed in app/compose-shreds.ts; works on the leader only. A registration costs its client nothing until it
// lands, so dropped ones would otherwise fill the disk. Counted registrations stay, because tiers and audits are
// computed from them. A deleted signature can be registered again, and its landing is then asked for again.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import {
  type DroppedList,
  type DroppedRegistrationStore,
  droppedLists,
} from "./registration-types.ts";

interface DroppedRegistrationsOptions {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly store: DroppedRegistrationStore;
  /** Wall time of the tiers. */
  readonly nowMs: () => number;
  readonly isLeader: () => boolean;
  /** Registrations of one account; tests use small numbers. */
  readonly keptMax?: number;
}

/** Customers ask about the tips of a month. */
const retentionMs = 30 * 24 * 3_600_000;
/** An account's rows take about 45 MB at most. */
const keptMaxDefault = 100_000;
const intervalMs = 5 * 60_000;

export class DroppedRegistrations {
  readonly #options: DroppedRegistrationsOptions;
  #timer: Timer | null = null;
  #deleting: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: DroppedRegistrationsOptions) {
    this.#options = options;
  }

  /** Once. */
  start(): void {
    this.#timer = this.#options.clock.every(intervalMs, () => this.#begin());
    this.#begin();
  }

  /** Settles when no deletion is in progress. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#deleting;
  }

  #begin(): void {
    const { log, isLeader } = this.#options;
    if (this.#deleting || this.#isClosed || !isLeader()) return;
    this.#deleting = this.#deleteAll()
      .catch((error: unknown) => {
        log.warn(`registrations: old ones could not be deleted; retrying: ${messageOf(error)}`);
      })
      .finally(() => {
        this.#deleting = null;
      });
  }

  async #deleteAll(): Promise<void> {
    for (const list of droppedLists) await this.#deleteFrom(list);
  }

  async #deleteFrom(list: DroppedList): Promise<void> {
    const { store, nowMs, keptMax = keptMaxDefault } = this.#options;
    let behind = "";
    while (!this.#isClosed) {
      const next = await store.nextAccount(list, behind, keptMax);
      if (!next) return;
      const { accountId, overMs } = next;
      const untilMs = Math.max(nowMs() - retentionMs, overMs ?? 0);
      while (!this.#isClosed && (await store.deleteSome(list, accountId, untilMs)));
      behind = accountId;
    }
  }
}
