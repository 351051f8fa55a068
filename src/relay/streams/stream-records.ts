// Open streams and the last ends of streams, for views of accounts and operators.
//
// Owned by stream-service.ts. An end stays in the list until newer ends of its account replace it.

import type { EndReason } from "./end-reasons.ts";
import type { Dialect, StreamHolder, Subscription } from "./subscription.ts";

interface StreamFacts extends StreamHolder {
  /** Unique since the start. */
  readonly id: number;
  readonly dialect: Dialect;
  readonly tier: string;
  /** Address of the client. */
  readonly address: string;
  /** Wall time. */
  readonly openedNs: bigint;
  /** Messages from shreds that its filters matched. */
  readonly matched: number;
  /** Messages of any kind that were given to the connection. */
  readonly sent: number;
}

export interface StreamRecord extends StreamFacts {
  readonly filters: number;
  /** Bytes that the client has not read. */
  readonly waitingBytes: number;
  /** Messages that were dropped, do not fit a datagram, or that the kernel refused. */
  readonly leftOut: number;
  /** Sum of the delays of all matched messages, from their last shred to the connection. */
  readonly delaySumNs: number;
}

export interface EndedStream extends StreamFacts {
  /** Wall time. */
  readonly endedNs: bigint;
  readonly reason: EndReason;
  /** The text that the client received; empty: none. */
  readonly text: string;
}

export interface StreamSnapshot {
  readonly open: readonly StreamRecord[];
  /** The newest first. */
  readonly ended: readonly EndedStream[];
}

interface OpenStream {
  readonly subscription: Subscription;
  readonly peer: string;
}

const endsPerAccountMax = 10;
const accountsMax = 1000;

export class StreamRecords {
  /** The newest first, by account; the account with the newest end is the last one. */
  readonly #ends = new Map<string, readonly EndedStream[]>();

  ended({ subscription, peer }: OpenStream, reason: EndReason, endedNs: bigint): void {
    const facts = factsOf(subscription, peer);
    const end = { ...facts, endedNs, reason, text: subscription.endText };
    const { accountId } = facts;
    const known = this.#ends.get(accountId) ?? [];
    this.#ends.delete(accountId);
    this.#ends.set(accountId, [end, ...known].slice(0, endsPerAccountMax));
    if (this.#ends.size <= accountsMax) return;
    for (const oldest of this.#ends.keys()) {
      this.#ends.delete(oldest);
      return;
    }
  }

  snapshot(
    open: Iterable<OpenStream>,
    filtersOf: (subscription: Subscription) => number,
  ): StreamSnapshot {
    return {
      open: Array.from(open, ({ subscription, peer }) => ({
        ...factsOf(subscription, peer),
        filters: filtersOf(subscription),
        waitingBytes: subscription.waitingBytes,
        leftOut: subscription.dropped + subscription.skipped + subscription.failed,
        delaySumNs: subscription.delaySumNs,
      })),
      ended: [...this.#ends.values()]
        .flat()
        .toSorted((a, b) => (a.endedNs < b.endedNs ? 1 : a.endedNs > b.endedNs ? -1 : 0)),
    };
  }
}

function factsOf(subscription: Subscription, address: string): StreamFacts {
  const { id, dialect, tier, holder, openedNs, matched, sent, waitingMessages } = subscription;
  return { id, ...holder, dialect, tier, address, openedNs, matched, sent: sent - waitingMessages };
}
