// The destinations in memory and in the store, kept equal under concurrent writers.
//
// Owned by destinations.ts, which is notified of added, changed and removed ones. A change is in memory
// after it is durable. Changes of other processes are read again, individually if the destination is
// known, because relays in all regions use this table. An older read never overwrites a local change.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { DestinationIndex, type Entry } from "./destination-index.ts";
import {
  checkAdded,
  type DestinationLimit,
  isSame,
  unknownDestination,
} from "./destination-rules.ts";
import type { AccountDestination, DestinationStore } from "./destination-types.ts";

/** The same object: no change. */
type Step = (current: AccountDestination, nowMs: number) => AccountDestination;

interface DestinationListener {
  /**
   * start: it existed before this process. here: it was added here. foreign: by another process.
   */
  met(entry: Entry, origin: "start" | "here" | "foreign"): void;
  changed(entry: Entry): void;
  forgotten(entry: Entry): void;
}

const retryMs = 1_000;
/** Attempts of a change that conflicts with others. */
const attemptsMax = 5;
/** Above this number, reading all of them is cheaper. */
const readAloneMax = 64;

export class StoredDestinations {
  readonly table = new DestinationIndex();
  readonly #dependencies: {
    readonly clock: Clock;
    readonly store: DestinationStore;
    readonly log: Logger;
  };
  readonly #listener: DestinationListener;
  /** The end of the operation in progress for a destination; its next change waits for it. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #changeNumber = 0;
  /** Removed here during a reload, which may still have read them. */
  readonly #removed = new Set<string>();
  #reloading: Promise<void> | null = null;
  #retry: Timer | null = null;
  /** To be read again. */
  #stale: Set<string> | "all" = new Set();
  #isClosed = false;
  #isFailing = false;
  readonly #stopListening: () => void;

  constructor(
    dependencies: { readonly clock: Clock; readonly store: DestinationStore; readonly log: Logger },
    listener: DestinationListener,
  ) {
    this.#dependencies = dependencies;
    this.#listener = listener;
    this.#stopListening = dependencies.store.onForeignChange((ids) => {
      void this.#reloadUntilItSucceeds(ids ?? "all");
    });
  }

  /** Settles when all stored destinations are in memory. Rejects with "store_failed". */
  start(): Promise<void> {
    this.#stale = "all";
    this.#reloading = this.#reloadWhileStale(true); // changes reported meanwhile are read afterwards
    return this.#reloading;
  }

  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#stopListening();
  }

  /** Throws ShredwayError "destination_refused". */
  async add(destination: AccountDestination, limit: DestinationLimit): Promise<Entry> {
    const { perAccountMax, leases } = limit;
    const answer = await this.#dependencies.store.add(destination, perAccountMax - leases);
    checkAdded(answer, destination, limit);
    const known = this.table.get(destination.id); // a reload may have been faster
    const entry = known ?? this.table.insert(destination);
    entry.changeNumber = ++this.#changeNumber;
    if (!known) this.#listener.met(entry, "here");
    return entry;
  }

  /** Throws ShredwayError "destination_unknown". */
  change(id: string, step: Step): Promise<AccountDestination> {
    return this.#inTurn(id, () => this.#changeNow(id, step));
  }

  /** Throws ShredwayError "destination_unknown". */
  remove(id: string): Promise<void> {
    return this.#inTurn(id, async () => {
      const isRemoved = await this.#dependencies.store.remove(id);
      if (this.#reloading) this.#removed.add(id);
      const entry = this.table.get(id);
      if (entry) this.#forget(entry);
      if (!isRemoved) throw unknownDestination(id);
    });
  }

  /** One after the other for each destination. */
  async #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const result = after(this.#turns.get(id), work);
    this.#turns.set(id, result);
    try {
      return await result;
    } finally {
      if (this.#turns.get(id) === result) this.#turns.delete(id);
    }
  }

  async #changeNow(id: string, step: Step): Promise<AccountDestination> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const entry = this.table.get(id);
      if (!entry) throw unknownDestination(id);
      const before = entry.destination;
      const next = step(before, Number(this.#dependencies.clock.nowNs() / 1_000_000n));
      if (next === before) return before;
      if (await this.#dependencies.store.update(next, before)) {
        entry.changeNumber = ++this.#changeNumber;
        this.#replace(entry, next);
        return next;
      }
      await this.#reload([id]);
    }
    const message = `destination ${id}: concurrent changes; retry`;
    throw new ShredwayError("store_failed", message);
  }

  #replace(entry: Entry, next: AccountDestination): void {
    entry.destination = next;
    if (this.table.get(next.id) === entry) this.#listener.changed(entry);
  }

  #forget(entry: Entry): void {
    this.table.delete(entry.destination.id);
    this.#listener.forgotten(entry);
  }

  // Changes of other processes.

  async #reloadUntilItSucceeds(ids: readonly string[] | "all"): Promise<void> {
    try {
      await this.#reload(ids);
      this.#isFailing = false;
    } catch (error) {
      if (this.#isClosed || this.#retry) return;
      if (!this.#isFailing) {
        this.#dependencies.log.warn(`destinations: reading failed: ${messageOf(error)}`);
      }
      this.#isFailing = true;
      this.#retry = this.#dependencies.clock.after(retryMs, () => {
        this.#retry = null;
        void this.#reloadUntilItSucceeds([]); // a failed one is still stale
      });
    }
  }

  /** Settles when all of these that were stored before the call are in memory. */
  #reload(ids: readonly string[] | "all"): Promise<void> {
    this.#markStale(ids);
    this.#reloading ??= this.#reloadWhileStale(false);
    return this.#reloading;
  }

  #markStale(ids: Iterable<string> | "all"): void {
    if (this.#stale === "all" || ids === "all") {
      this.#stale = "all";
      return;
    }
    for (const id of ids) this.#stale.add(id);
    if (this.#stale.size > readAloneMax) this.#stale = "all";
  }

  async #reloadWhileStale(isStart: boolean): Promise<void> {
    try {
      let isFirst = isStart;
      while ((this.#stale === "all" || this.#stale.size > 0) && !this.#isClosed) {
        const wanted = this.#stale;
        this.#stale = new Set();
        try {
          await this.#load(wanted, isFirst);
        } catch (error) {
          this.#markStale(wanted);
          throw error;
        }
        isFirst = false;
      }
    } finally {
      this.#reloading = null;
      this.#removed.clear();
    }
  }

  async #load(wanted: ReadonlySet<string> | "all", isFirst: boolean): Promise<void> {
    const numberBefore = this.#changeNumber;
    const rows = await this.#read(wanted);
    if (this.#isClosed) return;
    const there = new Set(rows.map(({ id }) => id));
    const known = wanted === "all" ? Array.from(this.table.all()) : this.#entriesOf(wanted);
    // Removed ones first, because their addresses may have new owners.
    for (const entry of known) {
      const { id } = entry.destination;
      if (entry.changeNumber > numberBefore) this.#markStale([id]);
      else if (!there.has(id)) this.#forget(entry);
    }
    for (const row of rows) {
      const entry = this.table.get(row.id);
      if (!entry && !this.#removed.has(row.id)) {
        this.#listener.met(this.table.insert(row), isFirst ? "start" : "foreign");
      } else if (entry && entry.changeNumber <= numberBefore && !isSame(entry.destination, row)) {
        this.#replace(entry, row);
      }
    }
  }

  async #read(wanted: ReadonlySet<string> | "all"): Promise<readonly AccountDestination[]> {
    const { store } = this.#dependencies;
    if (wanted === "all") return store.all();
    const found = await Promise.all(Array.from(wanted, (id) => store.find(id)));
    return found.filter((row) => row !== null);
  }

  #entriesOf(ids: ReadonlySet<string>): Entry[] {
    return Array.from(ids).flatMap((id) => this.table.get(id) ?? []);
  }
}

/** Continues after any result of the previous operation. */
async function after<T>(before: Promise<unknown> | undefined, work: () => Promise<T>): Promise<T> {
  if (before) await Promise.allSettled([before]);
  return work();
}
