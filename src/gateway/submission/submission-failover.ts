// Submission failover: adopts the open submissions of dead nodes.
//
// Runs on every node that shares its database with others. A node holds the lock of its name while it runs.
// A node whose lock is free twice, ten seconds apart, is dead: its open submissions are assigned to this
// node and continue as after a restart. The assignment is stored in the rows themselves, so the former
// node cannot change them even if it comes back.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { nodeLockOf } from "../../core/node-lock-name.ts";
import type { SubmissionRecord, SubmissionStore } from "./types.ts";

interface Locks {
  /** null: another node holds it. */
  tryLock(name: string, onLost: () => void): Promise<{ release(): Promise<void> } | null>;
}

interface SubmissionFailoverDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly store: Pick<SubmissionStore, "open" | "openNodes" | "adopt">;
  readonly locks: Locks;
  /** Continues those that are not in memory yet; returns their number. */
  readonly resume: (records: readonly SubmissionRecord[]) => Promise<number>;
}

const checkIntervalMs = 10_000;

export class SubmissionFailover {
  readonly #dependencies: SubmissionFailoverDependencies;
  #timer: Timer | null = null;
  #check: Promise<void> | null = null;
  /** Records may have been assigned to this node that it has not read. */
  #isUnsure = false;
  #isFailing = false;
  #isClosed = false;
  /** Nodes whose locks were free at the last check. All are briefly free after a database restart. */
  #free = new Set<string>();

  constructor(dependencies: SubmissionFailoverDependencies) {
    this.#dependencies = dependencies;
  }

  start(): void {
    this.#timer = this.#dependencies.clock.every(checkIntervalMs, () => {
      // A check that still waits for the database is not repeated.
      this.#check ??= this.#checkNodes().finally(() => {
        this.#check = null;
      });
    });
  }

  /** Settles when no check is in progress. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#check;
  }

  async #checkNodes(): Promise<void> {
    const { store, log, resume: takeUp } = this.#dependencies;
    try {
      if (this.#isUnsure) {
        await takeUp(await store.open());
        this.#isUnsure = false;
      }
      const free = this.#free;
      this.#free = new Set();
      for (const node of await store.openNodes()) {
        if (this.#isClosed) return;
        await this.#adoptIfDead(node, free.has(node));
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing && !this.#isClosed) {
        log.warn(`failover: could not check for dead nodes: ${messageOf(error)}`);
      }
      this.#isFailing = true;
    }
  }

  async #adoptIfDead(node: string, wasFree: boolean): Promise<void> {
    const lock = await this.#dependencies.locks.tryLock(nodeLockOf(node), () => {});
    if (lock === null) return;
    try {
      if (wasFree) await this.#adopt(node);
      else this.#free.add(node);
    } finally {
      await lock.release();
    }
  }

  async #adopt(node: string): Promise<void> {
    const { store, log, resume: takeUp } = this.#dependencies;
    this.#isUnsure = true;
    const transactions = await takeUp(await store.adopt(node));
    this.#isUnsure = false;
    if (transactions > 0)
      log.info({ node, transactions }, "failover: adopted the open submissions of a dead node");
  }
}
