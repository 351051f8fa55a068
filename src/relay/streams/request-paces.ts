// Rates of gRPC requests, as high as those of messages on WebSockets.
//
// Owned by stream-service.ts. Each open stream has a rate of requests. The streams of an account share a rate of
// bytes, because the accounts in filters cost the most time. Requests that exceed a rate wait (request-reader.ts).
// Calls without a stream and new streams have rates of their own: they are refused, because nothing would stop
// their client.

import type { Clock } from "../../core/clock.ts";
import type { RequestPace } from "../../core/grpc/request-reader.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import { RateBudget } from "../../core/rate-budget.ts";

const requests = { perSecond: 50, burst: 250 } as const;
/** The burst contains two requests of the largest size. */
const bytes = { perSecond: 1 << 20, burst: 8 << 20 } as const;
/** New streams of an account. A client that reconnects with a growing delay stays far below. */
const openings = { perSecond: 10, burstMin: 250 } as const;
/** Bytes that a request costs in addition to its length. */
const requestBytes = 64;

interface AccountBudgets {
  /** Bytes of requests on open streams. */
  readonly bytes: RateBudget;
  /** Calls without a stream. */
  readonly calls: RateBudget;
  readonly openings: RateBudget;
}

export class RequestPaces {
  readonly #clock: Clock;
  readonly #accounts = new Map<string, AccountBudgets>();
  readonly #streamsMax: () => number;
  #refusedOpenings = 0;

  /** `streamsMax`: streams that an account can have at once. */
  constructor(clock: Clock, streamsMax: () => number) {
    this.#clock = clock;
    this.#streamsMax = streamsMax;
  }

  /** Streams that were refused because of the rate of their account. */
  get refusedOpenings(): number {
    return this.#refusedOpenings;
  }

  /** The pace of a new stream. */
  paceOf(accountId: string, onWait: () => void): RequestPace {
    const ofStream = new RateBudget(requests, this.#clock);
    const budgets = [
      { budget: ofStream, costOf: () => 1 },
      {
        budget: this.#budgetsOf(accountId).bytes,
        costOf: (length: number) => length + requestBytes,
      },
    ];
    return { budgets, onWait };
  }

  /** Counts a call without a stream. Throws GrpcError "RESOURCE_EXHAUSTED". */
  countCall(accountId: string): void {
    const { calls } = this.#budgetsOf(accountId);
    if (!calls.isOpen) {
      const detail =
        `rate limit exceeded: expected at most ${requests.perSecond} calls a second of the account ` +
        `(burst: ${requests.burst}); retry in 1 s`;
      throw new GrpcError("RESOURCE_EXHAUSTED", detail);
    }
    calls.spend(1);
  }

  /** Counts a new stream, also one that cannot be opened. Throws GrpcError "RESOURCE_EXHAUSTED". */
  countOpening(accountId: string): void {
    const budgets = this.#budgetsOf(accountId);
    if (!budgets.openings.isOpen) {
      this.#refusedOpenings++;
      const detail =
        `rate limit exceeded: expected at most ${openings.perSecond} new streams a second of the account ` +
        `(burst: ${this.#openingsBurst()}); keep streams open, and retry in 1 s`;
      throw new GrpcError("RESOURCE_EXHAUSTED", detail);
    }
    budgets.openings.spend(1);
  }

  /** Forgets accounts without `open` streams whose budgets are full again. */
  prune(open: ReadonlySet<string>): void {
    for (const [accountId, budgets] of this.#accounts) {
      const isFull = budgets.bytes.isFull && budgets.calls.isFull && budgets.openings.isFull;
      if (isFull && !open.has(accountId)) this.#accounts.delete(accountId);
    }
  }

  #budgetsOf(accountId: string): AccountBudgets {
    let budgets = this.#accounts.get(accountId);
    if (!budgets) {
      const calls = new RateBudget(requests, this.#clock);
      const { perSecond } = openings;
      budgets = {
        bytes: new RateBudget(bytes, this.#clock),
        calls,
        openings: new RateBudget({ perSecond, burst: this.#openingsBurst() }, this.#clock),
      };
      this.#accounts.set(accountId, budgets);
    }
    return budgets;
  }

  /** All streams of an account may break and be opened again, twice. */
  #openingsBurst(): number {
    return Math.max(openings.burstMin, 2 * this.#streamsMax());
  }
}
