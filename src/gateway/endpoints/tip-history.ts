// GET /tip_floor/history: percentiles of landed tips by quarter hour, of 24 hours or seven days.
//
// gateway.ts passes requests to it. The body is written once per refresh, period and unit, and shared by
// all responses. A quarter hour without a refresh has no entry; one without landed tips has null as
// percentiles. Neither is written as zero.

import type { TipHistoryView, WrittenInteger } from "../../client/responses.ts";
import { callerOf } from "../../core/addresses/caller.ts";
import { writeJson } from "../../core/json-rpc/json-text.ts";
import { quarterMs } from "../../tips/tip-history.ts";
import type { TipHistoryReader, TipQuarter } from "../../tips/tip-types.ts";
import { WindowLimits } from "../accounts/window-limits.ts";
import type { HttpHead, HttpResponse } from "../http/types.ts";
import { uriChoice } from "./query.ts";
import {
  type Format,
  formatParameter,
  percentileFields,
  readTipQueryWith,
  type TipAnswerDependencies,
  tipAnswer,
  tooMany,
} from "./tip-answers.ts";

export const tipHistoryPath = "/tip_floor/history";
/** A body of seven days has about 170 kB. */
const historiesPerSecond = 2;
const callersMax = 65_536;
/** A refresh may be this late until the newest entry counts as stale. */
const lateMs = 20_000;

const hoursOf = { "24h": 24, "7d": 168 } as const;
type Period = keyof typeof hoursOf;
export const periodParameter = uriChoice(
  "period",
  ["24h", "7d"],
  "the last 24 hours or seven days, one entry per quarter hour",
);

interface TipHistoryDependencies extends TipAnswerDependencies {
  readonly tipHistory: TipHistoryReader;
}

interface HistoryText {
  readonly body: string;
  readonly signature?: string;
}

interface HistoryRequest {
  readonly period: Period;
  readonly format: Format;
  readonly isSigned: boolean;
}

function entryOf(
  { timeMs, count, percentiles }: TipQuarter,
  format: Format,
): TipHistoryView<WrittenInteger>["entries"][number] {
  return {
    time: new Date(timeMs).toISOString(),
    count,
    percentiles: percentiles && percentileFields(percentiles, format),
  };
}

export class TipHistoryHandler {
  readonly #dependencies: TipHistoryDependencies;
  readonly #requests = new WindowLimits(historiesPerSecond, callersMax);
  /** Bodies by period, unit and signature; of one generation, quarter hour and staleness. */
  readonly #texts = new Map<string, HistoryText>();
  #validFor = "";

  constructor(dependencies: TipHistoryDependencies) {
    this.#dependencies = dependencies;
  }

  /** Responds to GET and HEAD. */
  answer(head: HttpHead): HttpResponse {
    const { addressOf, clock } = this.#dependencies;
    const verdict = this.#requests.take(callerOf(addressOf(head)), clock.monotonicNs());
    if (!verdict.allowed) return tooMany("requests per second", verdict);
    const request = readTipQueryWith(head, formatParameter, {
      names: [periodParameter.name],
      read: (query) => ({ period: periodParameter.read(query) }),
    });
    return request.isRead ? tipAnswer(head, verdict, this.#textOf(request)) : request.refusal;
  }

  #textOf(request: HistoryRequest): HistoryText {
    const { tipHistory, clock } = this.#dependencies;
    const nowMs = Number(clock.nowNs() / 1_000_000n);
    const entries = tipHistory.last(hoursOf[request.period]);
    const newest = entries.findLast(({ count }) => count > 0) ?? null;
    const isStale = newest === null || nowMs - newest.timeMs > quarterMs + lateMs;
    const validFor = `${tipHistory.generation} ${Math.floor(nowMs / quarterMs)} ${isStale}`;
    if (validFor !== this.#validFor) this.#texts.clear();
    this.#validFor = validFor;
    const { period, format, isSigned } = request;
    const name = `${period} ${format} ${isSigned}`;
    const known = this.#texts.get(name);
    if (known) return known;
    const text = this.#write(request, { entries, newest, isStale });
    this.#texts.set(name, text);
    return text;
  }

  #write(
    { period, format, isSigned }: HistoryRequest,
    found: {
      readonly entries: readonly TipQuarter[];
      readonly newest: TipQuarter | null;
      readonly isStale: boolean;
    },
  ): HistoryText {
    const { signer, slot } = this.#dependencies;
    const view: TipHistoryView<WrittenInteger> = {
      period,
      unit: format,
      resolution_seconds: quarterMs / 1000,
      newest: found.newest && new Date(found.newest.timeMs).toISOString(),
      stale: found.isStale,
      ...(isSigned && { newest_slot: slot() }),
      entries: found.entries.map((entry) => entryOf(entry, format)),
    };
    const body = writeJson(view);
    return isSigned
      ? { body, signature: signer.signDetached("shredway-tip-history", body) }
      : { body };
  }
}
