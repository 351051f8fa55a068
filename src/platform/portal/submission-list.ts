// Submission list: the newest submissions of one account, as they go on.
//
// Made by live-feed.ts for an account that somebody watches. Begins with what the store has, then hears of
// every event; what has changed is looked up once a second, all at once.

import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type {
  SubmissionLister,
  Submissions,
  TransactionStatus,
} from "../../gateway/submission/types.ts";
import { timeText } from "./api-key-actions.ts";
import type { SubmissionView } from "./types.ts";

const submissionsMax = 50;

interface SubmissionListDependencies {
  readonly submissions: Pick<Submissions, "subscribe" | "statuses">;
  readonly submissionLists: SubmissionLister;
  readonly log: Pick<Logger, "warn">;
}

type Known = Omit<SubmissionView, "receivedAt"> & { readonly receivedNs: bigint };

function knownOf(status: Omit<TransactionStatus, "events">): Known {
  const { signature, method, state, receivedNs, slot } = status;
  return { signature, method, state, receivedNs, slot: slot === null ? null : Number(slot) };
}

export class SubmissionList {
  readonly #dependencies: SubmissionListDependencies;
  readonly #accountId: string;
  readonly #end: () => void;
  /** The newest that was heard of last. */
  readonly #known = new Map<string, Known>();
  readonly #changed = new Set<string>();
  #isLoaded = false;
  #isAsking = false;

  constructor(dependencies: SubmissionListDependencies, accountId: string) {
    this.#dependencies = dependencies;
    this.#accountId = accountId;
    this.#end = dependencies.submissions.subscribe(accountId, (signature, { kind }) => {
      if (kind !== "received" && !this.#known.has(signature) && this.#isLoaded) return;
      this.#changed.delete(signature);
      this.#changed.add(signature);
      if (this.#changed.size > submissionsMax) this.#forgetOldestChange();
    });
  }

  /** Settles when the list is there; never rejects. */
  async load(): Promise<void> {
    try {
      const { submissionLists } = this.#dependencies;
      const records = await submissionLists.newest(this.#accountId, submissionsMax);
      for (const record of records) this.#known.set(record.signature, knownOf(record));
    } catch (error) {
      this.#dependencies.log.warn(`portal: newest submissions: ${messageOf(error)}`);
    }
    this.#isLoaded = true;
    await this.refresh();
  }

  /** Looks up what has changed since. Never rejects. */
  async refresh(): Promise<void> {
    if (!this.#isLoaded || this.#isAsking || this.#changed.size === 0) return;
    this.#isAsking = true;
    const asked = [...this.#changed];
    this.#changed.clear();
    try {
      const found = await this.#dependencies.submissions.statuses(this.#accountId, asked);
      for (const status of found) if (status) this.#known.set(status.signature, knownOf(status));
      this.#trim();
    } catch (error) {
      this.#dependencies.log.warn(`portal: statuses of submissions: ${messageOf(error)}`);
    } finally {
      this.#isAsking = false;
    }
  }

  /** Newest first; null: it is not there yet. */
  get views(): SubmissionView[] | null {
    if (!this.#isLoaded) return null;
    return this.#sorted().map(({ receivedNs, ...view }) => ({
      ...view,
      receivedAt: timeText(receivedNs),
    }));
  }

  close(): void {
    this.#end();
  }

  #sorted(): Known[] {
    return [...this.#known.values()].toSorted((a, b) => (a.receivedNs < b.receivedNs ? 1 : -1));
  }

  #trim(): void {
    for (const { signature } of this.#sorted().slice(submissionsMax)) this.#known.delete(signature);
  }

  #forgetOldestChange(): void {
    const [oldest] = this.#changed;
    if (oldest !== undefined) this.#changed.delete(oldest);
  }
}
