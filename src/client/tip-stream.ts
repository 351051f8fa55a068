// Tip statistics: the bodies of /tip_floor and /tip_floor/history, and the snapshots of /tip_stream.

import { readTipQuarter, readTipSnapshot } from "./answers.ts";
import { closable } from "./closable.ts";
import { ShredwayCallError } from "./error.ts";
import { Fields, listOf } from "./fields.ts";
import { readJson } from "./json.ts";
import type { TipHistoryView } from "./responses.ts";
import { type FollowOptions, follow } from "./socket.ts";
import type { TipHistory, TipSnapshot } from "./types.ts";

export const tipHistoryPath = "/tip_floor/history";

/** The service sends a snapshot at least every quarter of an hour. */
const silenceMs = 16 * 60_000;

/** The body is a list with one snapshot. Throws ShredwayCallError. */
export function readTipFloor(body: unknown): TipSnapshot {
  const [snapshot] = listOf(body, "/tip_floor", readTipSnapshot);
  if (snapshot) return snapshot;
  const problem = "answer_invalid: /tip_floor: expected a snapshot, got an empty list";
  throw new ShredwayCallError(problem, { reason: "answer_invalid" });
}

export function readTipHistory(value: unknown, where: string): TipHistory {
  const fields = new Fields<TipHistoryView>(value, where);
  return {
    period: fields.oneOf("period", ["24h", "7d"]),
    resolutionSeconds: fields.integer("resolution_seconds"),
    newest: fields.textOrNull("newest"),
    stale: fields.flag("stale"),
    entries: fields.list("entries", readTipQuarter),
  };
}

export function tipsOf(feed: Omit<FollowOptions, "silenceMs">): AsyncGenerator<TipSnapshot> {
  return closable(feed.signal, (signal) => snapshotsOf({ ...feed, signal, silenceMs }));
}

async function* snapshotsOf(feed: FollowOptions): AsyncGenerator<TipSnapshot> {
  let before = "";
  for await (const text of follow(feed)) {
    // After a reconnection, the service first repeats the current snapshot.
    if (text === null || text === before) continue;
    before = text;
    yield readTipSnapshot(readJson(text), "/tip_stream");
  }
}
