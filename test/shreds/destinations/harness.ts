// Harness of destinations: a store in memory, a manual clock, and a list of sent datagrams.

import type { Endpoint } from "../../../src/core/addresses/addresses.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import { createLogger } from "../../../src/core/log.ts";
import type { DestinationSettings } from "../../../src/shreds/destinations/destination-rules.ts";
import { destinationSettingsOf } from "../../../src/shreds/destinations/destination-rules.ts";
import type {
  AccountDestination,
  DestinationStore,
} from "../../../src/shreds/destinations/destination-types.ts";
import { AccountDestinations } from "../../../src/shreds/destinations/destinations.ts";
import type { Probe } from "../../../src/shreds/destinations/reachability-checks.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;

export const one = { id: "a_1", name: "one" };
export const other = { id: "a_2", name: "other" };
/** An address outside special ranges. */
export const endpoint = "5.6.7.8:9001";

/** Behaves like the database; `foreign` performs changes of another process. */
export class MemoryStore implements DestinationStore {
  readonly rows = new Map<string, AccountDestination>();
  readonly #listeners = new Set<(ids: readonly string[] | null) => void>();
  /** The reads so far: ids of single ones, "all". */
  readonly readings: string[] = [];
  isDown = false;
  /** Awaited by every call, so that a test can intervene. */
  gate: Promise<void> = Promise.resolve();

  async all(): Promise<AccountDestination[]> {
    const rows = [...this.rows.values()]; // the state at the time of the call
    this.readings.push("all");
    await this.#pass();
    return rows;
  }

  async find(id: string): Promise<AccountDestination | null> {
    const row = this.rows.get(id) ?? null;
    this.readings.push(id);
    await this.#pass();
    return row;
  }

  async add(destination: AccountDestination, max: number) {
    await this.#pass();
    const all = [...this.rows.values()];
    if (all.some(({ address }) => address === destination.address)) return "address_taken";
    const own = all.filter(({ accountId }) => accountId === destination.accountId);
    if (own.length >= max) return "too_many";
    this.rows.set(destination.id, destination);
    return "added";
  }

  async update(destination: AccountDestination, before: AccountDestination): Promise<boolean> {
    await this.#pass();
    const row = this.rows.get(destination.id);
    if (!row || JSON.stringify(row) !== JSON.stringify(before)) return false;
    this.rows.set(destination.id, destination);
    return true;
  }

  async remove(id: string): Promise<boolean> {
    await this.#pass();
    return this.rows.delete(id);
  }

  onForeignChange(listener: (ids: readonly string[] | null) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** `ids`: the reported destinations; null: any of them may have changed. */
  foreign(
    change: (rows: Map<string, AccountDestination>) => void,
    ids: readonly string[] | null = null,
  ): void {
    change(this.rows);
    for (const listener of this.#listeners) listener(ids);
  }

  async #pass(): Promise<void> {
    await this.gate;
    if (this.isDown) throw new ShredwayError("store_failed", "the store is down");
  }
}

export const settings: DestinationSettings = {
  ...destinationSettingsOf(completeConfig({ relay: { shredVersion: 1, authentication: "off" } })),
  regions: ["here", "there"],
  region: "here",
};

export interface Sent {
  readonly address: string;
  readonly datagram: Uint8Array;
  readonly token: string;
  readonly atMs: number;
}

export class Harness {
  readonly clock = new ManualClock();
  readonly store = new MemoryStore();
  readonly sent: Sent[] = [];
  readonly probes: { address: string; datagram: Uint8Array; atMs: number }[] = [];
  /** The result of every probe. */
  probeResult: ReturnType<Probe["check"]> = "unreachable";
  /** Number of reported changes of the list. */
  notifications = 0;
  /** The wall clock was set forward by this much. */
  skewMs = 0;
  own: (candidate: Endpoint) => boolean = () => false;
  regionProblem: (region: string) => string | null = () => null;
  isServedElsewhere: (region: string) => boolean = () => false;
  leases = 0;
  #seed: number;
  #opened: AccountDestinations | undefined;

  constructor(seed = 1) {
    this.#seed = seed;
  }

  static async open(changes: Partial<DestinationSettings> = {}): Promise<Harness> {
    const harness = new Harness();
    await harness.start(changes);
    return harness;
  }

  /** May be called again, as after a restart of the process. */
  async start(changes: Partial<DestinationSettings> = {}): Promise<void> {
    this.#opened?.close();
    this.#opened = await AccountDestinations.open(
      {
        clock: this.#settableClock(),
        store: this.store,
        log: createLogger({ level: "silent" }),
        random: (count) => this.#random(count),
        sendChallenge: (address, datagram) => {
          const token = Buffer.from(datagram.subarray(8, 24)).toString("hex");
          this.sent.push({ address, datagram, token, atMs: this.nowMs });
        },
        openProbe: (address, datagram) => {
          this.probes.push({ address, datagram, atMs: this.nowMs });
          return { check: () => this.probeResult, close: () => {} };
        },
        isOwnListener: (candidate) => this.own(candidate),
        regionProblem: (region) => this.regionProblem(region),
        isServedElsewhere: (region) => this.isServedElsewhere(region),
        countLeases: () => this.leases,
      },
      { ...settings, ...changes },
    );
    this.#opened.onChange(() => this.notifications++);
  }

  get destinations(): AccountDestinations {
    if (!this.#opened) throw new Error("expected open destinations");
    return this.#opened;
  }

  get nowMs(): number {
    return Number(this.clock.nowNs() / 1_000_000n) + this.skewMs;
  }

  get lastToken(): string {
    return this.sent.at(-1)?.token ?? "";
  }

  get lastDatagram(): Uint8Array {
    return this.sent.at(-1)?.datagram ?? new Uint8Array();
  }

  active(region = "here"): string[] {
    return this.destinations.active(region).map(({ address }) => address);
  }

  state(id: string): AccountDestination | undefined {
    return this.destinations.list().find((each) => each.id === id);
  }

  /** When each datagram was sent, in seconds from `startMs`. */
  sentSeconds(startMs: number): number[] {
    return this.sent.map(({ atMs }) => (atMs - startMs) / second);
  }

  async proved(address = endpoint, account = one): Promise<AccountDestination> {
    const { id } = await this.destinations.add(account, "here", address);
    return this.destinations.prove(account.id, id, this.lastToken);
  }

  /** As `proved`, by the datagram. */
  async answered(address = endpoint, account = one): Promise<AccountDestination> {
    const { id } = await this.destinations.add(account, "here", address);
    await this.settle();
    this.destinations.answer(address, this.lastDatagram);
    await this.settle();
    const destination = this.state(id);
    if (destination?.provedBy !== "datagram") throw new Error("expected a proof by datagram");
    return destination;
  }

  /** Settles all operations in progress. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 8; turn++) await this.clock.advance(0);
  }

  #settableClock(): Clock {
    const { clock } = this;
    return {
      nowNs: () => clock.nowNs() + BigInt(this.skewMs) * 1_000_000n,
      monotonicNs: () => clock.monotonicNs(),
      after: (delayMs, action) => clock.after(delayMs, action),
      every: (periodMs, action) => clock.every(periodMs, action),
      sleep: clock.sleep,
    };
  }

  #random(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    bytes.set(Buffer.from(String(this.#seed++).padStart(count, "0")).subarray(-count));
    return bytes;
  }
}
