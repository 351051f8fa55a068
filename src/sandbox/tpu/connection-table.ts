// Connection table of a leader: lookup by connection id, admission by stake, counts by address.
//
// Called by tpu-server.ts. No I/O.

import type { Clock } from "../../core/clock.ts";
import { type CloseReason, type PeerRank, rankOf, type TpuLimits } from "./limits.ts";
import type { PeerConnection } from "./peer-connection.ts";

const minuteNs = 60_000_000_000n;
/** Maximum number of addresses with a rate count; above it, all counts are reset. */
const addressesMax = 10_000;

interface Minute {
  readonly endNs: bigint;
  count: number;
}

function keyOf(connectionId: Uint8Array): string {
  return Buffer.from(connectionId.buffer, connectionId.byteOffset, connectionId.length).toString(
    "latin1",
  );
}

export class ConnectionTable {
  readonly #clock: Clock;
  readonly #limits: TpuLimits;
  readonly #stakes: { readonly total: bigint; of(identity: string): bigint };
  readonly #byId = new Map<string, PeerConnection>();
  readonly #ids = new Map<PeerConnection, readonly string[]>();
  readonly #minutes = new Map<string, Minute>();

  constructor(
    clock: Clock,
    limits: TpuLimits,
    stakes: { readonly total: bigint; of(identity: string): bigint },
  ) {
    this.#clock = clock;
    this.#limits = limits;
    this.#stakes = stakes;
  }

  /** Valid until the set of connections changes. */
  connections(): readonly PeerConnection[] {
    return [...this.#ids.keys()];
  }

  get openCount(): number {
    return this.#open(() => true).length;
  }

  find(connectionId: Uint8Array): PeerConnection | undefined {
    return this.#byId.get(keyOf(connectionId));
  }

  add(connection: PeerConnection, connectionIds: readonly Uint8Array[]): void {
    const keys = connectionIds.map(keyOf);
    this.#ids.set(connection, keys);
    for (const key of keys) this.#byId.set(key, connection);
  }

  remove(connection: PeerConnection): void {
    for (const key of this.#ids.get(connection) ?? []) this.#byId.delete(key);
    this.#ids.delete(connection);
  }

  /** Counts a new connection from `host`. Returns false if it had too many in the last minute. */
  mayConnect(host: string): boolean {
    const nowNs = this.#clock.monotonicNs();
    let minute = this.#minutes.get(host);
    if (!minute || nowNs >= minute.endNs) {
      if (this.#minutes.size >= addressesMax) this.#minutes.clear();
      minute = { endNs: nowNs + minuteNs, count: 0 };
      this.#minutes.set(host, minute);
    }
    if (minute.count >= this.#limits.connectionsPerAddressPerMinute) return false;
    minute.count++;
    return true;
  }

  /** Called after a handshake. `evict` must close the given connection. */
  admit(identity: string, evict: (connection: PeerConnection) => void): PeerRank | CloseReason {
    const { connectionsPerPeer, stakedConnectionsMax, unstakedConnectionsMax } = this.#limits;
    const rank = rankOf(this.#stakes.of(identity), this.#stakes.total, this.#limits);
    const max = rank.isStaked ? stakedConnectionsMax : unstakedConnectionsMax;
    if (max === 0) return "disallowed";
    const same = this.#open((peer) => peer.identity === identity);
    if (same.length >= connectionsPerPeer) return "too_many";
    const alike = this.#open((peer) => peer.isStaked === rank.isStaked);
    if (alike.length >= max) {
      const [first, ...others] = alike;
      if (first) evict(others.reduce(longestUnused, first));
    }
    return rank;
  }

  #open(matches: (peer: NonNullable<PeerConnection["peer"]>) => boolean): PeerConnection[] {
    return [...this.#ids.keys()].filter(({ peer }) => peer !== undefined && matches(peer));
  }
}

function longestUnused(one: PeerConnection, other: PeerConnection): PeerConnection {
  return other.lastUsedNs < one.lastUsedNs ? other : one;
}
