// Relay: opens the data plane, publishes whole tables, reads snapshots.
//
// A thin typed wrapper of native/relay/relay.h: it checks arguments, assigns counter numbers to sources
// and destinations, and converts errors into ShredwayError. Packets never pass through it.

import { EndpointCache } from "../../core/addresses/endpoint-cache.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import { slotOf } from "../../core/primitives.ts";
import type { LeaderSchedule } from "../leaders/schedule.ts";
import { CounterIds } from "./counter-ids.ts";
import { joinSignatures, type LandingReport, readLandings } from "./landings.ts";
import { type EventName, eventNames } from "./names.ts";
import {
  describeNative,
  guarded,
  type NativeRelay,
  type NativeSimulatedRelay,
  native,
} from "./native.ts";
import { nativeOptions, type RelayOptions } from "./relay-options.ts";
import { RelayStreams } from "./relay-streams.ts";
import {
  type DestinationRow,
  decodeSlots,
  decodeSnapshot,
  layoutOf,
  type RelaySnapshot,
  type SlotSnapshot,
  type SnapshotShape,
  type SourceRow,
  subtract,
  verdictTotals,
} from "./snapshot.ts";
import {
  type Destination,
  encodeDestinations,
  encodeEndpoint,
  encodeLeaders,
  encodeSources,
  type GroupMembership,
  type Source,
} from "./tables.ts";
import { drainTraces, type RelayTrace } from "./traces.ts";
import { readTransmit, type TransmitInUse } from "./transmit-in-use.ts";

export interface SlotBounds {
  readonly lowest: bigint;
  readonly highest: bigint;
  /** Shreds and a node agree. Otherwise shreds of several leaders beyond `highest` overrule the bounds. */
  readonly isConfirmed: boolean;
  /** Wall clock, nanoseconds. */
  readonly untilNs: bigint;
}

export interface RelayEvent {
  readonly kind: EventName;
  readonly timeNs: bigint;
  /**
   * Name of the source (equivocation) or address of the destination (icmp_error), else the worker.
   */
  readonly subject: string;
  readonly slot: bigint;
  readonly fecSetIndex: number;
  /** Shred index (equivocation) or errno (icmp_error). */
  readonly detail: number;
}

const eventBytes = 32;

export class Relay {
  /** Listening addresses with their real ports. */
  readonly addresses: readonly string[];
  /** The size that the kernel granted to each receive socket: twice the request. */
  readonly grantedReceiveBufferBytes: number;
  readonly transmit: TransmitInUse;
  /** The interfaces that receive by AF_XDP, and how: "eth1 (zero-copy)"; null: none. */
  readonly receiveInterfaces: string | null;
  /** Sender threads of each worker; 0 while clones are in use, and in a simulation. */
  readonly senderThreads: number;
  /** Why the workers have the priority of all other threads; null: they precede them. */
  readonly priorityRefusal: string | null;
  /** Memory of the workers that is locked in RAM, and why none is although it was requested. */
  readonly memoryLock: { readonly bytes: number; readonly refusal: string | null };
  readonly streams: RelayStreams;
  readonly tiers: readonly string[];
  readonly #native: NativeRelay;
  readonly #workers: number;
  readonly #clock: Clock;
  readonly #sourceIds: CounterIds;
  readonly #destinationIds: CounterIds;
  readonly #endpoints: EndpointCache;
  #sourceRows: readonly SourceRow[] = [];
  #destinationRows: readonly DestinationRow[] = [];
  /** Built from the rows when an event needs it. */
  #addressById: ReadonlyMap<number, string> | undefined;
  /** Counts of reused rows before their reuse, in the layout of rows: no snapshot has them. */
  readonly #sourceBaseline = new Map<number, BigUint64Array>();
  readonly #destinationBaseline = new Map<number, BigUint64Array>();
  #closed = false;

