// Ownership challenges that a race received and did not answer, by feed.
//
// The relay gives a challenge its own verdict only if it answers it; otherwise it is one more packet that is too
// short. Most feeds that bring challenges and no shreds belong to a destination that is paused or not proved.

import { isInRange, parseAddressRange } from "../../core/addresses/addresses.ts";
import { refusals } from "../../relay/data-plane/report.ts";
import type { VerdictCounts } from "../../relay/data-plane/snapshot.ts";
import { isChallenge } from "../../shreds/destinations/ownership-proof.ts";
import type { FeedOption } from "../listen/feed-options.ts";
import type { RecordedPacket } from "./feed-recorder.ts";

/** Name in the reasons of packets that do not count as shreds; the relay's verdict. */
export const challengeReason = "challenge";

export class ChallengeCounts {
  readonly #feeds: readonly FeedOption[];
  readonly #byName = new Map<string, number>();

  constructor(feeds: readonly FeedOption[]) {
    this.#feeds = feeds.filter(({ group }) => group === undefined);
  }

  note({ packet, port, source }: Pick<RecordedPacket, "packet" | "port" | "source">): void {
    if (!isChallenge(packet)) return;
    const feed = this.#feeds.find(
      (one) =>
        one.port === port &&
        (one.source === undefined || isInRange(source.bytes, parseAddressRange(one.source))),
    );
    if (feed) this.#byName.set(feed.name, this.of(feed.name) + 1);
  }

  of(name: string): number {
    return this.#byName.get(name) ?? 0;
  }
}

/**
 * The reasons of packets that do not count as shreds, most frequent first. `unanswered`: challenges that the
 * relay counted as too short.
 */
export function refusedOf(
  verdicts: VerdictCounts | undefined,
  unanswered = 0,
): Record<string, number> {
  if (!verdicts) return {};
  const counts = new Map<string, number>(
    refusals(verdicts).map(({ name, count }) => [name, Number(count)]),
  );
  const short = counts.get("too_short") ?? 0;
  const renamed = Math.min(short, unanswered);
  counts.set("too_short", short - renamed);
  counts.set(challengeReason, Number(verdicts.challenge) + renamed);
  const sorted = [...counts].filter(([, count]) => count > 0).toSorted(([, a], [, b]) => b - a);
  return Object.fromEntries(sorted);
}
