// Keeper: every change of an open submission reaches the store, in order, and not too often.
//
// New submissions are put at once, since the caller waits for it; what happens to them is written now
// and then, ends at once. One write at a time for each transaction of an account, so that an old
// state can never replace a newer one. A store that fails changes nothing: what is not kept stays
// dirty and is written again.

import type { AccountTransaction } from "./tracked-transaction.ts";
import type { SubmissionRecord, SubmissionStore } from "./types.ts";

const recordsPerPut = 512;
/** Making them takes some milliseconds; what is left waits for the next flush. */
const recordsPerFlush = 2048;

export interface KeeperCounts {
  /** Changed since they were last written. */
  readonly dirty: number;
  readonly puts: bigint;
  readonly failures: bigint;
}

/** Never rejects. */
async function settled(promise: Promise<unknown>): Promise<void> {
  await promise.catch(() => {});
}

export class SubmissionWriter {
  readonly #store: Pick<SubmissionStore, "put" | "add">;
  readonly #onFailure: (error: unknown) => void;
  readonly #dirty = new Set<AccountTransaction>();
  #ended: AccountTransaction[] = [];
  #isFlushDue = false;
  #isFailing = false;
  #puts = 0n;
  #failures = 0n;

  constructor(store: Pick<SubmissionStore, "put" | "add">, onFailure: (error: unknown) => void) {
    this.#store = store;
    this.#onFailure = onFailure;
  }

  /** Settles when the present state of all of them is kept, all or nothing. Rejects as the store. */
  async keep(views: readonly AccountTransaction[]): Promise<void> {
    for (;;) {
      const busy = views.find(({ writing }) => writing !== null)?.writing;
      if (!busy) break;
      await busy;
    }
    await this.#put(views);
  }

  /** The first write of new ones. False: one of them was kept before, and nothing was written. */
  async add(views: readonly AccountTransaction[]): Promise<boolean> {
    let isNew = true;
    await this.#put(views, async (records) => {
      isNew = await this.#store.add(records);
      return isNew;
    });
    return isNew;
  }

  /** As `keep`, for those that were never kept yet; nothing to do when all were. */
  async keepOnce(views: readonly AccountTransaction[]): Promise<void> {
    // A first write that is under way decides: its failure leaves `isKept` false.
    for (const { writing } of views) if (writing) await writing;
    if (views.some(({ isKept }) => !isKept)) await this.keep(views);
  }

  /** None of them is written before `question` is answered. */
  async after<T>(views: readonly AccountTransaction[], question: Promise<T>): Promise<T> {
    const waiting = settled(question);
    const free = views.filter(({ writing }) => writing === null);
    for (const view of free) view.writing = waiting;
    try {
      return await question;
    } finally {
      for (const view of free) view.writing = null;
    }
  }

  /** The last write failed. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  changed(view: AccountTransaction): void {
    if (view.isForgotten) return;
    view.isDirty = true;
    this.#dirty.add(view);
  }

  /** Written at once, together with what else ends in this moment. */
  ended(view: AccountTransaction): void {
    this.changed(view);
    this.#ended.push(view);
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    queueMicrotask(() => {
      this.#isFlushDue = false;
      this.#write(this.#ended.splice(0));
    });
  }

  /** It is not to be written any more. */
  forget(view: AccountTransaction): void {
    view.isForgotten = true;
    view.isDirty = false;
    this.#dirty.delete(view);
  }

  /** Writes what changed; called every second or so. */
  flush(most = recordsPerFlush): void {
    const views: AccountTransaction[] = [];
    for (const view of this.#dirty) {
      if (views.push(view) >= most) break;
    }
    this.#write(views);
  }

  get counts(): KeeperCounts {
    return { dirty: this.#dirty.size, puts: this.#puts, failures: this.#failures };
  }

  #write(views: readonly AccountTransaction[]): void {
    const free = views.filter(({ writing, isDirty }) => writing === null && isDirty);
    for (let at = 0; at < free.length; at += recordsPerPut) {
      this.#put(free.slice(at, at + recordsPerPut)).catch(this.#onFailure);
    }
  }

  /** `write` tells whether they are kept now. */
  #put(
    all: readonly AccountTransaction[],
    write: (records: readonly SubmissionRecord[]) => Promise<boolean> = (records) =>
      this.#store.put(records).then(() => true),
  ): Promise<void> {
    const views = all.filter(({ isForgotten }) => !isForgotten);
    if (views.length === 0) return Promise.resolve();
    const records = views.map((view) => view.record);
    for (const view of views) {
      view.isDirty = false;
      this.#dirty.delete(view);
    }
    this.#puts++;
    const put = write(records).then(
      (isKept) => this.#finish(views, isKept),
      (error: unknown) => {
        this.#failures++;
        this.#isFailing = true;
        this.#finish(views, false);
        throw error;
      },
    );
    const writing = settled(put); // whoever waits for its turn asks again
    for (const view of views) view.writing = writing;
    return put;
  }

  #finish(views: readonly AccountTransaction[], isKept: boolean): void {
    if (isKept) this.#isFailing = false;
    for (const view of views) {
      view.writing = null;
      if (isKept) view.isKept = true;
      if (!isKept) this.changed(view);
      else if (view.isDirty && view.lifecycle.end) this.ended(view);
    }
  }
}