  private constructor(handle: NativeRelay, options: RelayOptions, clock: Clock) {
    const { limits } = describeNative();
    this.#native = handle;
    this.#workers = options.workers;
    this.#clock = clock;
    this.tiers = [...options.tiers];
    this.#sourceIds = new CounterIds(limits.sources);
    this.#destinationIds = new CounterIds(limits.destinations);
    this.#endpoints = new EndpointCache(2 * limits.destinations);
    this.addresses = this.#native.addresses();
    this.grantedReceiveBufferBytes = this.#native.grantedReceiveBuffer();
    this.transmit = readTransmit(this.#native);
    this.receiveInterfaces = this.#native.receiveInterfaces() || null;
    this.senderThreads = this.#native.senderThreads();
    this.priorityRefusal = this.#native.priorityRefusal() || null;
    const { bytes, refusal } = this.#native.memoryLock();
    this.memoryLock = { bytes, refusal: refusal || null };
    this.streams = new RelayStreams(this.#native, this.tiers);
  }

  /** Opens sockets and starts the workers. Throws ShredwayError "relay_open" or "address_invalid". */
  static open(options: RelayOptions, clock: Clock = systemClock): Relay {
    const handle = guarded("relay_open", () => new (native().Relay)(nativeOptions(options)));
    return new Relay(handle, options, clock);
  }

  /**
   * Opens the relay of a simulation: without sockets and threads, one worker. The caller delivers
   * datagrams, steps the relay and takes what it sent, through the handle. Throws like `open`.
   */
  static simulate(
    options: RelayOptions,
    clock: Clock,
  ): { readonly relay: Relay; readonly handle: NativeSimulatedRelay } {
    const make = () => new (native().SimulatedRelay)(nativeOptions(options));
    const handle = guarded("relay_open", make);
    return { relay: new Relay(handle, options, clock), handle };
  }

  /**
   * Replaces the sources under traffic. Several entries may share a name and its counters. Throws
   * ShredwayError; the old table then stays active.
   */
  publishSources(sources: readonly Source[]): void {
    this.#checkOpen();
    const names = [...new Set(sources.map((source) => source.name))];
    const sourceByName = new Map(sources.map((source) => [source.name, source]));
    encodeSources(sources, [], this.tiers); // rejects before any number is assigned
    const assigned = this.#assign(this.#sourceIds, names, "sources");
    const idByName = new Map(names.map((name, i) => [name, assigned.ids[i] ?? 0]));
    const ids = sources.map((source) => idByName.get(source.name) ?? 0);
    const table = encodeSources(sources, ids, this.tiers);
    guarded("table_refused", () => this.#native.publishSources(table));
    assigned.commit();
    this.#noteReused(assigned.reused, this.#sourceBaseline, "source");
    this.#sourceRows = names.map((name) => ({
      id: idByName.get(name) ?? 0,
      name,
      tier: sourceByName.get(name)?.tier ?? "",
      isForwarded: sourceByName.get(name)?.forward !== false,
    }));
  }

  /** Names of the sources in force. */
  get sourceNames(): readonly string[] {
    return this.#sourceRows.map(({ name }) => name);
  }

