// Limits of handshakes: by address, and of all that are in progress. No I/O.
//
// Called by ingress-server.ts for first packets. The source of a first packet without a token may be
// forged, so it never counts against its address; under load such a sender must return a token first.

import { callerOf, peerAddress } from "../../core/addresses/caller.ts";
import type { Clock } from "../../core/clock.ts";

/** Handshakes in progress from which on every sender must prove its address by a token. */
const unprovenMax = 64;
/** First packets without a token that are accepted in a second. */
const unprovenPerSecond = 100;
/** Handshakes in progress, all together. */
const inProgressMax = 1024;
/** Stateless packets (retries, resets, version negotiations) in a second. */
const statelessPerSecond = 20_000;
const addressesMax = 10_000;
const minuteNs = 60_000_000_000n;
const secondNs = 1_000_000_000n;

interface Window {
  readonly endNs: bigint;
  count: number;
}

/** A count in windows of one second. */
class SecondCount {
  readonly #clock: Clock;
  readonly #max: number;
  #endNs = 0n;
  #count = 0;

  constructor(clock: Clock, max: number) {
    this.#clock = clock;
    this.#max = max;
  }

  take(): boolean {
    const nowNs = this.#clock.monotonicNs();
    if (nowNs >= this.#endNs) {
      this.#endNs = nowNs + secondNs;
      this.#count = 0;
    }
    return ++this.#count <= this.#max;
  }
}

/** Throws for a text that is not an address. */
function groupOf(host: string): string {
  return callerOf(peerAddress(host));
}

export class HandshakeLimits {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #minutes = new Map<string, Window>();
  readonly #unproven: SecondCount;
  readonly #stateless: SecondCount;

  constructor(clock: Clock, perMinute: number) {
    this.#clock = clock;
    this.#perMinute = perMinute;
    this.#unproven = new SecondCount(clock, unprovenPerSecond);
    this.#stateless = new SecondCount(clock, statelessPerSecond);
  }

  /** Whether a first packet without a token may begin a handshake. */
  allowsUnproven(inProgress: number, host: string): boolean {
    return inProgress < unprovenMax && !this.#isExhausted(host) && this.#unproven.take();
  }

  allowsProven(inProgress: number, host: string): boolean {
    return inProgress < inProgressMax && this.count(host);
  }

  allowsStateless(): boolean {
    return this.#stateless.take();
  }

  /** Counts a handshake of a proven address. Returns false above the limit. */
  count(host: string): boolean {
    const group = groupOf(host);
    const nowNs = this.#clock.monotonicNs();
    let minute = this.#minutes.get(group);
    if (!minute || nowNs >= minute.endNs) {
      this.#minutes.delete(group);
      this.#forgetOldest();
      minute = { endNs: nowNs + minuteNs, count: 0 };
      this.#minutes.set(group, minute);
    }
    if (minute.count >= this.#perMinute) return false;
    minute.count++;
    return true;
  }

  #isExhausted(host: string): boolean {
    const minute = this.#minutes.get(groupOf(host));
    if (!minute || this.#clock.monotonicNs() >= minute.endNs) return false;
    return minute.count >= this.#perMinute;
  }

  #forgetOldest(): void {
    if (this.#minutes.size < addressesMax) return;
    const [oldest] = this.#minutes.keys();
    if (oldest !== undefined) this.#minutes.delete(oldest);
  }
}
