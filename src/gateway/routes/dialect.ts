// What differs between partners that are reached over HTTP.
//
// Only types. A dialect says how transactions become one request and what its answer means for each of
// them; it knows no sockets, no clocks, no health. Implemented by the files of this folder that are
// named after kinds of partners, driven by partner-endpoint.ts.

import type { OutboundTransaction } from "../submission/types.ts";

export interface HttpAnswer {
  readonly status: number;
  /** At most 64 kB; of hostile origin. */
  readonly body: Buffer;
}

/** What became of one transaction. */
export type Verdict =
  | { readonly kind: "acknowledged" }
  | { readonly kind: "refused"; readonly reason: string; readonly isFinal: boolean }
  | { readonly kind: "failed"; readonly reason: string };

export interface Reading {
  /** One for each transaction of the request, in their order. */
  readonly verdicts: readonly Verdict[];
  /** Set when the partner itself is at fault: five such answers in a row make the route down. */
  readonly fault: string | null;
}

export interface Dialect {
  /** Transactions that one request may hold; of those that have the same path. */
  readonly callsMax: number;
  readonly contentType: string;
  /** Path and query of the request that takes this transaction. */
  pathOf(outbound: OutboundTransaction): string;
  /** `firstId`: the calls are numbered from it, in order. */
  write(batch: readonly OutboundTransaction[], firstId: number): Uint8Array;
  /** Never throws, whatever is in the answer. */
  read(answer: HttpAnswer, batch: readonly OutboundTransaction[], firstId: number): Reading;
}