  /**
   * Replaces the destinations under traffic, every address once. Throws ShredwayError; the old table
   * then stays active.
   */
  publishDestinations(destinations: readonly Destination[]): void {
    this.#checkOpen();
    const addresses = destinations.map((destination) => destination.address);
    const assigned = this.#assign(this.#destinationIds, addresses, "destinations");
    const parse = (address: string) => this.#endpoints.get(address);
    const table = encodeDestinations(destinations, assigned.ids, this.tiers, parse);
    guarded("table_refused", () => this.#native.publishFanout(table));
    assigned.commit();
    this.#noteReused(assigned.reused, this.#destinationBaseline, "destination");
    this.#addressById = undefined;
    this.#destinationRows = destinations.map((destination, i) => ({
      id: assigned.ids[i] ?? 0,
      name: destination.name ?? destination.address,
      tier: destination.tier,
      address: destination.address,
    }));
  }

  /**
   * Replaces the leader schedule under traffic. Throws ShredwayError; the old one then stays active.
   */
  publishLeaders(schedule: LeaderSchedule): void {
    this.#checkOpen();
    guarded("table_refused", () => this.#native.publishLeaders(encodeLeaders(schedule)));
  }

  /** Joins a group with every worker. Returns the reason if the kernel refuses; null: joined. */
  joinGroup(group: GroupMembership): string | null {
    return this.#changeGroup("joinGroup", group);
  }

  /** Leaves a group, also after its interface has disappeared. */
  leaveGroup(group: GroupMembership): string | null {
    return this.#changeGroup("leaveGroup", group);
  }

  snapshot(): RelaySnapshot {
    const words = this.#readWords();
    const shape = this.#shape();
    const layout = layoutOf(shape);
    const verdicts = verdictTotals(words, shape); // with the counts of former owners of reused rows
    for (const [id, baseline] of this.#sourceBaseline)
      subtract(words, layout.sources + id * layout.sourceWords, baseline);
    for (const [id, baseline] of this.#destinationBaseline)
      subtract(words, layout.destinations + id * layout.destinationWords, baseline);
    const rows = { sources: this.#sourceRows, destinations: this.#destinationRows };
    return { ...decodeSnapshot(words, shape, rows, this.#clock.nowNs()), verdicts };
  }

  /**
   * The newest slots (64 at most), ascending: the part of `snapshot` that is cheap to read often.
   */
  slots(): readonly SlotSnapshot[] {
    this.#checkOpen();
    const words = new BigUint64Array(this.#native.snapshotWords(0, 0));
    this.#native.readCounters(words, 0, 0);
    const shape = { ...this.#shape(), sourceRows: 0, destinationRows: 0 };
    return decodeSlots(words, layoutOf(shape).slots, shape);
  }

  /** Events since the last call, worker by worker (lost ones: counter `events_lost`). */
  drainEvents(): RelayEvent[] {
    this.#checkOpen();
    const bytes = new Uint8Array(256 * eventBytes);
    const view = new DataView(bytes.buffer);
    const events: RelayEvent[] = [];
    for (let count = bytes.length; count * eventBytes >= bytes.length; ) {
      count = this.#native.drainEvents(bytes);
      for (let i = 0; i < count; i++) events.push(this.#decodeEvent(view, i * eventBytes));
    }
    return events;
  }

  /** Trace packets since the last call, at most 64 per worker; the verdict `trace` counts all. */
  drainTraces(): RelayTrace[] {
    this.#checkOpen();
    return drainTraces((into) => this.#native.drainTraces(into), this.#sourceRows, this.#workers);
  }

  /**
   * Possible slots, by a trusted clock: shreds of other slots are dropped as slot_behind or slot_ahead,
   * regardless of the relay's window. Valid until `untilNs` (wall clock), at most 5 s, so that a frozen
   * program excludes no slot. Afterwards every slot is possible, as at the start.
   */
  setSlotBounds(bounds: SlotBounds): void {
    this.#checkOpen();
    const { lowest, highest, isConfirmed, untilNs } = bounds;
    guarded("value_invalid", () =>
      this.#native.setSlotBounds(slotOf(lowest), slotOf(highest), isConfirmed, untilNs),
    );
  }

  /** Drops shreds of slots before `floor` as slot_behind, until the next call. Initially 0. */
  setSlotFloor(floor: bigint): void {
    this.#checkOpen();
    guarded("value_invalid", () => this.#native.setSlotFloor(slotOf(floor)));
  }

  /**
   * Reports every observation of these signatures (64 bytes each) until `unwatchSignatures`, starting
   * with retained ones of the last seconds. Atomic: throws ShredwayError "watch_refused" for another
   * length or above the limit.
   */
  watchSignatures(signatures: readonly Uint8Array[]): void {
    this.#checkOpen();
    guarded("watch_refused", () => this.#native.watchSignatures(joinSignatures(signatures)));
  }

  /** Ignores signatures that are not watched. */
  unwatchSignatures(signatures: readonly Uint8Array[]): void {
    this.#checkOpen();
    guarded("watch_refused", () => this.#native.unwatchSignatures(joinSignatures(signatures)));
  }

  /** Reports since the last call, oldest first (lost landings: counter `landings_lost`). */
  drainLandings(): LandingReport[] {
    this.#checkOpen();
    return guarded("watch_refused", () => readLandings((into) => this.#native.drainLandings(into)));
  }

  /**
   * Calls `listener` shortly after landings arrived (typically 10 us on an idle loop); it should call
   * `drainLandings`. Once per relay. Does not keep the process alive.
   */
  onLandings(listener: () => void): void {
    this.#checkOpen();
    const listenWhileOpen = () => {
      if (!this.#closed) listener(); // a notification may be in flight when the relay closes
    };
    guarded("watch_refused", () => this.#native.onLandings(listenWhileOpen));
  }

  /** The name of a source number in arrivals; undefined: unknown. */
  sourceNumber(name: string): number | undefined {
    return this.#sourceRows.find((row) => row.name === name)?.id;
  }

  /** Fills `into` with arrivals of 32 bytes (native/relay/arrivals.h) and returns their number. */
  drainArrivals(into: Uint8Array): number {
    this.#checkOpen();
    return this.#native.drainArrivals(into);
  }

  /**
   * Fills `into` with retained packets, each after a header of 32 bytes, and returns the number of
   * bytes.
   */
  drainPackets(into: Uint8Array): number {
    this.#checkOpen();
    return this.#native.drainPackets(into);
  }

  /** Arrivals and packets that were lost because they were not drained in time. */
  measuringLosses(): { readonly arrivals: number; readonly packets: number } {
    this.#checkOpen();
    return this.#native.measuringLosses();
  }

  /**
   * Follows the addresses of this machine. Returns a text "eth1: reason" for each interface that does not
   * receive by AF_XDP at present.
   */
  updateReceiving(): readonly string[] {
    this.#checkOpen();
    return this.#native.updateReceiving();
  }

  /** Datagrams that the kernel dropped, by listening address. */
  receiveDrops(): number[] {
    this.#checkOpen();
    return this.#native.receiveDrops();
  }

  /** Stops the threads and closes the sockets. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#native.close();
  }

  #changeGroup(call: "joinGroup" | "leaveGroup", group: GroupMembership): string | null {
    this.#checkOpen();
    const refusal = this.#native[call](
      encodeEndpoint(group.group),
      group.interfaceIndex,
      encodeEndpoint(`${group.interfaceAddress}:0`, { allowPortZero: true }),
    );
    return refusal === "" ? null : refusal;
  }

  #checkOpen(): void {
    if (this.#closed) {
      throw new ShredwayError("relay_closed", "the relay is closed: open a new one");
    }
  }

  #assign(ids: CounterIds, names: readonly string[], what: "sources" | "destinations") {
    const assigned = ids.assign(names);
    if (assigned) return assigned;
    const { limits } = describeNative();
    throw new ShredwayError(
      "table_refused",
      `${what}: expected at most ${limits[what]}, got ${names.length}`,
    );
  }

  #shape(): SnapshotShape {
    const { limits } = describeNative();
    return {
      workers: this.#workers,
      sourceRows: this.#sourceIds.rows,
      destinationRows: this.#destinationIds.rows,
      histogramBuckets: limits.histogramBuckets,
      histogramPrecisionBits: limits.histogramPrecisionBits,
      slotRows: limits.slotRows,
      slotRowFields: limits.slotRowFields,
    };
  }

  #readWords(): BigUint64Array {
    this.#checkOpen();
    const [sources, destinations] = [this.#sourceIds.rows, this.#destinationIds.rows];
    const words = new BigUint64Array(this.#native.snapshotWords(sources, destinations));
    this.#native.readCounters(words, sources, destinations);
    return words;
  }

  #noteReused(
    reused: readonly number[],
    baselines: Map<number, BigUint64Array>,
    kind: "source" | "destination",
  ): void {
    if (reused.length === 0) return;
    const words = this.#readWords();
    const layout = layoutOf(this.#shape());
    const [begin, size] =
      kind === "source"
        ? [layout.sources, layout.sourceWords]
        : [layout.destinations, layout.destinationWords];
    for (const id of reused)
      baselines.set(id, words.slice(begin + id * size, begin + (id + 1) * size));
  }

  #decodeEvent(view: DataView, at: number): RelayEvent {
    const kind = eventNames[view.getUint32(at + 16, true)] ?? "window_anchored";
    const subject = view.getUint32(at + 20, true);
    const nameOf = {
      equivocation: () => this.#sourceRows.find(({ id }) => id === subject)?.name,
      icmp_error: () => this.#destinationAddress(subject),
      window_anchored: () => `worker ${subject}`,
    };
    return {
      kind,
      timeNs: view.getBigUint64(at, true),
      slot: view.getBigUint64(at + 8, true),
      subject: nameOf[kind]() ?? `#${subject}`,
      fecSetIndex: view.getUint32(at + 24, true),
      detail: view.getUint32(at + 28, true),
    };
  }

  #destinationAddress(id: number): string | undefined {
    this.#addressById ??= new Map(this.#destinationRows.map((row) => [row.id, row.address]));
    return this.#addressById.get(id);
  }
}
