// Requests without a result, and their events: each request gets exactly one final event.
//
// Owned by quic-process.ts. Events come from a process that an attacker may control: those of
// unknown requests, and repeated ones, are ignored, and a time outside the request's life becomes
// the present.

import type { Clock } from "../../core/clock.ts";
import type { TpuEvent } from "./types.ts";

interface Pending {
  readonly sinceNs: bigint;
  isSent: boolean;
}

export class PendingRequests {
  readonly #clock: Clock;
  readonly #report: (event: TpuEvent) => void;
  readonly #pending = new Map<number, Pending>();

  constructor(clock: Clock, report: (event: TpuEvent) => void) {
    this.#clock = clock;
    this.#report = report;
  }

  add(id: number): void {
    this.#pending.set(id, { sinceNs: this.#clock.monotonicNs(), isSent: false });
  }

  report(event: TpuEvent): void {
    const pending = this.#pending.get(event.id);
    if (!pending) return;
    if (event.kind === "sent") {
      if (pending.isSent) return;
      pending.isSent = true;
    } else this.#pending.delete(event.id);
    const nowNs = this.#clock.monotonicNs();
    const isPossible = event.atNs >= pending.sinceNs && event.atNs <= nowNs;
    this.#report(isPossible ? event : { ...event, atNs: nowNs });
  }

  /** Ends one request, as failed if it was sent and as dropped otherwise. */
  end(id: number, reason: string): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    const kind = pending.isSent ? "failed" : "dropped";
    this.#report({ kind, id, reason, atNs: this.#clock.monotonicNs() });
  }

  /** Ends all requests except `kept`. */
  endAll(reason: string, kept: ReadonlySet<number> = new Set()): void {
    // A copy, because a report may lead to new requests.
    const ids = Array.from(this.#pending.keys());
    for (const id of ids) if (!kept.has(id)) this.end(id, reason);
  }
}
