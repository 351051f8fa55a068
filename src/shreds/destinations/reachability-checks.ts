// Reachability checks: whether a destination about which ICMP errors arrive really is unreachable.
//
// Created by destinations.ts. Anyone can forge an ICMP error about a shred, because shreds are public. A
// check therefore sends up to three probes with secrets, one a second. The destination is unreachable if
// every probe gets an error that quotes its secret. The first probe without such an error ends the check.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { challengeOf, tokenBytes } from "./ownership-proof.ts";

/** A datagram that was sent; see relay/data-plane/reachability-probe.ts. */
export interface Probe {
  check(): "pending" | "answered" | "unreachable";
  close(): void;
}

interface ReachabilityDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  /** Unpredictable bytes. */
  readonly random: (count: number) => Uint8Array;
  /** Sends the datagram. Throws if the system has no socket for it. */
  readonly openProbe: (address: string, datagram: Uint8Array) => Probe;
}

const probesPerCheck = 3;
const probeMs = 1_000;
/** Checks at the same time; further ones are omitted, and the next errors ask for them again. */
const checksMax = 64;

export class ReachabilityChecks {
  readonly #dependencies: ReachabilityDependencies;
  readonly #running = new Map<string, { readonly probe: Probe; readonly timer: Timer }>();

  constructor(dependencies: ReachabilityDependencies) {
    this.#dependencies = dependencies;
  }

  /** Calls `onUnreachable` if every probe proves it. One check per address at a time. */
  begin(address: string, onUnreachable: () => void): void {
    if (this.#running.has(address) || this.#running.size >= checksMax) return;
    this.#probe(address, probesPerCheck, onUnreachable);
  }

  close(): void {
    for (const { probe, timer } of this.#running.values()) {
      timer.cancel();
      probe.close();
    }
    this.#running.clear();
  }

  #probe(address: string, left: number, onUnreachable: () => void): void {
    const { clock, random, openProbe, log } = this.#dependencies;
    let probe: Probe;
    try {
      probe = openProbe(address, challengeOf(random(tokenBytes)));
    } catch (error) {
      log.warn(`destinations: ${address} cannot be checked: ${messageOf(error)}`);
      return;
    }
    const timer = clock.after(probeMs, () => {
      this.#running.delete(address);
      const result = probe.check();
      probe.close();
      if (result !== "unreachable") return;
      if (left > 1) this.#probe(address, left - 1, onUnreachable);
      else onUnreachable();
    });
    this.#running.set(address, { probe, timer });
  }
}
