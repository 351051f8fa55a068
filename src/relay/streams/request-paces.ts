// Rates of the requests on open gRPC streams, as high as those of messages on WebSockets.
//
// Owned by stream-service.ts. Each stream has a rate of requests. The streams of an account share a rate of
// bytes, because the accounts in filters cost the most time. Requests that exceed a rate wait (request-reader.ts).

import type { Clock } from "../../core/clock.ts";
import type { RequestPace } from "../../core/grpc/request-reader.ts";
import { RateBudget } from "../../core/rate-budget.ts";

const requests = { perSecond: 50, burst: 250 } as const;
/** The burst contains two requests of the largest size. */
const bytes = { perSecond: 1 << 20, burst: 8 << 20 } as const;
/** Bytes that a request costs in addition to its length. */
const requestBytes = 64;

export class RequestPaces {
  readonly #clock: Clock;
  /** Budgets of bytes by account. */
  readonly #accounts = new Map<string, RateBudget>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The pace of a new stream. */
  paceOf(accountId: string, onWait: () => void): RequestPace {
    const ofAccount = this.#accounts.get(accountId) ?? new RateBudget(bytes, this.#clock);
    this.#accounts.set(accountId, ofAccount);
    const ofStream = new RateBudget(requests, this.#clock);
    const budgets = [
      { budget: ofStream, costOf: () => 1 },
      { budget: ofAccount, costOf: (length: number) => length + requestBytes },
    ];
    return { budgets, onWait };
  }

  /** Forgets accounts without `open` streams whose budgets are full again. */
  prune(open: ReadonlySet<string>): void {
    for (const [accountId, budget] of this.#accounts) {
      if (budget.isFull && !open.has(accountId)) this.#accounts.delete(accountId);
    }
  }
}
