// Relay service: tables from the configuration, statistics, warnings, and the current leader.
//
// Created by src/app, run by service.ts. It opens nothing itself: the relay and the functions that read
// files are passed in. A rejected configuration changes nothing.

import { type Endpoint, parseEndpoint } from "../core/addresses/addresses.ts";
import { listenersReached } from "../core/addresses/own-addresses.ts";
import type { Clock, Timer } from "../core/clock.ts";
import type { Config, RelayConfig, SolanaConfig } from "../core/configuration/configuration.ts";
import { isForwardedSource } from "../core/configuration/relay-sources.ts";
import { quote, ShredwayError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { describeNative } from "./data-plane/native.ts";
import type { Relay } from "./data-plane/relay.ts";
import type { RelaySnapshot } from "./data-plane/snapshot.ts";
import type { Destination } from "./data-plane/tables.ts";
import { DestinationDiscovery } from "./destination-discovery.ts";
import { DestinationLists } from "./destination-lists.ts";
import { type LeaderContext, leaderContextOf } from "./leaders/leader-context.ts";
import { type LeaderNode, RpcLeaderSchedule } from "./leaders/rpc-leader-schedule.ts";
import { coverageText, type LeaderSchedule } from "./leaders/schedule.ts";
import { ScheduleCheck } from "./leaders/schedule-check.ts";
import { SlotClockUpdates, type SlotNode } from "./leaders/slot-clock-updates.ts";
import { groupListenersOf } from "./multicast/group-plan.ts";
import { type InterfaceReader, readInterface } from "./multicast/interface-reader.ts";
import { type GroupState, MulticastGroups } from "./multicast/multicast-groups.ts";
import { ReceiveReport } from "./receive-report.ts";
import { RelayEvents, type UnreachableListener } from "./relay-events.ts";
import { restartKeys, withTablesOf } from "./relay-tables.ts";
import { type SenderThreadsChoice, senderThreadsText } from "./sender-threads.ts";
import {
  type ShredstreamEnvironment,
  ShredstreamSources,
  tableOf,
} from "./shredstream/shredstream-sources.ts";
import { TraceDelays } from "./shredstream/trace-delays.ts";
import { SlotFloor } from "./slot-floor.ts";
import { TrafficCheck } from "./traffic-check.ts";
import { TransmitReport } from "./transmit-report.ts";

const checkIntervalMs = 10_000;

interface RelayServiceDependencies {
  readonly relay: Relay;
  readonly config: Config;
  /** Throws ShredwayError. */
  readonly readLeaders: (path: string) => LeaderSchedule;
  readonly readOwnAddresses: () => readonly string[];
  /** Default: the kernel's interfaces. */
  readonly readInterface?: InterfaceReader;
  /** The node of solana.rpc, the source of the leader schedule without a file. */
  readonly node?: LeaderNode & SlotNode;
  /** Reads relay.discovery.url; absent: the key is refused. */
  readonly fetchDestinations?: (url: string) => Promise<readonly string[]>;
  /** Required by sources of kind "shredstream"; absent: they are refused. */
  readonly shredstream?: ShredstreamEnvironment;
  /** Keeps the highest slot over a restart; absent: old shreds are accepted after one. */
  readonly slotFile?: string;
  /** Why the relay was opened with its number of sender threads, for the log. */
  readonly senderThreads?: SenderThreadsChoice;
  readonly log: Logger;
  readonly clock: Clock;
}

function normalPriorityText(refusal: string): string {
  return (
    `relay: the workers have the priority of the other threads (${refusal}); ` +
    "docs/tuning.md explains how to raise it"
  );
}

export class RelayService {
  readonly relay: Relay;
  readonly #readLeaders: (path: string) => LeaderSchedule;
  readonly #readOwnAddresses: () => readonly string[];
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #checkTimer: Timer;
  readonly #node: RelayServiceDependencies["node"];
  readonly #solana: SolanaConfig | undefined;
  readonly #leaders: RpcLeaderSchedule | undefined;
  /** The current slot and the slot duration. */
  readonly slots: SlotClockUpdates;
  readonly #floor: SlotFloor | undefined;
  /** data.directory without a gateway, which reports this key itself. */
  readonly #ownFolder: string | undefined;
  #watch: ScheduleCheck | undefined;
  readonly #traffic = new TrafficCheck();
  readonly #transmit: TransmitReport;
  readonly #receive: ReceiveReport;
  readonly #senderThreads: SenderThreadsChoice | undefined;
  readonly #multicast: MulticastGroups;
  /** Listening addresses of groups, fixed at the start. */
  readonly #groupListeners: readonly string[];
  #schedule: LeaderSchedule | undefined;
  readonly #scheduleListeners = new Set<(schedule: LeaderSchedule) => void>();
  readonly #events: RelayEvents;
  readonly #destinations: DestinationLists;
  /** Subscriptions at block engines. */
  readonly shredstream: ShredstreamSources;
  /** Destinations from a URL. */
  readonly discovery: DestinationDiscovery;
  /** One-way delays of block engines. */
  readonly traces: TraceDelays;
  #ofAccounts: readonly Destination[] = [];
  #leased: readonly Destination[] = [];
  /** Whether the section `shredstream` is configured, so that destinations may be leased. */
  readonly #servesSubscribers: boolean;
  /** Cached for a few seconds, because reading the own addresses for each tip would be slow. */
  #listenerReached: (destination: Endpoint) => Endpoint | undefined;
  /** Addresses of accounts in the active table. */
  #served: ReadonlySet<string> = new Set();
  #inForce: RelayConfig;
  #closed = false;

  /** Publishes the tables. Throws ShredwayError if a file or a table is rejected. */
  constructor(dependencies: RelayServiceDependencies) {
    this.relay = dependencies.relay;
    this.#readLeaders = dependencies.readLeaders;
    this.#readOwnAddresses = dependencies.readOwnAddresses;
    this.#log = dependencies.log;
    this.#transmit = new TransmitReport(this.relay, this.#log);
    this.#receive = new ReceiveReport(this.relay, this.#log);
    this.#senderThreads = dependencies.senderThreads;
    this.#clock = dependencies.clock;
    this.#inForce = dependencies.config.relay;
    this.#node = dependencies.node;
    this.#solana = dependencies.config.solana;
    this.#servesSubscribers = dependencies.config.shredstream !== undefined;
    this.#leaders = dependencies.node && this.#makeLeaders(dependencies.node);
    this.#destinations = new DestinationLists({
      tiers: this.relay.tiers,
      max: describeNative().limits.destinations,
      log: this.#log,
    });
    this.#groupListeners = groupListenersOf(this.#inForce.sources);
    this.#multicast = new MulticastGroups({ readInterface, ...dependencies });
    this.#events = new RelayEvents(this.relay, this.#clock);
    this.shredstream = this.#makeShredstream(dependencies);
    this.discovery = this.#makeDiscovery(dependencies);
    this.traces = new TraceDelays(() => this.relay.drainTraces(), this.#clock);
    this.#listenerReached = this.#readListeners();
    if (!dependencies.config.http) this.#ownFolder = dependencies.config.data.directory;
    this.#floor = this.#openFloor(dependencies); // before the sources, so before the first shred
    this.#publish(this.#inForce);
    this.slots = new SlotClockUpdates(dependencies);
    this.#floor?.start();
    this.#events.start();
    this.#checkTimer = this.#clock.every(checkIntervalMs, () => this.#poll());
  }

  /** Settles when the leader schedule is active, or when the node could not provide it yet. */
  async start(): Promise<void> {
    this.#transmit.logStart(this.#inForce.transmit);
    this.#receive.logStart();
    const { priorityRefusal, memoryLock, senderThreads } = this.relay;
    if (this.#senderThreads) this.#log.info(senderThreadsText(senderThreads, this.#senderThreads));
    if (priorityRefusal !== null) this.#log.info(normalPriorityText(priorityRefusal));
    if (memoryLock.bytes > 0)
      this.#log.info({ bytes: memoryLock.bytes }, "relay: the workers' memory is locked in RAM");
    this.shredstream.start();
    void this.discovery.start(); // a slow URL must not delay the start
    if (this.#asksForLeaders(this.#inForce)) await this.#leaders?.start();
  }

  get config(): RelayConfig {
    return this.#inForce;
  }

  /** Warnings for the operator at startup, the most severe first. */
  warnings(): string[] {
    const { authentication, sources, destinations, receive, leaders } = this.#inForce;
    const warnings: string[] = [];
    if (authentication === "off") {
      warnings.push(
        "relay: AUTHENTICATION IS OFF: every well-formed shred is forwarded, including forged ones. " +
          "Set relay.authentication: leader-schedule and relay.leaders.file",
      );
      if (leaders) warnings.push("relay.leaders has no effect while relay.authentication is off");
    }
    if (sources.length === 0) warnings.push("relay.sources is empty: all packets are dropped");
    const isEmpty = destinations.length === 0 && this.#ofAccounts.length === 0;
    if (isEmpty && !this.#inForce.discovery && !this.#servesSubscribers)
      warnings.push("relay.destinations is empty: no shred is sent");
    else if (sources.length > 0 && !sources.some(isForwardedSource))
      warnings.push("relay.sources: every source is for own use, so no shred is sent");
    const { transmit } = this.relay;
    if (this.#inForce.transmit === "clone" && transmit.mode === "socket") {
      warnings.push(`relay.transmit is clone, but shreds are sent by socket: ${transmit.refusal}`);
    }
    const { refusal } = this.relay.memoryLock;
    if (refusal !== null)
      warnings.push(`relay.lockMemory is true, but the workers' memory is not locked: ${refusal}`);
    const granted = this.relay.grantedReceiveBufferBytes / 2; // the kernel returns twice the size
    if (granted < receive.bufferBytes) {
      warnings.push(
        `relay: the kernel granted receive buffers of ${granted} bytes instead of ${receive.bufferBytes}: ` +
          `bursts may be lost. Run: sysctl -w net.core.rmem_max=${receive.bufferBytes}`,
      );
    }
    return warnings;
  }

  /**
   * Applies the tables of `wanted` as far as a running relay can, and returns the keys that need a
   * restart. Throws ShredwayError if it rejects them; then nothing changed.
   */
  apply({ relay: wanted, solana, data }: Config): readonly string[] {
    const restart = restartKeys(this.#inForce, wanted);
    const opened = this.#groupListeners;
    if (groupListenersOf(wanted.sources).some((listener) => !opened.includes(listener)))
      restart.push("relay.sources (a port of multicast groups)");
    if (solana?.rpc !== this.#solana?.rpc) restart.push("solana.rpc");
    if (this.#floor && (this.#ownFolder ?? data.directory) !== data.directory)
      restart.push("data.directory");
    this.#refuseWithoutNode(wanted);
    const askedBefore = this.#asksForLeaders(this.#inForce);
    this.#replace(withTablesOf(this.#inForce, wanted));
    const asksNow = this.#asksForLeaders(this.#inForce);
    if (askedBefore && !asksNow) this.#leaders?.stop();
    if (asksNow && !askedBefore) void this.#leaders?.start();
    const { sources, destinations } = this.#inForce;
    this.#log.info(
      { sources: sources.length, destinations: destinations.length },
      "relay: reloaded sources, destinations and leaders",
    );
    return restart;
  }

  /**
   * Sets the destinations of accounts, in addition to configured ones: the complete list on each call.
   * It applies immediately and across reloads. A destination that cannot be served is skipped and
   * logged: a configured or own address, an unknown tier, or one of the narrowest tiers beyond the
   * relay's limit.
   */
  setAccountDestinations(list: readonly Destination[]): void {
    this.#ofAccounts = [...list];
    if (!this.#closed) this.#publishDestinations(this.#inForce.destinations);
  }

  /**
   * Sets the destinations of subscribers, in addition to configured ones: the complete list on each call.
   * Throws ShredwayError if the relay rejects them; then the previous list stays in force.
   */
  setLeasedDestinations(list: readonly Destination[]): void {
    if (this.#closed) return;
    const before = this.#leased;
    this.#leased = [...list];
    try {
      this.#publishDestinations(this.#inForce.destinations);
    } catch (error) {
      this.#leased = before;
      throw error;
    }
  }

  /** Whether the relay listens on this address. */
  isOwn(address: string): boolean {
    return this.#listenerReached(parseEndpoint(address)) !== undefined;
  }

  /**
   * Reports each ICMP error of an account's destination within a quarter of a second: the address as
   * written by the account, and the wall clock in nanoseconds.
   */
  onUnreachable(listener: UnreachableListener): void {
    this.#events.onUnreachable((address, atNs) => {
      if (this.#served.has(address)) listener(address, atNs);
    });
  }

  /** The current and the next leader, by the slot clock and the active schedule. */
  leaders(): LeaderContext {
    const slot = this.slots.slotClock.slotAt(this.#clock.nowNs());
    return leaderContextOf(this.#schedule, slot);
  }

  /** The last activated schedule; undefined: none yet. */
  get schedule(): LeaderSchedule | undefined {
    return this.#schedule;
  }

  /** Why the relay drops most of the traffic; null: it does not. */
  get trafficProblem(): string | null {
    return this.#traffic.problem;
  }

  /** Multicast groups of the sources; empty: none. */
  get groups(): readonly GroupState[] {
    return this.#multicast.states();
  }

  /** Why multicast groups do not deliver; null: they do, or no source has any. */
  get groupProblem(): string | null {
    return this.#multicast.problem;
  }

  /** Reports each schedule that becomes active. Returns a function that removes the listener. */
  onSchedule(listener: (schedule: LeaderSchedule) => void): () => void {
    const own = (schedule: LeaderSchedule): void => listener(schedule);
    this.#scheduleListeners.add(own);
    return () => void this.#scheduleListeners.delete(own);
  }

  /** Addresses of configured destinations, in the form of a snapshot. */
  get fixedAddresses(): ReadonlySet<string> {
    return new Set(this.#inForce.destinations.map(({ address }) => address));
  }

  snapshot(): RelaySnapshot {
    return this.relay.snapshot();
  }

  /** Counts since the last call, for example { "icmp_error 192.0.2.1:9001": 3 }. */
  countEvents(): Record<string, number> {
    return this.#events.count();
  }

  close(): void {
    this.#closed = true;
    this.#checkTimer.cancel();
    this.shredstream.close();
    this.discovery.close();
    this.traces.close();
    this.#events.close();
    this.#multicast.close();
    this.#leaders?.stop();
    this.#floor?.close();
    this.slots.close();
    this.relay.close();
  }

  #replace(wanted: RelayConfig): void {
    const before = this.#inForce;
    try {
      this.#publish(wanted);
    } catch (error) {
      this.#publishSources(before); // the leaders are published last
      this.#publishDestinations(before.destinations);
      throw error;
    }
    this.#inForce = wanted;
  }

  #asksForLeaders({ authentication, leaders }: RelayConfig): boolean {
    return authentication === "leader-schedule" && !leaders;
  }

  #refuseWithoutNode(wanted: RelayConfig): void {
    if (!this.#asksForLeaders(wanted) || this.#node) return;
    throw new ShredwayError(
      "config_invalid",
      "relay.leaders: expected leaders.file, because this process was started without solana.rpc; " +
        "restart to use solana.rpc",
    );
  }

  #makeLeaders(node: LeaderNode): RpcLeaderSchedule {
    const publish = (schedule: LeaderSchedule) => {
      if (!this.#asksForLeaders(this.#inForce)) return; // a reload configured a file meanwhile
      this.relay.publishLeaders(schedule);
      this.#watchSchedule(schedule);
    };
    return new RpcLeaderSchedule({ node, clock: this.#clock, log: this.#log, publish });
  }

  #makeDiscovery({ fetchDestinations, clock, log }: RelayServiceDependencies) {
    const refused = new ShredwayError(
      "config_invalid",
      "relay.discovery is not possible in this program",
    );
    return new DestinationDiscovery({
      fetchList: fetchDestinations ?? (() => Promise.reject(refused)),
      publish: () => this.#publishDestinations(this.#inForce.destinations),
      clock,
      log,
    });
  }

  #makeShredstream({ shredstream, clock, log }: RelayServiceDependencies): ShredstreamSources {
    const readKey = (path: string): never => {
      throw new ShredwayError(
        "config_invalid",
        `key file ${path}: sources of kind shredstream are not possible in this program`,
      );
    };
    return new ShredstreamSources({
      ...(shredstream ?? { readKey, random: () => 0 }),
      addresses: this.relay.addresses,
      snapshot: () => this.relay.snapshot(),
      clock,
      log,
    });
  }

  /** Unauthenticated shreds can have any slot, so their slots are not kept. */
  #openFloor({ slotFile: path }: RelayServiceDependencies): SlotFloor | undefined {
    const { authentication, shredVersion } = this.#inForce;
    if (path === undefined || authentication === "off") return undefined;
    return new SlotFloor({
      path,
      shredVersion,
      relay: this.relay,
      reachedSlot: () => this.slots.reachedSlot(),
      clock: this.#clock,
      log: this.#log,
    });
  }

  #publish(config: RelayConfig): void {
    this.#refuseItself(config);
    this.#refuseUnknownTier(config);
    const uses = config.authentication === "leader-schedule" && config.leaders;
    const schedule = uses ? this.#readLeaders(uses.file) : undefined;
    const discovery = this.discovery.prepare(config);
    const activateSubscriptions = this.shredstream.prepare(config.sources);
    this.#publishSources(config);
    this.#publishDestinations(config.destinations, discovery.destinations);
    if (schedule) {
      this.relay.publishLeaders(schedule);
      this.#watchSchedule(schedule);
    }
    discovery.activate();
    activateSubscriptions();
    this.traces.keepSources(this.relay.sourceNames);
  }

  #publishSources({ sources }: RelayConfig): void {
    this.#multicast.publish(tableOf(sources, this.relay.addresses));
  }

  #publishDestinations(
    configured: readonly Destination[],
    discovered = this.discovery.destinations(),
  ): void {
    this.#events.take(); // while the counter numbers of the previous table are known
    const isOwn = (endpoint: Endpoint) => this.#listenerReached(endpoint) !== undefined;
    const further = [...discovered, ...this.#leased];
    const fixed = this.#destinations.withDiscovered(configured, further, isOwn);
    const joined = this.#destinations.join(fixed, this.#ofAccounts, isOwn);
    this.relay.publishDestinations(joined.table);
    this.#served = joined.served;
    this.#destinations.log(joined);
  }

  // The file was checked against its own relay.listen. The active ports may differ: chosen by the
  // kernel, or from the file at startup.
  #refuseItself({ destinations }: RelayConfig): void {
    this.#listenerReached = this.#readListeners();
    for (const { address } of destinations) {
      if (!this.#listenerReached(parseEndpoint(address))) continue;
      throw new ShredwayError(
        "config_invalid",
        `relay.destinations: ${address} is a listener of the relay itself; expected an address other than ` +
          this.relay.addresses.join(", "),
      );
    }
  }

  // The file was checked against its own relay.tiers, which need a restart.
  #refuseUnknownTier({ discovery }: RelayConfig): void {
    const { tiers } = this.relay;
    if (!discovery || tiers.includes(discovery.tier)) return;
    throw new ShredwayError(
      "config_invalid",
      `relay.discovery.tier: the running relay has no tier ${quote(discovery.tier)}; expected ` +
        `${tiers.join(", ")}, or a restart to apply relay.tiers`,
    );
  }

  #readListeners(): (destination: Endpoint) => Endpoint | undefined {
    const listeners = this.relay.addresses.map((text) => parseEndpoint(text));
    return listenersReached(listeners, this.#readOwnAddresses);
  }

  #watchSchedule(schedule: LeaderSchedule): void {
    this.#schedule = schedule;
    for (const listener of this.#scheduleListeners) listener(schedule);
    this.#log.info(coverageText(schedule));
    const node = this.#asksForLeaders(this.#inForce) ? this.#node?.host : undefined;
    if (this.#watch && this.#watch.node === node) this.#watch.replace(schedule);
    else this.#watch = new ScheduleCheck(schedule, node);
  }

  #poll(): void {
    this.#listenerReached = this.#readListeners();
    const snapshot = this.relay.snapshot();
    this.traces.keepSources(this.relay.sourceNames); // multicast groups come and go
    this.#checkTraffic(snapshot);
    this.#transmit.check(snapshot);
    this.#receive.check(snapshot);
  }

  #checkTraffic(snapshot: RelaySnapshot): void {
    const found = this.#watch?.update(snapshot, this.#clock.monotonicNs()) ?? [];
    for (const text of found) this.#log.warn(text);
    const problem = this.#traffic.update(snapshot, this.#inForce.shredVersion);
    if (problem !== null) this.#log.warn(`relay: ${problem}`);
  }
}
