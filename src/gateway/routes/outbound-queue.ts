// FIFO queue of transactions that wait for a connection.
//
// Used by partner-endpoint.ts, which limits its length. Removing the first element takes constant
// time on average.

import type { OutboundTransaction } from "../submission/types.ts";
import type { Dialect } from "./dialect.ts";
import type { PartnerConnection } from "./partner-connection.ts";

export interface Waiting {
  readonly outbound: OutboundTransaction;
  /** Monotonic. */
  readonly offeredNs: bigint;
}

/** Number of removed elements at the front before the array is compacted. */
const emptyMax = 512;

interface RequestStart {
  readonly connection: PartnerConnection;
  /** Empty for a probe. */
  readonly waiting: readonly Waiting[];
  readonly firstId: number;
  readonly startedNs: bigint;
}

/** A request that runs. */
export class Request implements RequestStart {
  readonly connection: PartnerConnection;
  readonly waiting: readonly Waiting[];
  readonly firstId: number;
  readonly startedNs: bigint;
  isSent = false;
  /** It was written again to a new connection. */
  isRepeated = false;

  constructor({ connection, waiting, firstId, startedNs }: RequestStart) {
    this.connection = connection;
    this.waiting = waiting;
    this.firstId = firstId;
    this.startedNs = startedNs;
  }
}

export class OutboundQueue {
  #items: Waiting[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  get #first(): Waiting | undefined {
    return this.#items[this.#head];
  }

  push(waiting: Waiting): void {
    this.#items.push(waiting);
  }

  /**
   * Removes the transactions of one request, all with the same path, at most `callsMax`. `expired` receives
   * each transaction whose deadline has passed.
   */
  take(
    callsMax: number,
    nowNs: bigint,
    dialect: Pick<Dialect, "pathOf">,
    expired: (waiting: Waiting) => void,
  ): Waiting[] {
    const taken: Waiting[] = [];
    let path = "";
    for (let next = this.#first; next && taken.length < callsMax; next = this.#first) {
      const isExpired = next.outbound.deadlineNs < nowNs;
      const own = callsMax > 1 ? dialect.pathOf(next.outbound) : "";
      if (!isExpired && taken.length > 0 && own !== path) break;
      this.#shift();
      if (isExpired) {
        expired(next);
      } else {
        path = own;
        taken.push(next);
      }
    }
    return taken;
  }

  /** Removes the first. */
  #shift(): void {
    if (this.length === 0) return;
    this.#head++;
    if (this.length > 0 && (this.#head < emptyMax || this.#head < this.length)) return;
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }

  /** Removes all elements that match `isWanted` and returns them in order. */
  remove(isWanted: (waiting: Waiting) => boolean): Waiting[] {
    const removed: Waiting[] = [];
    this.#items = this.#items.slice(this.#head).filter((waiting) => {
      if (!isWanted(waiting)) return true;
      removed.push(waiting);
      return false;
    });
    this.#head = 0;
    return removed;
  }
}
