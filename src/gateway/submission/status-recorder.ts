// Status recorder: what happens to transactions, in the timelines of the accounts that submitted them.
//
// Called by state-machine.ts for the effects "record", "persist" and "notify": the timeline takes the
// event, the store and the account's listeners get it. Knows nothing of sending and observing.

import { isEnd } from "./lifecycle.ts";
import type { Listeners } from "./listeners.ts";
import type { SubmissionWriter } from "./submission-writer.ts";
import type { AccountTransaction } from "./tracked-transaction.ts";
import type { EndState, TimelineEvent } from "./types.ts";

export interface TrackingCounts {
  readonly ends: Readonly<Record<EndState, bigint>>;
  /** Events that came after an end. */
  readonly lateEvents: bigint;
}

export class StatusRecorder {
  readonly #writer: SubmissionWriter;
  readonly #listeners: Listeners;
  #lateEvents = 0n;
  readonly #ends: Record<EndState, bigint> = {
    landed: 0n,
    landed_failed: 0n,
    expired: 0n,
    superseded: 0n,
    rejected: 0n,
  };

  constructor(writer: SubmissionWriter, listeners: Listeners) {
    this.#writer = writer;
    this.#listeners = listeners;
  }

  get counts(): TrackingCounts {
    return { ends: { ...this.#ends }, lateEvents: this.#lateEvents };
  }

  /** Those of `views` whose timelines took it: the others have ended, and it is counted as late. */
  record(
    views: readonly AccountTransaction[],
    event: TimelineEvent,
  ): readonly AccountTransaction[] {
    return views.filter((view) => {
      const isTaken = view.lifecycle.add(event);
      if (!isTaken) this.#lateEvents++;
      return isTaken;
    });
  }

  persist(views: readonly AccountTransaction[], event: TimelineEvent): void {
    for (const view of views) {
      if (isEnd(event)) this.#writer.ended(view);
      else this.#writer.changed(view);
    }
  }

  notify(views: readonly AccountTransaction[], event: TimelineEvent): void {
    for (const { accountId, tracked } of views) {
      this.#listeners.tell(accountId, tracked.signature, event);
    }
  }

  countEnd(state: EndState): void {
    this.#ends[state]++;
  }

  countLate(): void {
    this.#lateEvents++;
  }
}
