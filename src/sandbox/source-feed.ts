// SourceFeed: one validator-direct source of the sandbox. It sends a leader's shreds by its
// profile: delayed, jittered, some lost, some preceded by forged copies.
//
// Created by the sandbox, one for each source. The schedule is repeatable for a seed; the clock
// only determines when due packets are sent. As on a network, late packets of a batch may follow
// early packets of the next one.

import type { Clock } from "../core/clock.ts";
import type { Delivery, TimedPacket } from "./delivery.ts";

/** Sends packets: PacedSender, or a test double. */
export interface Player {
  enqueue(packets: readonly Uint8Array[], timesNs: BigUint64Array): void;
  close(): void;
}

/** After a pause, older packets are dropped, to avoid a burst. */
const latenessMaxNs = 1_000_000_000n;

interface Due {
  readonly packet: Uint8Array;
  readonly atNs: bigint;
}

export class SourceFeed {
  readonly delivery: Delivery;
  readonly #player: Player;
  readonly #clock: Clock;
  /** Ascending by time. */
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

  /** Sends the packets that are due within the next `horizonNs`. */
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

  /** Number of packets that are not due yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  close(): void {
    this.#player.close();
  }
}
