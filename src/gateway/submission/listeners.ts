// Listeners: subscriptions to the events of an account's transactions.
//
// A listener that throws affects neither the other listeners nor the submission.

import type { TimelineEvent } from "./types.ts";

type StatusListener = (signature: string, event: TimelineEvent) => void;

export class Listeners {
  readonly #byAccount = new Map<string, Set<StatusListener>>();
  readonly #onFailure: (error: unknown) => void;

  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  add(accountId: string, listener: StatusListener): () => void {
    const own: StatusListener = (signature, event) => listener(signature, event);
    const listeners = this.#byAccount.get(accountId) ?? new Set();
    this.#byAccount.set(accountId, listeners.add(own));
    return () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.#byAccount.get(accountId) === listeners) {
        this.#byAccount.delete(accountId);
      }
    };
  }

  notify(accountId: string, signature: string, event: TimelineEvent): void {
    const listeners = this.#byAccount.get(accountId);
    if (!listeners) return;
    for (const listener of listeners) {
      try {
        listener(signature, event);
      } catch (error) {
        this.#onFailure(error);
      }
    }
  }
}
