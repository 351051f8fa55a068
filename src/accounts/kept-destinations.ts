// The destinations in memory and in the store: both always say the same, whoever else writes there.
//
// Owned by destinations.ts, which is told of everything that is new, changed or gone. A change is in
// memory once it is durable. What another process wrote is read again; a change that was made here
// meanwhile is never overwritten by an older reading.

import type { Clock, Timer } from "../core/clock.ts";
import { messageOf, ShredwayError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { checkAdded, isSame, unknownDestination } from "./destination-rules.ts";
import { DestinationTable, type Entry } from "./destination-table.ts";
import type { AccountDestination, DestinationStore } from "./destination-types.ts";

/** The same object: nothing is to be changed. */
export type Step = (current: AccountDestination, nowMs: number) => AccountDestination;

export interface KeptListener {
  /** start: it was there before this process. here: it was added here. foreign: by another process. */
  met(entry: Entry, origin: "start" | "here" | "foreign"): void;
  changed(entry: Entry): void;
  forgotten(entry: Entry): void;
}

const retryMs = 5_000;
/** Of a change that others keep coming before. */
const attemptsMax = 5;

export class KeptDestinations {
  readonly table = new DestinationTable();
  readonly #parts: {
    readonly clock: Clock;
    readonly store: DestinationStore;
    readonly log: Logger;
  };
  readonly #listener: KeptListener;
  /** The end of what is under way for a destination: its next change waits for it. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #changeNumber = 0;
  /** Removed here while a reload was under way, which may still have seen them. */
  readonly #removed = new Set<string>();
  #reloading: Promise<void> | null = null;
  #retry: Timer | null = null;
  #isStale = false;
  #isClosed = false;
  readonly #stopListening: () => void;

  constructor(
    parts: { readonly clock: Clock; readonly store: DestinationStore; readonly log: Logger },
    listener: KeptListener,
  ) {
    this.#parts = parts;
    this.#listener = listener;
    this.#stopListening = parts.store.onForeignChange(() => void this.#reloadUntilItSucceeds());
  }

  /** Settles when all that was there is in memory. Rejects with "store_failed". */
  start(): Promise<void> {
    return this.#load(true);
  }

  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#stopListening();
  }

  /** Throws ShredwayError "destination_refused". */
  async add(destination: AccountDestination, perAccountMax: number): Promise<Entry> {
    const answer = await this.#parts.store.add(destination, perAccountMax);
    checkAdded(answer, destination, perAccountMax);
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
      const isRemoved = await this.#parts.store.remove(id);
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
      const next = step(before, Number(this.#parts.clock.nowNs() / 1_000_000n));
      if (next === before) return before;
      if (await this.#parts.store.update(next, before)) {
        entry.changeNumber = ++this.#changeNumber;
        this.#replace(entry, next);
        return next;
      }
      await this.#reload();
    }
    const message = `destination ${id}: expected to change it, but others kept changing it`;
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

  // Changes of others.

  async #reloadUntilItSucceeds(): Promise<void> {
    try {
      await this.#reload();
    } catch (error) {
      if (this.#isClosed) return;
      this.#parts.log.warn(`destinations could not be read again: ${messageOf(error)}`);
      this.#retry ??= this.#parts.clock.after(retryMs, () => {
        this.#retry = null;
        void this.#reloadUntilItSucceeds();
      });
    }
  }

  /** Settles when everything that was kept before the call is in memory. */
  #reload(): Promise<void> {
    this.#isStale = true;
    this.#reloading ??= this.#reloadWhileStale();
    return this.#reloading;
  }

  async #reloadWhileStale(): Promise<void> {
    try {
      while (this.#isStale && !this.#isClosed) {
        this.#isStale = false;
        await this.#load(false);
      }
    } finally {
      this.#reloading = null;
      this.#removed.clear();
    }
  }

  async #load(isFirst: boolean): Promise<void> {
    const numberBefore = this.#changeNumber;
    const rows = await this.#parts.store.all();
    if (this.#isClosed) return;
    const ids = new Set(rows.map(({ id }) => id));
    // Gone ones first: their addresses may be others' by now.
    for (const entry of Array.from(this.table.all())) {
      if (entry.changeNumber > numberBefore) this.#isStale = true;
      else if (!ids.has(entry.destination.id)) this.#forget(entry);
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
}

/** Whatever came of what was before. */
async function after<T>(before: Promise<unknown> | undefined, work: () => Promise<T>): Promise<T> {
  if (before) await Promise.allSettled([before]);
  return work();
}
