// Journaled submission store: acknowledges a new submission before its commit.
//
// Wraps SqlSubmissionStore where submissions need not wait for the disk, so a commit promises no more
// than the journal does: the row survives a kill of the process. A new submission is appended to the
// journal, with those that begin right behind it, and then answered. The database takes its row a second later,
// together with many others, and usually only once, because the next change of its timeline contains everything. Whatever the
// journal cannot answer goes to the database: a signature that may be known, a full disk, too many
// waiting rows.

import type { Clock, Timer } from "../../../core/clock.ts";
import type {
  BundleRecord,
  SubmissionLister,
  SubmissionRecord,
  SubmissionStore,
} from "../../../gateway/submission/types.ts";
import type { SqlValue } from "../driver.ts";
import type { SqlSubmissionStore } from "../tables/submission-store.ts";
import { JournalGroup } from "./journal-group.ts";
import { SignatureFilter } from "./signature-filter.ts";
import type { SubmissionJournal } from "./submission-journal.ts";
import { WaitingRows } from "./waiting-rows.ts";

/** A row waits for one to two of these. The pipeline writes changed timelines as often. */
const turnMs = 1000;
/** Bounds the time of a replay. */
export const waitingMax = 16_384;
/** Rows of the active file, with those that the database has already. Bounds the memory. */
const keptMax = 4 * waitingMax;
/** Encoding more at once would delay new submissions. */
const rowsPerCommit = 100;
const signaturesPerPage = 2000;
/** The filter is built again when so many of its signatures were deleted. */
const forgottenMin = 100_000;

interface JournaledDependencies {
  readonly database: SqlSubmissionStore;
  readonly journal: SubmissionJournal;
  readonly clock: Clock;
  /** Reports a failure of the journal or of a commit; the rows are kept and tried again. */
  readonly onFailure: (error: unknown) => void;
}

/** The transactions of one new submission. */
interface NewSubmission {
  readonly records: readonly SubmissionRecord[];
  readonly rows: readonly (readonly SqlValue[])[];
  readonly bundles: readonly BundleRecord[];
  readonly settle: (isAdded: boolean | Promise<boolean>) => void;
}

const noBundles: readonly BundleRecord[] = [];

function keyOf({ accountId, signature }: SubmissionRecord): string {
  return `${accountId} ${signature}`;
}

export class JournaledSubmissionStore implements SubmissionStore, SubmissionLister {
  readonly #dependencies: JournaledDependencies;
  readonly #group = new JournalGroup<NewSubmission>((submissions) => this.#append(submissions));
  /** Rows of the group. */
  #grouped = 0;
  /** Rows of the active file that the database does not have yet. */
  #fresh = new WaitingRows();
  /** Rows of the other file. */
  #older = new WaitingRows();
  #timer: Timer | undefined;
  /** The commit of older rows in progress. */
  #writing: Promise<void> | undefined;
  #isFailing = false;
  #isClosed = false;
  /** Null until the database's signatures are known. */
  #filter: SignatureFilter | null = null;
  /** The filter that is being built. */
  #nextFilter: SignatureFilter | null = null;
  #forgotten = 0;

  constructor(dependencies: JournaledDependencies) {
    this.#dependencies = dependencies;
    void this.#loadFilter();
  }

  /** Rows that only the journal has. */
  get waiting(): number {
    return this.#fresh.size + this.#older.size;
  }

  /** Whether new submissions are answered before their commit. */
  get isReady(): boolean {
    return this.#filter !== null && !this.#isFailing && !this.#isClosed;
  }

