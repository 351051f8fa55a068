// Dialect: the differences between partners over HTTP.
//
// Only types. A dialect writes transactions as one request and reads a verdict for each from the
// response; it does not handle sockets, time or health. One file of this folder implements each
// partner kind; partner-endpoint.ts uses them.

import type { OutboundTransaction } from "../submission/types.ts";

export interface HttpAnswer {
  readonly status: number;
  /** At most 64 kB; untrusted. */
  readonly body: Buffer;
}

/** Result of one transaction according to the partner's response. */
export type Verdict =
  | { readonly kind: "acknowledged" }
  | { readonly kind: "refused"; readonly reason: string; readonly isFinal: boolean }
  | { readonly kind: "failed"; readonly reason: string; readonly isUnsent?: boolean };

export interface Reading {
  /** One for each transaction of the request, in order. */
  readonly verdicts: readonly Verdict[];
  /** Set if the partner itself failed: five such responses in a row take the route down. */
  readonly fault: string | null;
}

export interface Dialect {
  /** Maximum number of transactions in one request; all must have the same path. */
  readonly callsMax: number;
  readonly contentType: string;
  /** Path of sendTransaction without protection, as writeSendTransaction has it; absent: another format. */
  readonly plainPath?: string;
  /** Path and query of the request that takes this transaction. */
  pathOf(outbound: OutboundTransaction): string;
  /** Writes the request body; call ids count up from `firstId`. */
  write(batch: readonly OutboundTransaction[], firstId: number): Uint8Array;
  /** Reads a response. Never throws, whatever it contains. */
  read(answer: HttpAnswer, batch: readonly OutboundTransaction[], firstId: number): Reading;
}

/** The response belongs to another request: so may the next one on this connection, even without an id. */
export function isOutOfStep(verdicts: readonly Verdict[]): boolean {
  return verdicts.some(
    (verdict) => verdict.kind === "failed" && verdict.reason === "answer_mismatched",
  );
}
