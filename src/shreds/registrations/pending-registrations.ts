// Registration seat: where pending registrations wait, whether this node counts tips or another does.
//
// The PendingPlaces of registrar.ts and the Counting of tip-book.ts; lives as long as the service. In a
// term of this node a watch has all pending registrations of all nodes; while another node counts only
// those are remembered that took places here, until the store says that they are settled. What other
// nodes tell is no more than a hint: the store is read for it.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { PendingCapacity } from "./pending-capacity.ts";
import type { PendingPlaces } from "./registrar.ts";
import type { Registration, RegistrationStore } from "./registration-types.ts";
import type { Counting, TipBook } from "./tier-accounting.ts";

/** All pending registrations during one term; registration-watch.ts and registration-count.ts are. */
interface TermWatch {
  /** Takes up all that are pending. Again: those that it does not know. */
  start(): Promise<number>;
  close(): Promise<void>;
  /** One that was registered elsewhere. */
  take(registration: Registration): boolean;
  /** One that has a place. */
  add(registration: Registration): void;
  pending(): Iterable<readonly [signature: string, accountId: string]>;
  readonly counts: { readonly pending: number };
}

interface PendingRegistrationsDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly store: Pick<RegistrationStore, "pending" | "pendingOf" | "onNews">;
  readonly places: PendingCapacity;
  /** No node is asked: tips count when they are registered, or as soon as they are known here. */
  readonly countsAtOnce: boolean;
  open(book: TipBook): TermWatch;
}

const againMs = 1000;
/** News of a settlement may come before the answer to its registration: then nobody waits for it yet. */
const lookMs = 30_000;
const perRead = 2_000;

export class PendingRegistrations implements PendingPlaces, Counting {
  readonly #parts: PendingRegistrationsDependencies;
  readonly #endNews: () => void;
  #book: TipBook | null = null;
  /** null: another node counts. */
  #watch: TermWatch | null = null;
  /** Signature -> account; have places here, and are settled by another node. */
  readonly #awaited = new Map<string, string>();
  /** Signatures to read. */
  #told = new Set<string>();
  /** Everything has to be read. */
  #hasGap = false;
  #reading: Promise<void> | null = null;
  #timer: Timer | null = null;
  /** A registration of which nobody knows whether it was kept is told to nobody. */
  readonly #sweeping: Timer;
  #isClosed = false;

  constructor(parts: PendingRegistrationsDependencies) {
    this.#parts = parts;
    this.#endNews = parts.store.onNews((signatures) => this.#hear(signatures));
    this.#sweeping = parts.clock.every(lookMs, () => {
      if (this.#watch || this.#awaited.size > 0) this.#hear(null);
    });
  }

  get book(): TipBook | null {
    return this.#parts.countsAtOnce ? this.#book : null;
  }

  /** Pending registrations that this node knows. */
  get pending(): number {
    return this.#watch?.counts.pending ?? this.#awaited.size;
  }

  reserve(accountId: string): boolean {
    return this.#parts.places.reserve(accountId);
  }

  release(accountId: string): void {
    this.#parts.places.release(accountId);
  }

  add(registration: Registration): void {
    if (this.#watch) {
      this.#watch.add(registration);
      return;
    }
    this.#await(registration.signature, registration.accountId);
  }

  async keep(book: TipBook): Promise<void> {
    const watch = this.#parts.open(book);
    this.#watch = watch; // what is told meanwhile is taken up, too
    const found = await watch.start();
    this.#book = book;
    this.#giveBack([...this.#awaited.keys()]); // the watch took places for them
    if (found > 0) this.#parts.log.info({ registrations: found }, "pending tips taken up");
  }

  async follow(): Promise<void> {
    const watch = this.#watch;
    this.#book = null;
    this.#watch = null;
    if (!watch) return;
    await watch.close();
    for (const [signature, accountId] of watch.pending()) this.#await(signature, accountId);
    // Settled by another node while the watch was closed: nobody heard of it.
    this.#hear(null);
  }

  /** Nothing is read afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endNews();
    this.#sweeping.cancel();
    this.#timer?.cancel();
    this.#timer = null;
    await this.#reading;
    await this.follow();
  }

  #await(signature: string, accountId: string): void {
    if (this.#awaited.has(signature)) this.release(accountId);
    else this.#awaited.set(signature, accountId);
  }

  #giveBack(signatures: readonly string[]): void {
    for (const signature of signatures) {
      const accountId = this.#awaited.get(signature);
      if (accountId === undefined) continue;
      this.#awaited.delete(signature);
      this.release(accountId);
    }
  }

  #hear(signatures: readonly string[] | null): void {
    if (this.#isClosed) return;
    if (signatures === null) this.#hasGap = true;
    else {
      for (const signature of signatures) {
        if (this.#watch || this.#awaited.has(signature)) this.#told.add(signature);
      }
    }
    if (this.#hasGap || this.#told.size > 0) this.#read();
  }

  #read(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = null;
      if (this.#hasGap || this.#told.size > 0) this.#readLater();
    });
  }

  #readLater(): void {
    if (this.#isClosed || this.#reading) return;
    this.#timer ??= this.#parts.clock.after(againMs, () => {
      this.#timer = null;
      this.#read();
    });
  }

  /** Until nothing is left to read, or the store failed. Never rejects. */
  async #readAll(): Promise<void> {
    while ((this.#hasGap || this.#told.size > 0) && !this.#isClosed) {
      const hadGap = this.#hasGap;
      const told = this.#told;
      this.#hasGap = false;
      this.#told = new Set();
      try {
        await (hadGap ? this.#lookAtAll() : this.#lookAt([...told]));
      } catch (error) {
        this.#hasGap ||= hadGap;
        for (const signature of told) this.#told.add(signature);
        this.#parts.log.warn(`registrations of other nodes: ${messageOf(error)}; tried again`);
        return;
      }
    }
  }

  async #lookAt(signatures: readonly string[]): Promise<void> {
    const pending = await this.#parts.store.pendingOf(signatures);
    if (this.#watch) {
      for (const registration of pending) this.#watch.take(registration);
      return;
    }
    const left = new Set(pending.map(({ signature }) => signature));
    this.#giveBack(signatures.filter((signature) => !left.has(signature)));
  }

  async #lookAtAll(): Promise<void> {
    if (this.#watch) {
      await this.#watch.start();
      return;
    }
    // Only those: the others may have been registered since.
    const gone = new Set(this.#awaited.keys());
    let behind: Registration | null = null;
    while (gone.size > 0) {
      const page: Registration[] = await this.#parts.store.pending(behind, perRead);
      for (const { signature } of page) gone.delete(signature);
      behind = page.at(-1) ?? null;
      if (!behind) break;
    }
    if (!this.#watch) this.#giveBack([...gone]);
  }
}
