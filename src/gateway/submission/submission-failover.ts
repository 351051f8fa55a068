// Submission failover: adopts the open submissions of dead nodes.
//
// Runs on every node that shares its database with others. A node holds the lock of its name while it runs.
// A node whose lock stays free for two seconds is dead: its open submissions are assigned to this node and
// continue as after a restart. All locks are free after a restart of the database. If this node lost its
// own connection, it therefore waits until the others have had time to connect. The assignment is stored in
// the rows themselves, so the former node cannot change them even if it comes back.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { nodeLockOf } from "../../core/node-lock-name.ts";
import type { SubmissionRecord, SubmissionStore } from "./types.ts";

interface HeldLock {
  release(): Promise<void>;
}

interface Locks {
  /** null: another node holds it. */
  tryLock(name: string, onLost: () => void): Promise<HeldLock | null>;
}

interface SubmissionFailoverDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly store: Pick<SubmissionStore, "open" | "openNodes" | "adopt">;
  readonly locks: Locks;
  /** Name of this node. */
  readonly node: string;
  /** Continues those that are not in memory yet; returns their number. */
  readonly resume: (records: readonly SubmissionRecord[]) => Promise<number>;
}

const checkIntervalMs = 1_000;
const deadAfterMs = 2_000;
/** After a loss of the connection: as long as the other nodes may need to connect again. */
const deadAfterLossMs = 10_000;
const lossPassedMs = 20_000;

export class SubmissionFailover {
  readonly #dependencies: SubmissionFailoverDependencies;
  #timer: Timer | null = null;
  #check: Promise<void> | null = null;
  /** Records may have been assigned to this node that it has not read. */
  #isUnsure = false;
  #isFailing = false;
  #isClosed = false;
  /** Nodes whose locks are free, and since when (monotonic, ms). */
  #free = new Map<string, number>();
  /** A lock of this node; it is lost with the connection to the database. */
  #connection: HeldLock | null = null;
  /** When the connection was lost (monotonic, ms). */
  #lostMs = Number.NEGATIVE_INFINITY;

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
    await this.#connection?.release();
  }

  get #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / 1_000_000n);
  }

  async #watchConnection(): Promise<void> {
    const { locks, node } = this.#dependencies;
    this.#connection ??= await locks.tryLock(`failover by ${node}`, () => {
      this.#connection = null;
      this.#lostMs = this.#nowMs;
    });
  }

  async #checkNodes(): Promise<void> {
    const { store, log, resume: takeUp } = this.#dependencies;
    try {
      if (this.#isUnsure) {
        await takeUp(await store.open());
        this.#isUnsure = false;
      }
      await this.#watchConnection();
      const free = this.#free;
      this.#free = new Map();
      for (const node of await store.openNodes()) {
        if (this.#isClosed) return;
        await this.#adoptIfDead(node, free.get(node) ?? this.#nowMs);
      }
      this.#isFailing = false;
    } catch (error) {
      this.#lostMs = this.#nowMs;
      if (!this.#isFailing && !this.#isClosed) {
        log.warn(`failover: could not check for dead nodes: ${messageOf(error)}`);
      }
      this.#isFailing = true;
    }
  }

  async #adoptIfDead(node: string, freeSinceMs: number): Promise<void> {
    const lock = await this.#dependencies.locks.tryLock(nodeLockOf(node), () => {});
    if (lock === null) return;
    try {
      const nowMs = this.#nowMs;
      const waitMs = nowMs - this.#lostMs < lossPassedMs ? deadAfterLossMs : deadAfterMs;
      if (nowMs - freeSinceMs >= waitMs) await this.#adopt(node);
      else this.#free.set(node, freeSinceMs);
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
