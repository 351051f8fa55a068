// Views of decoded streams: those of an account, and of all accounts for operators.
//
// Used by live-feed.ts. Rates and delays come from the counts of the last ten seconds. No customer's view
// contains data of another account.

import type {
  EndedStream,
  StreamRecord,
  StreamSnapshot,
} from "../../relay/streams/stream-records.ts";
import { timeText } from "./api-key-actions.ts";
import type { EndedStreamView, StreamsView, StreamView } from "./types.ts";

const rowsMax = 100;
const endRowsMax = 20;
/** One sample a second. */
const samplesMax = 11;

interface StreamSample {
  readonly atNs: bigint;
  readonly streams: ReadonlyMap<number, Pick<StreamRecord, "matched" | "delaySumNs">>;
}

export class StreamViews {
  #samples: StreamSample[] = [];
  #latest: StreamSnapshot = { open: [], ended: [] };

  /** Takes the counts of this second. */
  look(snapshot: StreamSnapshot, nowNs: bigint): void {
    this.#latest = snapshot;
    const streams = new Map(snapshot.open.map((one) => [one.id, one]));
    this.#samples = [...this.#samples, { atNs: nowNs, streams }].slice(-samplesMax);
  }

  forget(): void {
    this.#samples = [];
    this.#latest = { open: [], ended: [] };
  }

  ofAccount(accountId: string): StreamsView {
    return this.#view((one) => one.accountId === accountId);
  }

  all(): StreamsView {
    return this.#view(() => true);
  }

  /** The streams with the most waiting bytes come first. */
  #view(isShown: (one: StreamRecord | EndedStream) => boolean): StreamsView {
    const { open, ended } = this.#latest;
    return {
      streams: open
        .filter(isShown)
        .toSorted((a, b) => b.waitingBytes - a.waitingBytes)
        .slice(0, rowsMax)
        .map((one) => this.#streamView(one)),
      ended: ended
        .filter(isShown)
        .slice(0, endRowsMax)
        .map((one) => endedView(one)),
    };
  }

  #streamView(one: StreamRecord): StreamView {
    const { filters, waitingBytes, leftOut } = one;
    return { ...factsOf(one), filters, waitingBytes, leftOut, ...this.#recent(one) };
  }

  /** A stream that is younger than the first sample began with zero. */
  #recent(one: StreamRecord): Pick<StreamView, "messagesPerSecond" | "delayNs"> {
    const first = this.#samples[0];
    const last = this.#samples.at(-1);
    const before = first?.streams.get(one.id) ?? { matched: 0, delaySumNs: 0 };
    const matched = one.matched - before.matched;
    const seconds = first && last ? Number(last.atNs - first.atNs) / 1e9 : 0;
    return {
      messagesPerSecond: seconds > 0 ? matched / seconds : 0,
      delayNs: matched > 0 ? Math.round((one.delaySumNs - before.delaySumNs) / matched) : null,
    };
  }
}

function factsOf(
  one: StreamRecord | EndedStream,
): Omit<EndedStreamView, "endedAt" | "reason" | "text"> {
  const { id, keyId, accountName, dialect, tier, address, openedNs, matched, sent } = one;
  return {
    name: String(id),
    key: keyId,
    account: accountName,
    dialect,
    tier,
    address,
    openedAt: timeText(openedNs),
    matched,
    sent,
  };
}

function endedView(one: EndedStream): EndedStreamView {
  const { reason, text, endedNs } = one;
  return { ...factsOf(one), endedAt: timeText(endedNs), reason, text };
}
