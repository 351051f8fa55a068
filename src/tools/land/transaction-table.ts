// Table of all transactions (`--csv`): one line for each. Pure.

import type { LandPlan } from "./plan.ts";
import type { RoundRecord } from "./records.ts";

const columns = [
  "round",
  "sender",
  "signature",
  "slot_sent",
  "sent_ns",
  "order",
  "response_ns",
  "error",
  "state",
  "slot",
  "slots",
  "time_ns",
  "via",
  "fec_set",
  "shred_index",
  "block_index",
  "block_transactions",
  "lamports_max",
] as const;

/** A field with a comma, a quotation mark or a line break is quoted (RFC 4180). */
function field(value: bigint | number | string | null | undefined): string {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function transactionTable({ senders }: LandPlan, rounds: readonly RoundRecord[]): string {
  const lines = rounds.flatMap(({ round, slot, transactions }) =>
    transactions.map(({ sender, signature, lamports, answer, end }) => {
      const landing = end?.landing;
      return [
        round,
        senders[sender]?.name,
        signature,
        slot,
        answer?.sentNs,
        answer?.order,
        answer?.responseNs,
        answer?.error?.reason,
        end?.state ?? "open",
        landing?.slot,
        landing?.slots,
        landing?.timeNs,
        landing?.via,
        landing?.shred?.fecSet,
        landing?.shred?.shredIndex,
        landing?.block?.index,
        landing?.block?.transactions,
        lamports,
      ]
        .map(field)
        .join(",");
    }),
  );
  return `${[columns.join(","), ...lines].join("\n")}\n`;
}
