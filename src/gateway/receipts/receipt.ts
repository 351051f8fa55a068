// Writes the content of receipts from the timelines of transactions.
//
// Called with timelines of one call, or of one transaction. A receipt contains nothing about the account or
// its API key, so that customers can publish it.

import type {
  Receipt,
  ReceiptEnd,
  ReceiptTransaction,
  WrittenInteger,
} from "../../client/responses.ts";
import type { TimelineEvent, TransactionStatus } from "../submission/types.ts";

function isoTime(ns: bigint): string {
  return new Date(Number(ns / 1_000_000n)).toISOString();
}

function eventsOf<K extends TimelineEvent["kind"]>(
  { events }: TransactionStatus,
  kind: K,
): Extract<TimelineEvent, { readonly kind: K }>[] {
  const isOfKind = (event: TimelineEvent): event is Extract<TimelineEvent, { readonly kind: K }> =>
    event.kind === kind;
  return events.filter(isOfKind);
}

function endOf(status: TransactionStatus): ReceiptEnd<WrittenInteger> | null {
  if (status.state === "open") return null;
  const end = eventsOf(status, status.state).at(-1);
  if (!end) return null;
  const { kind, atNs, reason, slot, err, sibling } = end;
  const hasLanded = kind === "landed" || kind === "landed_failed";
  return {
    state: kind,
    at: isoTime(atNs),
    reason,
    slot: hasLanded ? (slot ?? status.slot) : null,
    err: err ?? null,
    sibling: sibling ?? null,
  };
}

function transactionOf(
  status: TransactionStatus,
  isFinal: boolean,
): ReceiptTransaction<WrittenInteger> {
  const queued = eventsOf(status, "queued");
  const held = eventsOf(status, "held").at(-1);
  return {
    signature: status.signature,
    receivedAt: isoTime(status.receivedNs),
    tipLamports: eventsOf(status, "received").at(-1)?.tipLamports ?? null,
    routes: [...new Set(queued.map(({ route }) => route))],
    held: queued.length === 0 && held ? held.reason : null,
    end: isFinal ? endOf(status) : null,
  };
}

interface ReceiptFacts {
  readonly statement: Receipt["statement"];
  /** At least one; all of one call. */
  readonly statuses: readonly TransactionStatus[];
  /** Current slot; null: unknown. */
  readonly slot: bigint | null;
  /** Wall time. */
  readonly nowNs: bigint;
}

export function receiptOf({
  statement,
  statuses,
  slot,
  nowNs,
}: ReceiptFacts): Receipt<WrittenInteger> {
  const [first] = statuses;
  return {
    statement,
    iat: Number(nowNs / 1_000_000_000n),
    time: isoTime(nowNs),
    slot,
    method: first?.method ?? "",
    bundleId: first?.bundleId ?? null,
    transactions: statuses.map((status) => transactionOf(status, statement === "final")),
  };
}
