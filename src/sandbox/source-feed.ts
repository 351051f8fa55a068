// One validator-direct source of the sandbox: takes a leader's shreds as they are made and sends them
// as its profile says: later, jittered, some lost, some preceded by forgeries.
//
// Made by the sandbox, one for each source. The schedule is repeatable for a seed; the clock only
// says when to hand the due packets over. Late packets of one batch may come after early ones of the
// next, as on a network.

import type { Clock } from "../core/clock.ts";
import type { Delivery, TimedPacket } from "./delivery.ts";

/** What plays packets: PacedSender, or a stand-in of tests. */
export interface Player {
  enqueue(packets: readonly Uint8Array[], timesNs: BigUint64Array): void;
  close(): void;
}

/** A machine that stood still must not answer with a flood: what is older is not sent any more. */
const latenessMaxNs = 1_000_000_000n;

interface Due {
  readonly packet: Uint8Array;
  readonly atNs: bigint;
}

export class SourceFeed {
  readonly delivery: Delivery;
  readonly #player: Player;
  readonly #clock: Clock;
  /** Ascending. */
  #waiting: Due[] = [];

  constructor(options: { delivery: Delivery; player: Player; clock: Clock }) {
    this.delivery = options.delivery;
    this.#player = options.player;
    this.#clock = options.clock;
  }

  /** `timeNs` of the packets counts from `startNs` (Clock.monotonicNs). */
  add(packets: readonly TimedPacket[], startNs: bigint): void {
    const planned = this.delivery.plan(packets);
    for (const { packet, timeNs } of planned) {
      this.#waiting.push({ packet, atNs: startNs + BigInt(Math.round(timeNs)) });
    }
    this.#waiting.sort((a, b) => (a.atNs < b.atNs ? -1 : Number(a.atNs > b.atNs)));
  }

  /** Hands over what is due within the next `horizonNs`. */
  tick(horizonNs: bigint): void {
    const nowNs = this.#clock.monotonicNs();
    const end = this.#waiting.findIndex(({ atNs }) => atNs >= nowNs + horizonNs);
    const due = this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
    const fresh = due.filter(({ atNs }) => atNs > nowNs - latenessMaxNs);
    if (fresh.length === 0) return;
    const times = fresh.map(({ atNs }) => (atNs > nowNs ? atNs - nowNs : 0n));
    this.#player.enqueue(
      fresh.map(({ packet }) => packet),
      BigUint64Array.from(times),
    );
  }

  /** Packets that wait for their time. */
  get waiting(): number {
    return this.#waiting.length;
  }

  close(): void {
    this.#player.close();
  }
}
