// Receivers: the ports of destinations, open or closed, and what follows for destinations of customers.
//
// A closed port answers shreds with ICMP errors. Third parties forge such errors about open ones.

import { encodeEndpoint } from "../../src/relay/data-plane/tables.ts";
import type { AccountDestination } from "../../src/shreds/destinations/destination-types.ts";
import type { Probe } from "../../src/shreds/destinations/reachability-checks.ts";
import { addressKey, type Sent } from "./network.ts";
import { Violation } from "./relay-checks.ts";
import type { ServiceLife } from "./service-life.ts";
import type { SimulatedDisk } from "./simulated-disk.ts";
import type { SimulatedTime } from "./simulated-time.ts";

/** Errors with shorter pauses than this belong together. */
const gapMs = 4_000;
/** Ten seconds of errors, until the next one after a gap; then three probes, and time to read the errors. */
const stopMs = 19_000;
/** A pause is visible so long after the last probe. */
const pauseMs = 5_000;
/** A receiver that is back is challenged within ten seconds. */
const backMs = 14_000;
const forgeMs = 300;

interface Port {
  isClosed: boolean;
  /** When it was opened or closed; null: it has always been open. */
  changedMs: number | null;
  /** Since when shreds have reached the closed port without a gap; null: none has. */
  firstSentMs: number | null;
  lastSentMs: number;
  /** Begins again with each life of the service and each change of the clock. */
  observedMs: number;
  isPaused: boolean;
}

interface ReceiversOptions {
  readonly time: SimulatedTime;
  readonly disk: SimulatedDisk;
  /** The service; null: it does not run. */
  readonly life: () => ServiceLife | null;
}

export class Receivers {
  readonly #options: ReceiversOptions;
  readonly #ports = new Map<string, Port>();

  constructor(options: ReceiversOptions) {
    this.#options = options;
  }

  close(address: string, forMs: number): void {
    const port = this.#portOf(address);
    if (port.isClosed) return;
    this.#set(address, port, true);
    this.#after(forMs, () => this.#set(address, port, false));
  }

  /** A third party forges ICMP errors about it. */
  forge(address: string, forMs: number): void {
    this.#portOf(address);
    for (let atMs = 0; atMs < forMs; atMs += forgeMs) {
      this.#after(atMs, () => {
        this.#options.life()?.handle.reportUnreachable(encodeEndpoint(address));
      });
    }
  }

  isClosed(address: string): boolean {
    return this.#ports.get(address)?.isClosed === true;
  }

  /** Whether the service may stop to send to it, or has not begun again. */
  mayBePaused(address: string): boolean {
    const port = this.#ports.get(address);
    if (!port || port.changedMs === null) return false;
    const { time, disk } = this.#options;
    return port.isClosed || time.nowMs - Math.max(port.changedMs, disk.failedUntilMs) < stopMs;
  }

  probe(address: string): Probe {
    const result = this.isClosed(address) ? "unreachable" : "answered";
    return { check: () => result, close: () => {} };
  }

  restarted({ handle }: ServiceLife): void {
    for (const [address, { isClosed }] of this.#ports)
      if (isClosed) handle.refuse(encodeEndpoint(address), true);
    this.observeAgain();
  }

  /** Times before now say nothing more about the service. */
  observeAgain(): void {
    for (const port of this.#ports.values()) {
      port.firstSentMs = null;
      port.observedMs = this.#options.time.nowMs;
    }
  }

  /** Throws Violation. `destinations`: those of customers, as the service lists them. */
  check(sent: readonly Sent[], destinations: readonly AccountDestination[]): void {
    if (this.#ports.size === 0) return;
    const keys = new Set(sent.map(({ to }) => to));
    const listed = new Map(destinations.map((destination) => [destination.address, destination]));
    for (const [address, port] of this.#ports) {
      const destination = listed.get(address);
      if (!destination) continue; // fixed, or removed
      if (port.isClosed && keys.has(addressKey(address))) this.#sentInVain(address, port);
      this.#checkPause(address, port, destination);
    }
  }

  #sentInVain(address: string, port: Port): void {
    const { nowMs } = this.#options.time;
    if (port.firstSentMs === null || nowMs - port.lastSentMs > gapMs) port.firstSentMs = nowMs;
    port.lastSentMs = nowMs;
    const forMs = nowMs - port.firstSentMs;
    if (forMs > stopMs)
      throw new Violation("a closed receiver is paused", `${address} after ${forMs} ms`);
  }

  #checkPause(address: string, port: Port, { state, pauseReason }: AccountDestination): void {
    const { time, disk } = this.#options;
    const isPaused = state === "paused" && pauseReason === "icmp_unreachable";
    const hasBegun = isPaused && !port.isPaused;
    port.isPaused = isPaused;
    if (!isPaused || port.isClosed) return;
    const openMs = time.nowMs - Math.max(port.changedMs ?? 0, disk.failedUntilMs);
    if (hasBegun && openMs > pauseMs)
      throw new Violation("an open receiver is not paused", `${address} after ${openMs} ms`);
    const waitedMs = Math.min(openMs, time.nowMs - port.observedMs);
    if (waitedMs > backMs)
      throw new Violation("a receiver that is back is served", `${address} after ${waitedMs} ms`);
  }

  #set(address: string, port: Port, isClosed: boolean): void {
    port.isClosed = isClosed;
    port.changedMs = this.#options.time.nowMs;
    port.firstSentMs = null;
    this.#options.life()?.handle.refuse(encodeEndpoint(address), isClosed);
  }

  #portOf(address: string): Port {
    const known = this.#ports.get(address);
    if (known) return known;
    const port = {
      isClosed: false,
      changedMs: null,
      firstSentMs: null,
      lastSentMs: 0,
      observedMs: this.#options.time.nowMs,
      isPaused: false,
    };
    this.#ports.set(address, port);
    return port;
  }

  #after(forMs: number, action: () => void): void {
    const { time } = this.#options;
    time.at(time.nowNs + forMs * 1e6, action);
  }
}
