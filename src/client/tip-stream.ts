// Tip statistics: the body of /tip_floor, and the snapshots of /tip_stream.

import { readTipSnapshot } from "./answers.ts";
import { ShredwayCallError } from "./error.ts";
import { listOf } from "./fields.ts";
import { readJson } from "./json.ts";
import { type FollowOptions, follow } from "./socket.ts";
import type { TipSnapshot } from "./types.ts";

/** The service sends a snapshot at least every quarter of an hour. */
const silenceMs = 16 * 60_000;

/** The body is a list with one snapshot. Throws ShredwayCallError. */
export function readTipFloor(body: unknown): TipSnapshot {
  const [snapshot] = listOf(body, "/tip_floor", readTipSnapshot);
  if (snapshot) return snapshot;
  const problem = "answer_invalid: /tip_floor: expected a snapshot, got an empty list";
  throw new ShredwayCallError(problem, { reason: "answer_invalid" });
}

export async function* tipsOf(feed: Omit<FollowOptions, "silenceMs">): AsyncGenerator<TipSnapshot> {
  let before = "";
  for await (const text of follow({ ...feed, silenceMs })) {
    // After a reconnection, the service first repeats the current snapshot.
    if (text === null || text === before) continue;
    before = text;
    yield readTipSnapshot(readJson(text), "/tip_stream");
  }
}
