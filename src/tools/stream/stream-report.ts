// Prints a stream: a line for each transaction, the live line, and the summary.

import { LagHistogram } from "../../core/log-linear-histogram.ts";
import { formatClock, formatCount, formatNs, formatRate, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { SlotGaps } from "./slot-gaps.ts";
import type { ShownRestart, ShownTransaction, StreamEvent } from "./stream-messages.ts";
import type { StreamSession } from "./stream-session.ts";
import type { StreamDialect } from "./stream-target.ts";

type SessionFacts = Pick<StreamSession, "interruptions" | "unreadable">;

interface ReportOptions {
  readonly dialect: StreamDialect;
  readonly json: boolean;
  readonly terminal: Terminal;
  readonly startedNs: bigint;
}

export class StreamReport {
  readonly #options: ReportOptions;
  readonly #gaps = new SlotGaps();
  readonly #delays = new LagHistogram();
  #recentDelays = new LagHistogram();
  #recent = 0;
  #lastNs: bigint;
  #liveLine = "";
  /** Transactions. */
  count = 0;

  constructor(options: ReportOptions) {
    this.#options = options;
    this.#lastNs = options.startedNs;
  }

  /** `nowNs`: the wall clock. */
  add(event: StreamEvent, nowNs: bigint): void {
    if (event.kind === "slot") this.#gaps.note(event.slot, event.parent);
    else if (event.kind === "transaction") this.#addTransaction(event, nowNs);
    else if (event.kind === "update_parent") this.#print(restartText(event), restartJson(event));
  }

  /** Shows the live line. Called once a second. `nowNs`: the monotonic clock. */
  tick(nowNs: bigint, facts: SessionFacts): void {
    const seconds = Number(nowNs - this.#lastNs) / 1e9;
    const rate = formatRate(seconds > 0 ? this.#recent / seconds : 0);
    const { terminal, json, startedNs } = this.#options;
    const parts = [
      formatClock(Number(nowNs - startedNs) / 1e9),
      rate,
      this.#delayText(this.#recentDelays),
      `slot ${this.#gaps.newest ?? "-"}`,
      ...gapTexts(this.#gaps, facts),
    ];
    this.#lastNs = nowNs;
    this.#recent = 0;
    this.#recentDelays = new LagHistogram();
    this.#liveLine = parts.join("   ");
    if (terminal.showsProgress) terminal.progress(this.#liveLine);
    else if (!json) terminal.note(this.#liveLine);
  }

  /** Prints the summary. `nowNs`: the monotonic clock. */
  finish(nowNs: bigint, facts: SessionFacts): void {
    const { terminal, startedNs } = this.#options;
    const seconds = Number(nowNs - startedNs) / 1e9;
    const { first, newest } = this.#gaps;
    const slots = first === null ? "no slot" : `slots ${first} to ${newest}`;
    const parts = [
      `received ${formatCount(this.count)} transactions in ${formatClock(seconds)}`,
      formatRate(this.count / seconds),
      this.#delayText(this.#delays),
      slots,
      ...gapTexts(this.#gaps, facts),
    ];
    terminal.note(parts.join(", "));
  }

  #addTransaction(transaction: ShownTransaction, nowNs: bigint): void {
    this.count++;
    this.#recent++;
    const { createdAtNs, slot } = transaction;
    const delayNs = createdAtNs === null ? null : Number(nowNs - createdAtNs);
    if (delayNs !== null) {
      this.#delays.record(delayNs);
      this.#recentDelays.record(delayNs);
    }
    // Only deshred reports the beginning of each slot with its parent.
    if (this.#options.dialect !== "deshred") this.#gaps.note(slot, slot - 1n);
    this.#print(transactionText(transaction, delayNs), transactionJson(transaction, delayNs));
  }

  #print(text: string, value: object): void {
    const { terminal, json } = this.#options;
    terminal.clearProgress();
    terminal.line(json ? toJson(value) : text);
    if (this.#liveLine !== "") terminal.progress(this.#liveLine);
  }

  #delayText(delays: LagHistogram): string {
    const [p50, p99] = [delays.percentile(50), delays.percentile(99)];
    if (p50 === null || p99 === null) return "delay -";
    return `delay p50 ${formatDelay(p50)} p99 ${formatDelay(p99)}`;
  }
}

function gapTexts(gaps: SlotGaps, { interruptions, unreadable }: SessionFacts): string[] {
  const { count, totalMs } = interruptions;
  return [
    `interruptions ${count}${count === 0 ? "" : ` (${(totalMs / 1000).toFixed(1)} s)`}`,
    `absent slots ${gaps.absent}`,
    ...(unreadable === 0 ? [] : [`unreadable messages ${unreadable}`]),
  ];
}

/** Negative: the clock of the server is ahead of this one. */
function formatDelay(ns: number): string {
  return ns < 0 ? `-${formatNs(-ns)}` : formatNs(ns);
}

function transactionText(
  { slot, signature, isVote }: ShownTransaction,
  delayNs: number | null,
): string {
  const delay = delayNs === null ? "" : `  ${formatDelay(delayNs)}`;
  return `${slot}  ${signature}${delay}${isVote ? "  vote" : ""}`;
}

function transactionJson(
  { slot, signature, isVote, createdAtNs }: ShownTransaction,
  delayNs: number | null,
): object {
  return { kind: "transaction", slot, signature, vote: isVote, createdAtNs, delayNs };
}

function restartText({ slot, fecSetIndex, parentSlot }: ShownRestart): string {
  return `${slot}  withdrawn: everything before FEC set ${fecSetIndex}; the parent is slot ${parentSlot}`;
}

function restartJson({ kind, slot, fecSetIndex, parentSlot }: ShownRestart): object {
  return { kind, slot, fecSetIndex, parentSlot };
}
