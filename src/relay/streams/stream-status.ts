// Figures of decoded streams: what is open, what was sent, and how streams ended.

import type { DurationHistogram } from "../../core/duration-histogram.ts";
import type { GrpcOutcome } from "../../core/grpc/grpc-server.ts";
import { type EndReason, endReasons } from "./end-reasons.ts";
import type { LookupTableStatus } from "./lookup-table-follower.ts";
import { type Dialect, dialects, type Subscription } from "./subscription.ts";

interface AccountStreams {
  readonly account: string;
  readonly dialect: Dialect;
  readonly open: number;
  readonly sent: number;
  readonly sentBytes: number;
  /** Messages that clients asked to drop instead of an end. */
  readonly dropped: number;
  /** Transactions that a datagram cannot contain. */
  readonly skipped: number;
  /** Datagrams that the kernel refused. */
  readonly failed: number;
  /** Requests that waited, because they came faster than the limit. */
  readonly delayedRequests: number;
  /** Bytes that wait for its clients now. */
  readonly waitingBytes: number;
}

interface StreamHistoryStatus {
  /** Bytes in use, and the largest number of them. */
  readonly bytes: number;
  readonly bytesMax: number;
  /** Streams that have not reached its end. */
  readonly replays: number;
  /** Replayed messages since the start. */
  readonly replayed: bigint;
}

export interface StreamStatus {
  readonly connections: number;
  readonly refusedConnections: number;
  /** Calls that came faster than the rate of new streams of an account, or of calls of an address. */
  readonly refusedOpenings: { readonly account: number; readonly address: number };
  /** Filters of all open streams. `isCurrent`: the relay uses them. */
  readonly filters: {
    readonly filters: number;
    readonly accounts: number;
    readonly isCurrent: boolean;
  };
  /** Sums since the start, by account and dialect. */
  readonly accounts: readonly AccountStreams[];
  /** Ended streams by reason. */
  readonly ends: ReadonlyMap<EndReason, number>;
  /** Calls that ended with an error, by gRPC status. */
  readonly refusals: ReadonlyMap<string, number>;
  /** From the receive time of the last shred of a message until the kernel has it. */
  readonly delays: DurationHistogram;
  readonly history: StreamHistoryStatus;
  /** Address lookup tables; null: no node is configured, so no address is resolved. */
  readonly lookupTables: LookupTableStatus | null;
}

/** Labels are bounded: further accounts count as "other". */
const accountsMax = 100;

interface Sum {
  readonly account: string;
  readonly dialect: Dialect;
  sent: number;
  sentBytes: number;
  dropped: number;
  skipped: number;
  failed: number;
  delayedRequests: number;
}

const summed = ["sent", "sentBytes", "dropped", "skipped", "failed", "delayedRequests"] as const;

function add(sum: Sum, subscription: Subscription): void {
  for (const key of summed) sum[key] += subscription[key];
}

export class StreamCounts {
  readonly #closed = new Map<string, Sum>();
  readonly #ends = new Map<EndReason, number>(endReasons.map((reason) => [reason, 0]));
  readonly #refusals = new Map<string, number>();

  /** A stream is over. */
  closed(subscription: Subscription, reason: EndReason): void {
    add(sumOf(this.#closed, subscription), subscription);
    this.#ends.set(reason, (this.#ends.get(reason) ?? 0) + 1);
  }

  /** A call is over. */
  ended({ status }: Pick<GrpcOutcome, "status">): void {
    if (status === "OK" || status === "CANCELLED") return;
    this.#refusals.set(status, (this.#refusals.get(status) ?? 0) + 1);
  }

  status(
    now: Omit<StreamStatus, "accounts" | "ends" | "refusals"> & {
      readonly open: readonly Subscription[];
    },
  ): StreamStatus {
    const sums = new Map([...this.#closed].map(([key, sum]) => [key, { ...sum }]));
    const present = new Map<Sum, { open: number; waitingBytes: number }>();
    for (const subscription of now.open) {
      const sum = sumOf(sums, subscription);
      add(sum, subscription);
      const { open = 0, waitingBytes = 0 } = present.get(sum) ?? {};
      present.set(sum, {
        open: open + 1,
        waitingBytes: waitingBytes + subscription.waitingBytes,
      });
    }
    const { connections, refusedConnections, filters, delays, history, lookupTables } = now;
    return {
      connections,
      refusedConnections,
      refusedOpenings: now.refusedOpenings,
      filters,
      delays,
      history,
      lookupTables,
      accounts: [...sums.values()].map((sum) => ({
        ...sum,
        ...(present.get(sum) ?? { open: 0, waitingBytes: 0 }),
      })),
      ends: this.#ends,
      refusals: this.#refusals,
    };
  }
}

function sumOf(sums: Map<string, Sum>, { holder, dialect }: Subscription): Sum {
  const own = `${dialect} ${holder.accountId}`;
  const isKnown = sums.has(own) || sums.size < accountsMax * dialects.length;
  const key = isKnown ? own : `${dialect} other`;
  const known = sums.get(key);
  if (known) return known;
  const account = isKnown ? holder.accountName : "other";
  const sum: Sum = {
    account,
    dialect,
    sent: 0,
    sentBytes: 0,
    dropped: 0,
    skipped: 0,
    failed: 0,
    delayedRequests: 0,
  };
  sums.set(key, sum);
  return sum;
}
