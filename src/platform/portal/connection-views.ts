// Views of connections that submit over QUIC or a WebSocket: those of an account, and of all keys for operators.
//
// Used by live-feed.ts. Rates come from the counts of the last ten seconds. No customer's view contains
// data of another account.

import type {
  ConnectionRecord,
  ConnectionSnapshot,
  KeyRecord,
} from "../../gateway/accounts/connection-records.ts";
import { timeText } from "./api-key-actions.ts";
import type { ConnectionsView, ConnectionView, KeyConnectionsView } from "./types.ts";

const rowsMax = 100;
/** One sample a second. */
const samplesMax = 11;

interface RateSample {
  readonly atNs: bigint;
  readonly submissions: ReadonlyMap<string, number>;
}

function submissionsOf({ accepted, rejected, rateLimited }: ConnectionRecord | KeyRecord): number {
  return accepted + rejected + rateLimited;
}

/** The process of the connections may have been replaced; the next one uses the same numbers. */
function nameOf({ transport, id, openedNs }: ConnectionRecord): string {
  return `${transport} ${id} ${openedNs}`;
}

export class ConnectionViews {
  #samples: RateSample[] = [];
  #latest: ConnectionSnapshot = { connections: [], keys: [] };

  /** Takes the counts of this second. */
  look(snapshot: ConnectionSnapshot, nowNs: bigint): void {
    this.#latest = snapshot;
    const { connections, keys } = snapshot;
    const submissions = new Map<string, number>();
    for (const one of connections) submissions.set(nameOf(one), submissionsOf(one));
    for (const one of keys) submissions.set(one.keyId, submissionsOf(one));
    this.#samples = [...this.#samples, { atNs: nowNs, submissions }].slice(-samplesMax);
  }

  forget(): void {
    this.#samples = [];
    this.#latest = { connections: [], keys: [] };
  }

  ofAccount(accountId: string): ConnectionsView {
    return this.#view((one) => one.accountId === accountId);
  }

  all(): ConnectionsView {
    return this.#view(() => true);
  }

  /** The rows with the most rejections at the rate limit come first. */
  #view(isShown: (one: ConnectionRecord | KeyRecord) => boolean): ConnectionsView {
    const { connections, keys } = this.#latest;
    const ordered = <T extends ConnectionRecord | KeyRecord>(rows: readonly T[]): T[] =>
      rows
        .filter(isShown)
        .toSorted((a, b) => b.rateLimited - a.rateLimited)
        .slice(0, rowsMax);
    return {
      keys: ordered(keys).map((one) => this.#keyView(one)),
      connections: ordered(connections).map((one) => this.#connectionView(one)),
    };
  }

  #keyView(one: KeyRecord): KeyConnectionsView {
    const { keyId, accountName, connections, accepted, rejected, rateLimited, dropped } = one;
    const counts = { accepted, rejected, rateLimited, dropped };
    const submissionsPerSecond = this.#rateOf(keyId, submissionsOf(one));
    return { key: keyId, account: accountName, connections, submissionsPerSecond, ...counts };
  }

  #connectionView(one: ConnectionRecord): ConnectionView {
    const { keyId, transport, protocol, address, accepted, rejected, rateLimited, dropped } = one;
    const openedAt = timeText(one.openedNs);
    const counts = { accepted, rejected, rateLimited, dropped };
    const submissionsPerSecond = this.#rateOf(nameOf(one), submissionsOf(one));
    const name = nameOf(one);
    const facts = { name, key: keyId, transport, protocol, address, openedAt };
    return { ...facts, submissionsPerSecond, ...counts };
  }

  #rateOf(name: string, submissions: number): number {
    const first = this.#samples[0];
    const last = this.#samples.at(-1);
    if (!first || !last || last.atNs <= first.atNs) return 0;
    const before = first.submissions.get(name) ?? 0;
    return Math.max(0, submissions - before) / (Number(last.atNs - first.atNs) / 1e9);
  }
}
