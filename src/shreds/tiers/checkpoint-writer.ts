// Checkpoint writer: persists the state of the tier engine.
//
// Owned by leader-tiers.ts. One checkpoint is in progress at a time; later changes go into the next one,
// which follows immediately. A failed checkpoint loses nothing, because the next one contains its states
// and events. The engine never waits for a checkpoint. When the store reports that the term is over, no
// further checkpoint is written.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { TierCheckpoint, TierEvent, TierState, TierStore } from "./types.ts";

/** Sums can be recomputed from the store, events cannot: only sums are delayed. */
const sumsMs = 1000;
const retryMs = 1000;

interface CheckpointWriterOptions {
  readonly store: Pick<TierStore, "checkpoint">;
  readonly epoch: bigint;
  readonly clock: Clock;
  readonly log: Logger;
  /** The state of one time, with the changes since the last call. */
  readonly take: () => TierCheckpoint;
  /** The store rejected the epoch; called once. */
  readonly onOver: () => void;
}

export class CheckpointWriter {
  readonly #options: CheckpointWriterOptions;
  /** Taken but not known to be persisted; the newest state of each account. */
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

  /** At the end of this turn, or directly after the one in progress. */
  now(): void {
    this.#isUrgent = true;
    if (this.#writing || this.#isFailing || this.#isClosed) return;
    this.#timer?.cancel();
    this.#start();
  }

  /** In about a second, or with the next one. */
  soon(): void {
    this.#isWanted = true;
    if (this.#writing || this.#timer || this.#isClosed) return;
    this.#wait(sumsMs);
  }

  /** Settles when all earlier changes are persisted, or could not be. */
  async attempted(): Promise<void> {
    await this.#writing; // may have been too early for the last events
    await this.#writing;
  }

  /** Persists the last state. Never rejects; nothing is persisted afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
    await this.#writing;
    if (!this.#isOver) await this.#write();
  }

  /** Stops persisting, except for the checkpoint in progress. */
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
    await Promise.resolve(); // includes later changes of the same turn
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
    const latest = take();
    this.#isUrgent = false;
    this.#isWanted = false;
    for (const state of latest.states) this.#states.set(state.accountId, state);
    for (const event of latest.events) this.#events.push(event);
    try {
      const states = [...this.#states.values()];
      const checkpoint = { ...latest, states, events: this.#events };
      if (!(await store.checkpoint(checkpoint, epoch))) {
        this.abandon();
        this.#options.onOver();
        return;
      }
      this.#states.clear();
      this.#events = [];
      if (this.#isFailing) log.info("tiers: checkpoints are stored again");
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) {
        log.warn(`tiers: the checkpoint could not be stored; retrying: ${messageOf(error)}`);
      }
      this.#isFailing = true;
    }
  }
}
