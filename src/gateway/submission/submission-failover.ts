// Orphan watch: who goes on with the submissions of a node that is gone?
//
// Run by every node that shares its database with others; made by main-gateway.ts. A node holds the lock
// of its name while it runs, so one whose lock can be had, twice with ten seconds between, is gone: its
// open submissions become this node's, and go on as after a restart. Whether the lock is still held does not matter afterwards: what
// was taken is this node's by the rows themselves, and the former node changes nothing of it any more.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { nodeLockOf } from "../../core/node-lock-name.ts";
import type { SubmissionRecord, SubmissionStore } from "./types.ts";

interface Locks {
  /** null: somebody else has it. */
  tryLock(name: string, onLost: () => void): Promise<{ release(): Promise<void> } | null>;
}

interface SubmissionFailoverDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly store: Pick<SubmissionStore, "open" | "openNodes" | "adopt">;
  readonly locks: Locks;
  /** Goes on with them, but for those it has already. Returns how many are new to it. */
  readonly takeUp: (records: readonly SubmissionRecord[]) => Promise<number>;
}

const lookMs = 10_000;

export class SubmissionFailover {
  readonly #parts: SubmissionFailoverDependencies;
  #timer: Timer | null = null;
  #looking: Promise<void> | null = null;
  /** Something may have been taken of which this process does not know. */
  #isUnsure = false;
  #isFailing = false;
  #isClosed = false;
  /** Nodes whose locks were free at the last look: after a restart of the database all are, for a moment. */
  #free = new Set<string>();

  constructor(parts: SubmissionFailoverDependencies) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = this.#parts.clock.every(lookMs, () => {
      // A database that does not answer is not asked twice.
      this.#looking ??= this.#look().finally(() => {
        this.#looking = null;
      });
    });
  }

  /** Settles when nothing is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { store, log, takeUp } = this.#parts;
    try {
      if (this.#isUnsure) {
        await takeUp(await store.open());
        this.#isUnsure = false;
      }
      const free = this.#free;
      this.#free = new Set();
      for (const node of await store.openNodes()) {
        if (this.#isClosed) return;
        await this.#adoptIfGone(node, free.has(node));
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing && !this.#isClosed) {
        log.warn(`submissions of other nodes could not be looked at: ${messageOf(error)}`);
      }
      this.#isFailing = true;
    }
  }

  async #adoptIfGone(node: string, wasFree: boolean): Promise<void> {
    const lock = await this.#parts.locks.tryLock(nodeLockOf(node), () => {});
    if (lock === null) return;
    try {
      if (wasFree) await this.#adopt(node);
      else this.#free.add(node);
    } finally {
      await lock.release();
    }
  }

  async #adopt(node: string): Promise<void> {
    const { store, log, takeUp } = this.#parts;
    this.#isUnsure = true;
    const transactions = await takeUp(await store.adopt(node));
    this.#isUnsure = false;
    if (transactions > 0) log.info({ node, transactions }, "submissions of a node that is gone");
  }
}
