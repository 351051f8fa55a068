// Converts timelines to JSON for callers.
//
// Called by getTransactionStatus and the status feed. Times are ISO 8601 in UTC with milliseconds;
// `offsetMs` is the exact time since receipt. Slots and lamports are numbers.

import type {
  StatusEvent,
  TransactionStatus as StatusResponse,
  WrittenInteger,
} from "../../client/responses.ts";
import type { TimelineEvent, TransactionStatus } from "../submission/types.ts";

function isoTime(ns: bigint): string {
  return new Date(Number(ns / 1_000_000n)).toISOString();
}

/** `receivedNs` null: unknown, so `offsetMs` is omitted. */
export function eventJson(
  event: TimelineEvent,
  receivedNs: bigint | null,
): StatusEvent<WrittenInteger> {
  const { kind, atNs, ...facts } = event;
  const offset =
    receivedNs === null ? {} : { offsetMs: Number((atNs - receivedNs) / 1000n) / 1000 };
  return { kind, at: isoTime(atNs), ...offset, ...facts };
}

export function statusJson(status: TransactionStatus): StatusResponse<WrittenInteger> {
  const { receivedNs, events, signature, state, method, bundleId, slot, reason, err } = status;
  return {
    signature,
    state,
    method,
    bundleId,
    receivedAt: isoTime(receivedNs),
    slot,
    reason,
    err: err ?? null,
    events: events.map((event) => eventJson(event, receivedNs)),
  };
}
