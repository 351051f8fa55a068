// Messages on the WebSockets of one key: a rate of what it costs to read them.
//
// Used by subscriptions.ts. Each socket has limits of its own (http/message-allowance.ts), but a key can have many
// sockets, and an object in a message takes longer to read than its bytes. Memory: one budget for each key.

import type { Clock } from "../../core/clock.ts";
import { RateBudget } from "../../core/rate-budget.ts";

export interface MessageRate {
  readonly bytesPerSecond: number;
  readonly bytesBurst: number;
}

/** Arrays and objects of a message that cost nothing in addition to their bytes: more than a batch has. */
const freeBrackets = 256;
/** An array or object takes as long to read as so many bytes of text. */
const bracketBytes = 64;

export class MessageBudgets {
  readonly #rate: MessageRate;
  readonly #clock: Clock;
  readonly #budgets = new Map<string, RateBudget>();

  constructor(rate: MessageRate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
  }

  /** False: the messages of the key came too fast, and this one may not be read. */
  take(keyId: string, text: string): boolean {
    let budget = this.#budgets.get(keyId);
    if (!budget) {
      const { bytesPerSecond: perSecond, bytesBurst: burst } = this.#rate;
      budget = new RateBudget({ perSecond, burst }, this.#clock);
      this.#budgets.set(keyId, budget);
    }
    if (!budget.isOpen) return false;
    budget.spend(text.length + bracketBytes * Math.max(0, bracketsIn(text) - freeBrackets));
    return true;
  }

  /** Called when the key has no socket any more. */
  forget(keyId: string): void {
    // A new socket would otherwise begin with a new burst.
    if (this.#budgets.get(keyId)?.isFull) this.#budgets.delete(keyId);
  }
}

function bracketsIn(text: string): number {
  let count = 0;
  for (const open of ["{", "["]) {
    for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at + 1)) count++;
  }
  return count;
}