  /** The journal has the bundles in the rows of their transactions (replay.ts). */
  add(
    records: readonly SubmissionRecord[],
    bundles: readonly BundleRecord[] = noBundles,
  ): Promise<boolean> {
    if (!this.#canAnswer(records)) return this.#addToDatabase(records, bundles);
    return new Promise((settle) => {
      const rows = records.map((record) => this.#dependencies.database.rowOf(record));
      for (const { signature } of records) this.#note(signature);
      this.#grouped += records.length;
      this.#group.join({ records, rows, bundles, settle });
    });
  }

  async put(
    records: readonly SubmissionRecord[],
    bundles: readonly BundleRecord[] = noBundles,
  ): Promise<void> {
    this.#group.write();
    for (const { signature } of records) this.#noteUnknown(signature);
    await this.#dependencies.database.put(records, bundles);
    // The database has newer rows now.
    for (const record of records) {
      const key = keyOf(record);
      if (!this.#fresh.delete(key)) this.#older.delete(key);
    }
  }

  async open(): Promise<SubmissionRecord[]> {
    await this.#writeAll();
    return this.#dependencies.database.open();
  }

  openNodes(): Promise<string[]> {
    return this.#dependencies.database.openNodes();
  }

  adopt(node: string): Promise<SubmissionRecord[]> {
    return this.#dependencies.database.adopt(node);
  }

  async find(accountId: string, signatures: readonly string[]): Promise<SubmissionRecord[]> {
    this.#group.write();
    const isWaiting = signatures.some((signature) => this.#has(`${accountId} ${signature}`));
    if (isWaiting) await this.#writeAll();
    return this.#dependencies.database.find(accountId, signatures);
  }

  async findBundles(accountId: string, ids: readonly string[]) {
    await this.#writeAll();
    return this.#dependencies.database.findBundles(accountId, ids);
  }

  async newest(accountId: string, limit: number): Promise<SubmissionRecord[]> {
    await this.#writeAll();
    return this.#dependencies.database.newest(accountId, limit);
  }

  async forgetEndedBefore(ns: bigint): Promise<number> {
    const count = await this.#dependencies.database.forgetEndedBefore(ns);
    this.#forgotten += count;
    const known = this.#filter?.count ?? 0;
    if (this.#forgotten >= forgottenMin && 2 * this.#forgotten >= known) {
      this.#forgotten = 0;
      void this.#loadFilter();
    }
    return count;
  }

  /** Writes all rows to the database and clears the journal; afterwards nothing is journaled. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    try {
      await this.#writeAll();
      this.#dependencies.journal.clear();
    } catch (error) {
      this.#dependencies.onFailure(error); // the next start replays the journal
    }
    this.#dependencies.journal.close();
  }

  #canAnswer(records: readonly SubmissionRecord[]): boolean {
    const filter = this.#filter;
    if (filter === null || !this.isReady) return false;
    if (this.waiting + this.#grouped + records.length > waitingMax) return false;
    if (this.#fresh.kept > keptMax || this.#fresh.bundles.length > waitingMax) return false;
    return records.every(({ signature, landedTip }) => {
      return landedTip === undefined && !filter.mayHave(signature);
    });
  }

  async #addToDatabase(
    records: readonly SubmissionRecord[],
    bundles: readonly BundleRecord[],
  ): Promise<boolean> {
    this.#group.write();
    // The database must see what the journal has acknowledged.
    if (this.#hasAny(records)) await this.#writeAll();
    for (const { signature } of records) this.#note(signature);
    return this.#dependencies.database.add(records, bundles);
  }

  /** Appends them to the journal. If it fails, they wait for their commits. */
  #append(submissions: readonly NewSubmission[]): void {
    const { database, journal, onFailure } = this.#dependencies;
    this.#grouped = 0;
    let rows: readonly Uint8Array[];
    try {
      rows = journal.append(submissions.flatMap((submission) => submission.rows));
    } catch (error) {
      onFailure(error);
      for (const { records, bundles, settle } of submissions) {
        settle(database.add(records, bundles));
      }
      return;
    }
    let at = 0;
    for (const { records, bundles, settle } of submissions) {
      if (bundles.length > 0) this.#fresh.addBundles(bundles);
      for (const record of records) {
        const row = rows[at++];
        if (row) this.#fresh.set(keyOf(record), row);
      }
      settle(true);
    }
    this.#wake();
  }

  #has(key: string): boolean {
    return this.#fresh.has(key) || this.#older.has(key);
  }

  #hasAny(records: readonly SubmissionRecord[]): boolean {
    return records.some((record) => this.#has(keyOf(record)));
  }

  #note(signature: string): void {
    this.#filter?.add(signature);
    this.#nextFilter?.add(signature);
  }

  #noteUnknown(signature: string): void {
    if (this.#filter && !this.#filter.mayHave(signature)) this.#filter.add(signature);
    if (this.#nextFilter && !this.#nextFilter.mayHave(signature)) this.#nextFilter.add(signature);
  }

  #wake(): void {
    if (this.#timer || this.#isClosed) return;
    this.#timer = this.#dependencies.clock.after(turnMs, () => {
      this.#timer = undefined;
      void this.#turn();
    });
  }

  /** Commits what is left of the older file, and makes it the active one. */
  async #turn(): Promise<void> {
    try {
      await this.#writeOlder();
      this.#turnFiles();
    } catch (error) {
      this.#dependencies.onFailure(error);
    }
    // Rows that the database has must not stay in a file: a replay would restore them after their history
    // was deleted.
    if (this.waiting > 0 || !this.#dependencies.journal.isEmpty) this.#wake();
  }

  /** `#older` is empty and committed. */
  #turnFiles(): void {
    const { journal } = this.#dependencies;
    if (!this.#older.isEmpty) return;
    journal.clearOther();
    if (journal.turn()) [this.#fresh, this.#older] = [this.#older, this.#fresh];
  }

  /** Everything that was acknowledged is in the database when it resolves. */
  async #writeAll(): Promise<void> {
    this.#group.write();
    if (this.#fresh.isEmpty && this.#older.isEmpty && !this.#writing) return;
    await this.#writeOlder();
    this.#turnFiles(); // unless another call did: then its commit has the same rows
    await this.#writeOlder();
  }

  #writeOlder(): Promise<void> {
    this.#writing ??= this.#commitOlder().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #commitOlder(): Promise<void> {
    const older = this.#older;
    try {
      for (const part of older.parts(rowsPerCommit)) {
        await this.#dependencies.database.addRows(part.map(({ row }) => row));
        for (const { key } of part) older.delete(key);
      }
      const { bundles } = older;
      for (let at = 0; at < bundles.length; at += rowsPerCommit) {
        await this.#dependencies.database.put([], bundles.slice(at, at + rowsPerCommit));
      }
      older.forgetBundles();
      this.#isFailing = false;
    } catch (error) {
      this.#isFailing = true;
      throw error;
    }
  }

  /** Reads the database's signatures, a page at a time, while the service works. */
  async #loadFilter(): Promise<void> {
    if (this.#nextFilter) return;
    const filter = new SignatureFilter();
    this.#nextFilter = filter;
    try {
      let last = { accountId: "", signature: "" };
      for (;;) {
        const page = await this.#dependencies.database.signaturesAfter(last, signaturesPerPage);
        for (const { signature } of page) filter.add(signature);
        const end = page.at(-1);
        if (!end || page.length < signaturesPerPage) break;
        last = end;
      }
      this.#filter = filter;
    } catch (error) {
      if (!this.#isClosed) this.#dependencies.onFailure(error); // submissions wait for their commits
    }
    this.#nextFilter = null;
  }
}
