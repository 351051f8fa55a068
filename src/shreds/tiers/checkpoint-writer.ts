// Checkpoint writer: when is what the tier engine knows persisted, and is it persisted yet?
//
// Held by leader-tiers.ts. One checkpoint is under way at a time; what happens meanwhile goes into the
// next one, right behind it. A checkpoint that fails is not lost: the next one holds its states and
// events, too. Nothing here makes the engine wait. When the store says that the term is over,
// nothing more is written.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { TierCheckpoint, TierEvent, TierState, TierStore } from "./types.ts";

/** Sums can be made again from the store, events cannot: only the former wait. */
const sumsMs = 1000;
const retryMs = 1000;

interface CheckpointWriterOptions {
  readonly store: Pick<TierStore, "checkpoint">;
  readonly epoch: bigint;
  readonly clock: Clock;
  readonly log: Logger;
  /** All of one moment, with what changed since the last call. */
  readonly take: () => TierCheckpoint;
  /** The store refused the epoch; once. */
  readonly onOver: () => void;
}

export class CheckpointWriter {
  readonly #options: CheckpointWriterOptions;
  /** Taken and not known to be persisted; the newest state of each account. */
  readonly #states = new Map<string, TierState>();
  #events: TierEvent[] = [];
  #isUrgent = false;
  #isWanted = false;
  #isFailing = false;
  #isClosed = false;
  #isOver = false;
  #writing: Promise<void> | null = null;
  #timer: Timer | null = null;

  constructor(options: CheckpointWriterOptions) {
    this.#options = options;
  }

  /** At the end of this turn, or right behind the one that is under way. */
  now(): void {
    this.#isUrgent = true;
    if (this.#writing || this.#isFailing || this.#isClosed) return;
    this.#timer?.cancel();
    this.#start();
  }

  /** About a second from now, or with the next one. */
  soon(): void {
    this.#isWanted = true;
    if (this.#writing || this.#timer || this.#isClosed) return;
    this.#wait(sumsMs);
  }

  /** Settles when everything up to now is persisted, or could not be. */
  async attempted(): Promise<void> {
    await this.#writing; // may have been too early for the last events
    await this.#writing;
  }

  /** Persists the last moment. Never rejects; nothing is persisted afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
    await this.#writing;
    if (!this.#isOver) await this.#write();
  }

  /** Nothing is persisted from now on, except for what is under way. */
  abandon(): void {
    this.#isOver = true;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #wait(delayMs: number): void {
    this.#timer = this.#options.clock.after(delayMs, () => this.#start());
  }

  #start(): void {
    this.#timer = null;
    this.#writing = this.#run();
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // what the same turn still brings goes along
    await this.#write();
    this.#writing = null;
    if (this.#isClosed) return;
    if (this.#isFailing) this.#wait(retryMs);
    else if (this.#isUrgent) this.#start();
    else if (this.#isWanted) this.#wait(sumsMs);
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    if (this.#isOver) return;
    const { take, store, log, epoch } = this.#options;
    const taken = take();
    this.#isUrgent = false;
    this.#isWanted = false;
    for (const state of taken.states) this.#states.set(state.accountId, state);
    for (const event of taken.events) this.#events.push(event);
    try {
      const states = [...this.#states.values()];
      const checkpoint = { ...taken, states, events: this.#events };
      if (!(await store.checkpoint(checkpoint, epoch))) {
        this.abandon();
        this.#options.onOver();
        return;
      }
      this.#states.clear();
      this.#events = [];
      if (this.#isFailing) log.info("tiers: kept again");
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) {
        log.warn(`tiers: not kept; they go on, and it is tried again: ${messageOf(error)}`);
      }
      this.#isFailing = true;
    }
  }
}
