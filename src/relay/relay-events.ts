// Relay events: drained once, counted for the statistics, and reported to listeners of unreachable
// destinations.
//
// Called by relay-service.ts. Events are drained from the relay's rings four times a second, so that few
// are lost, and before each new table, so that counter numbers keep their meaning. Listeners are called
// from the timer only, so one that publishes a table finds no other publication in progress.

import { constants } from "node:os";
import type { Clock, Timer } from "../core/clock.ts";
import type { Relay, RelayEvent } from "./data-plane/relay.ts";

const takeMs = 250;
/** Limit of names of sources and destinations, because accounts may bring new ones continuously. */
const namesMax = 8192;

export type UnreachableListener = (address: string, atNs: bigint) => void;

export class RelayEvents {
  readonly #relay: Pick<Relay, "drainEvents">;
  readonly #clock: Clock;
  #taking: Timer | undefined;
  readonly #listeners: UnreachableListener[] = [];
  #counts = new Map<string, number>();
  #untold: RelayEvent[] = [];

  constructor(relay: Pick<Relay, "drainEvents">, clock: Clock) {
    this.#relay = relay;
    this.#clock = clock;
  }

  /** Starts reporting to listeners. Call it once. */
  start(): void {
    this.#taking = this.#clock.every(takeMs, () => {
      this.take();
      this.#notify();
    });
  }

  /** Drains pending events; listeners are notified within a quarter of a second. */
  take(): void {
    for (const event of this.#relay.drainEvents()) {
      const full = `${event.kind} ${event.subject}`;
      const name = this.#counts.has(full) || this.#counts.size < namesMax ? full : event.kind;
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
      if (isUnreachable(event)) this.#untold.push(event);
    }
  }

  /** Counts since the last call, for example { "icmp_error 192.0.2.1:9001": 3 }. */
  count(): Record<string, number> {
    this.take();
    const counts = Object.fromEntries(this.#counts);
    this.#counts = new Map();
    return counts;
  }

  /**
   * Calls the listener for each event with the destination's address and the wall clock of its ICMP
   * error, in time order within one drain.
   */
  onUnreachable(listener: UnreachableListener): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#taking?.cancel();
  }

  #notify(): void {
    // The relay returns the events of one worker after those of another.
    const reported = this.#untold.toSorted((one, other) => Number(one.timeNs - other.timeNs));
    this.#untold = [];
    for (const { subject, timeNs } of reported)
      for (const listener of this.#listeners) listener(subject, timeNs);
  }
}

// A router that requests smaller datagrams does not report an unreachable destination.
function isUnreachable({ kind, detail }: RelayEvent): boolean {
  return kind === "icmp_error" && detail !== constants.errno.EMSGSIZE;
}
