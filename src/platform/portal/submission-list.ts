// Submission list: the newest submissions of one account with their current states.
//
// Created by live-feed.ts for an account with an open feed. Loads the newest submissions from the
// store, then subscribes to events. Once a second it reads all changed submissions together.

import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type {
  SubmissionLister,
  Submissions,
  TransactionStatus,
} from "../../gateway/submission/types.ts";
import { timeText } from "./api-key-actions.ts";
import type { SubmissionView } from "./types.ts";

const submissionsMax = 200;

interface SubmissionListDependencies {
  readonly submissions: Pick<Submissions, "subscribe" | "statuses">;
  readonly submissionLists: SubmissionLister;
  readonly log: Pick<Logger, "warn">;
}

type Known = Omit<SubmissionView, "receivedAt"> & { readonly receivedNs: bigint };

type Shown = Pick<
  TransactionStatus,
  "signature" | "method" | "state" | "receivedNs" | "slot" | "events"
>;

/** From the receipt to the first observation in a block that was not withdrawn. */
function landedMsOf({ receivedNs, events }: Pick<Shown, "receivedNs" | "events">): number | null {
  const last = events.findLastIndex(({ kind }) => kind === "withdrawn");
  const landing = events
    .slice(last + 1)
    .find(({ kind }) => ["seen", "landed", "landed_failed"].includes(kind));
  return landing ? Number(landing.atNs - receivedNs) / 1e6 : null;
}

function numberOrNull(value: bigint | null | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}

function knownOf(status: Shown): Known {
  const { signature, method, state, receivedNs, slot, events } = status;
  const received = events.find((event) => event.kind === "received");
  return {
    signature,
    method,
    state,
    receivedNs,
    slot: numberOrNull(slot),
    landedMs: landedMsOf(status),
    tipLamports: numberOrNull(received?.tipLamports),
    priorityFeeLamports: numberOrNull(received?.priorityFeeLamports),
  };
}

export class SubmissionList {
  readonly #dependencies: SubmissionListDependencies;
  readonly #accountId: string;
  readonly #end: () => void;
  /** Submissions by signature, with the state of the last read. */
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

  /** Resolves after the first load; never rejects. */
  async load(): Promise<void> {
    try {
      const { submissionLists } = this.#dependencies;
      const records = await submissionLists.newest(this.#accountId, submissionsMax);
      for (const record of records) this.#known.set(record.signature, knownOf(record));
    } catch (error) {
      this.#dependencies.log.warn(
        `portal: cannot load the newest submissions: ${messageOf(error)}`,
      );
    }
    this.#isLoaded = true;
    await this.refresh();
  }

  /** Reads the submissions that changed since the last call. Never rejects. */
  async refresh(): Promise<void> {
    if (!this.#isLoaded || this.#isAsking || this.#changed.size === 0) return;
    this.#isAsking = true;
    const signatures = [...this.#changed];
    this.#changed.clear();
    try {
      const found = await this.#dependencies.submissions.statuses(this.#accountId, signatures);
      for (const status of found) if (status) this.#known.set(status.signature, knownOf(status));
      this.#trim();
    } catch (error) {
      this.#dependencies.log.warn(
        `portal: cannot load the statuses of submissions: ${messageOf(error)}`,
      );
    } finally {
      this.#isAsking = false;
    }
  }

  /** Newest first; null before the first load. */
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
