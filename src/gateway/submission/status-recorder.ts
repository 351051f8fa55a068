// Status recorder: adds events to the timelines of the accounts that submitted a transaction.
//
// state-machine.ts calls it for the effects "record", "persist" and "notify".

import { isEnd } from "./lifecycle.ts";
import type { Listeners } from "./listeners.ts";
import type { SubmissionWriter } from "./submission-writer.ts";
import type { AccountTransaction } from "./tracked-transaction.ts";
import type { EndState, TimelineEvent } from "./types.ts";

export interface StatusCounts {
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

  get counts(): StatusCounts {
    return { ends: { ...this.#ends }, lateEvents: this.#lateEvents };
  }

  /** Returns those of `views` whose timelines accepted the event; ended ones count it as late. */
  record(
    views: readonly AccountTransaction[],
    event: TimelineEvent,
  ): readonly AccountTransaction[] {
    return views.filter((view) => {
      const isRecorded = view.lifecycle.add(event);
      if (!isRecorded) this.#lateEvents++;
      return isRecorded;
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
      this.#listeners.notify(accountId, tracked.signature, event);
    }
  }

  countEnd(state: EndState): void {
    this.#ends[state]++;
  }

  countLate(): void {
    this.#lateEvents++;
  }
}
