// Submission writer: writes changes of submissions to the store, in order and in batches.
//
// New submissions are written at once, because the caller waits; ends are written at once, other changes
// within about a second. Each transaction of an account has one write in progress at most, so that an old state
// never replaces a newer one. After a failed write the transaction stays dirty and is written again. A bundle
// is written once, together with its transactions, while its caller waits.

import type { AccountBundle, AccountTransaction } from "./tracked-transaction.ts";
import type { BundleRecord, SubmissionRecord, SubmissionStore } from "./types.ts";

const recordsPerPut = 512;
/** Encoding them takes some milliseconds; the rest waits for the next flush. */
const recordsPerFlush = 2048;

const noBundles: readonly AccountBundle[] = [];
const noRecords: readonly BundleRecord[] = [];

export interface WriterCounts {
  /** Changed since they were last written. */
  readonly dirty: number;
  readonly puts: bigint;
  readonly failures: bigint;
}

/** Resolves to whether they were written. */
type Write = (
  records: readonly SubmissionRecord[],
  bundles: readonly BundleRecord[],
) => Promise<boolean>;

/** Never rejects. */
async function settled(promise: Promise<unknown>): Promise<void> {
  await promise.catch(() => {});
}

export class SubmissionWriter {
  readonly #store: Pick<SubmissionStore, "put" | "add">;
  readonly #onFailure: (error: unknown) => void;
  readonly #failing: () => void;
  readonly #dirty = new Set<AccountTransaction>();
  #ended: AccountTransaction[] = [];
  #isFlushDue = false;
  #isFailing = false;
  #putsInProgress = 0;
  #puts = 0n;
  #failures = 0n;

  /** `onFailure`: gets the error of each failed `flush`. `failing`: the first write after others failed. */
  constructor(
    store: Pick<SubmissionStore, "put" | "add">,
    onFailure: (error: unknown) => void,
    failing: () => void = () => undefined,
  ) {
    this.#store = store;
    this.#onFailure = onFailure;
    this.#failing = failing;
  }

  /** Writes the current state of all of them, with their bundles, atomically. Rejects if the store fails. */
  async persist(
    views: readonly AccountTransaction[],
    bundles: readonly AccountBundle[] = noBundles,
  ): Promise<void> {
    for (;;) {
      const busy = views.find(({ writing }) => writing !== null)?.writing;
      if (!busy) break;
      await settled(busy);
    }
    await this.#put(views, bundles);
  }

  /** Writes new ones. False: the store has a record of one of them, and nothing was written. */
  add(
    views: readonly AccountTransaction[],
    bundles: readonly AccountBundle[] = noBundles,
  ): Promise<boolean> {
    return this.#put(views, bundles, (records, written) => this.#store.add(records, written));
  }

  /** As `persist`, without what was written before. */
  async persistOnce(
    views: readonly AccountTransaction[],
    bundles: readonly AccountBundle[] = noBundles,
  ): Promise<void> {
    // A first write may be in progress; if it fails, `isPersisted` stays false.
    for (const { writing } of views) if (writing) await settled(writing);
    const isPersisted = views.every((view) => view.isPersisted);
    const unwritten = bundles.filter((bundle) => !bundle.isPersisted);
    if (isPersisted && unwritten.length === 0) return;
    await this.persist(isPersisted ? [] : views, unwritten);
  }

  /** Waits for `question`; none of them is written before it settles. */
  async persistAfter<T>(views: readonly AccountTransaction[], question: Promise<T>): Promise<T> {
    const free = views.filter(({ writing }) => writing === null);
    for (const view of free) view.writing = question;
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

  /** Writes it at once, together with others that end in the same turn of the event loop. */
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

  /** Stops writing it. */
  forget(view: AccountTransaction): void {
    view.isForgotten = true;
    view.isDirty = false;
    this.#dirty.delete(view);
  }

  /** Writes what changed, the oldest changes first, at most `most` of them. */
  flush(most = recordsPerFlush): void {
    const views: AccountTransaction[] = [];
    for (const view of this.#dirty) {
      if (view.writing === null && views.push(view) >= most) break;
    }
    this.#write(views);
  }

  /** Something is not written yet; a write in progress may still fail. */
  get hasUnwritten(): boolean {
    return this.#dirty.size > 0 || this.#putsInProgress > 0;
  }

  get counts(): WriterCounts {
    return { dirty: this.#dirty.size, puts: this.#puts, failures: this.#failures };
  }

  #write(views: readonly AccountTransaction[]): void {
    const free = views.filter(({ writing, isDirty }) => writing === null && isDirty);
    for (let at = 0; at < free.length; at += recordsPerPut) {
      this.#put(free.slice(at, at + recordsPerPut)).catch(this.#onFailure);
    }
  }

  /** `write` resolves to whether they were written, and so does this. */
  #put(
    all: readonly AccountTransaction[],
    bundles: readonly AccountBundle[] = noBundles,
    write: Write = (records, written) => this.#store.put(records, written).then(() => true),
  ): Promise<boolean> {
    const views = all.filter(({ isForgotten }) => !isForgotten);
    if (views.length === 0 && bundles.length === 0) return Promise.resolve(true);
    const records = views.map((view) => view.record);
    const bundleRecords = bundles.length === 0 ? noRecords : bundles.map(({ record }) => record);
    for (const view of views) {
      view.isDirty = false;
      this.#dirty.delete(view);
    }
    this.#puts++;
    this.#putsInProgress++;
    const put = write(records, bundleRecords).then(
      (isPersisted) => {
        if (isPersisted) for (const bundle of bundles) bundle.isPersisted = true;
        this.#finish(views, isPersisted);
        return isPersisted;
      },
      (error: unknown) => {
        this.#failures++;
        if (!this.#isFailing) {
          this.#isFailing = true;
          this.#failing();
        }
        this.#finish(views, false);
        throw error;
      },
    );
    for (const view of views) view.writing = put;
    return put;
  }

  #finish(views: readonly AccountTransaction[], isPersisted: boolean): void {
    this.#putsInProgress--;
    if (isPersisted) this.#isFailing = false;
    for (const view of views) {
      view.writing = null;
      if (isPersisted) view.isPersisted = true;
      if (!isPersisted) this.changed(view);
      else if (view.isDirty && view.lifecycle.end) this.ended(view);
    }
  }
}
