// What the data plane tells of, taken once and for two: counted for the statistics, and told to
// whoever must act on a destination that cannot be reached.
//
// Asked by relay-service.ts. The events are taken from the relay's rings four times a second, so that
// few are lost there, and before each new table, so that numbers mean what they meant. Listeners
// are called from the timer only: one that has a table published finds no other publication under way.

import { constants } from "node:os";
import type { Clock, Timer } from "../core/clock.ts";
import type { Relay, RelayEvent } from "./data-plane/relay.ts";

const takeMs = 250;
/** Names are of sources and destinations, and accounts may bring ever new ones. */
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

  /** Listeners hear from now on. Once. */
  start(): void {
    this.#taking = this.#clock.every(takeMs, () => {
      this.take();
      this.#tell();
    });
  }

  /** Takes what has come; listeners hear of it within a quarter of a second. */
  take(): void {
    for (const event of this.#relay.drainEvents()) {
      const full = `${event.kind} ${event.subject}`;
      const name = this.#counts.has(full) || this.#counts.size < namesMax ? full : event.kind;
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
      if (isUnreachable(event)) this.#untold.push(event);
    }
  }

  /** How often each thing happened since the last call, e.g. { "icmp_error 192.0.2.1:9001": 3 }. */
  count(): Record<string, number> {
    this.take();
    const counts = Object.fromEntries(this.#counts);
    this.#counts = new Map();
    return counts;
  }

  /**
   * Address of a destination, and the wall clock when its ICMP error was found; one call for each,
   * ordered by time among those that were taken since the last calls.
   */
  onUnreachable(listener: UnreachableListener): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#taking?.cancel();
  }

  #tell(): void {
    // The relay hands over one worker's events after the other's.
    const told = this.#untold.toSorted((one, other) => Number(one.timeNs - other.timeNs));
    this.#untold = [];
    for (const { subject, timeNs } of told)
      for (const listener of this.#listeners) listener(subject, timeNs);
  }
}

// A router that asks for smaller datagrams does not say that nobody is there.
function isUnreachable({ kind, detail }: RelayEvent): boolean {
  return kind === "icmp_error" && detail !== constants.errno.EMSGSIZE;
}
