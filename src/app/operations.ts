// Operations: metrics and readiness of the whole service, on the gateway's listeners and on its own.
//
// Created by open-service.ts before the gateway, which serves its pages too. It only reads snapshots. Its
// own listeners open first and close last, so that monitoring sees the service start and drain.

import { type AddressRange, isInRange, parseAddressRange } from "../core/addresses/addresses.ts";
import type { Clock, Timer } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import { unworkableParts } from "../core/configuration/unworkable-parts.ts";
import type { Logger } from "../core/log.ts";
import { packageVersion } from "../core/version.ts";
import { clientAddress } from "../gateway/http/client-address.ts";
import { HttpServer } from "../gateway/http/server.ts";
import type { HttpHead } from "../gateway/http/types.ts";
import type { Pages } from "../gateway/methods/dependencies.ts";
import { DestinationRows } from "../platform/metrics/destination-rows.ts";
import type { Format } from "../platform/metrics/exposition.ts";
import { type ServiceFacts, writeMetrics } from "../platform/metrics/list.ts";
import { type Check, isReady, OperatorPages } from "../platform/metrics/pages.ts";
import { ProcessMeter } from "../platform/metrics/process-meter.ts";
import { describeNative } from "../relay/data-plane/native.ts";
import type { SlotSnapshot } from "../relay/data-plane/snapshot.ts";
import { coveredSlots } from "../relay/leaders/schedule.ts";
import type { RelayService } from "../relay/relay-service.ts";
import type { SubscriberService } from "../relay/shredstream/subscriber-service.ts";
import type { StreamService } from "../relay/streams/stream-service.ts";
import type { GatewayService } from "./gateway-service.ts";
import { checksOf, type ReadinessFacts } from "./readiness.ts";

/** Interval of the database check. Without traffic, only this check detects an outage and its end. */
const pingMs = 5000;
const connectionsMax = 256;

interface OperationsDependencies {
  readonly config: Config;
  readonly relay: RelayService;
  readonly log: Logger;
  readonly clock: Clock;
}

export class Operations {
  /** Pages on the gateway's listeners. Callers without permission receive 404. */
  readonly pages: Pages;
  readonly #dependencies: OperationsDependencies;
  readonly #ownPages: OperatorPages;
  readonly #meter: ProcessMeter;
  readonly #rows = new DestinationRows();
  readonly #version = packageVersion();
  readonly #pinging: Timer;
  #isPinging = false;
  /** Its listeners stay those of the start. */
  readonly #running: Config["operations"];
  #config: Config;
  #allowed: readonly AddressRange[];
  #trustedProxies: readonly AddressRange[];
  #gateway: GatewayService | undefined;
  #subscribers: SubscriberService | undefined;
  #streams: StreamService | undefined;
  #server: HttpServer | undefined;
  #phase: ReadinessFacts["phase"] = "starting";

  constructor(dependencies: OperationsDependencies) {
    this.#dependencies = dependencies;
    this.#config = dependencies.config;
    this.#running = dependencies.config.operations;
    this.#allowed = dependencies.config.operations.allow.map(parseAddressRange);
    this.#trustedProxies = proxiesOf(dependencies.config);
    const shared = {
      metrics: (format: Format) => this.metrics(format),
      checks: () => this.checks(),
    };
    this.pages = new OperatorPages({ ...shared, mayRead: (head) => this.#mayRead(head) });
    this.#ownPages = new OperatorPages({ ...shared, mayRead: () => true });
    this.#meter = new ProcessMeter(dependencies.clock);
    this.#pinging = dependencies.clock.every(pingMs, () => void this.#ping());
  }

  /** Adds the gateway's metrics. */
  watch(gateway: GatewayService): void {
    this.#gateway = gateway;
  }

  /** Adds the metrics and the check of the block engine for subscribers. */
  watchSubscribers(subscribers: SubscriberService): void {
    this.#subscribers = subscribers;
  }

  /** Adds the metrics of decoded streams. */
  watchStreams(streams: StreamService): void {
    this.#streams = streams;
  }

  /** Opens its own listeners. Throws ShredwayError "http_open". */
  async start(): Promise<void> {
    const { listen } = this.#config.operations;
    if (!listen) return;
    this.#server = await HttpServer.open(
      {
        listen,
        bodyBytesMax: () => 0,
        connectionsMax,
        handle: (request) => this.#ownPages.handle(request),
      },
      this.#dependencies.log,
    );
  }

  /** Call this when everything has started. It checks the database immediately. */
  async started(): Promise<void> {
    await this.#ping();
    this.#phase = "running";
  }

  draining(): void {
    this.#phase = "draining";
  }

  /** Addresses of its own listeners. */
  get addresses(): readonly string[] {
    return this.#server?.addresses ?? [];
  }

  /** Applies the changes that need no restart; returns the configuration keys that need one. */
  apply(wanted: Config): readonly string[] {
    this.#allowed = wanted.operations.allow.map(parseAddressRange);
    this.#trustedProxies = proxiesOf(wanted);
    const { listen = [] } = this.#running;
    const isSame = JSON.stringify(listen) === JSON.stringify(wanted.operations.listen ?? []);
    this.#config = wanted;
    return isSame ? [] : ["operations.listen"];
  }

  checks(): readonly Check[] {
    const { config, relay, clock } = this.#dependencies;
    return checksOf({
      phase: this.#phase,
      unworkableParts: unworkableParts({ ...this.#config, relay: relay.config, quic: config.quic }),
      lastShredNs: lastShredNs(relay),
      trafficProblem: relay.trafficProblem,
      subscriptions: relay.shredstream.statuses(),
      subscribers: this.#subscribers?.status() ?? null,
      discovery: relay.discovery.status(),
      ...((relay.groups.length > 0 || relay.groupProblem !== null) && {
        groups: { count: relay.groups.length, problem: relay.groupProblem },
      }),
      isAuthenticated: relay.config.authentication === "leader-schedule",
      schedule: relay.schedule,
      slot: relay.slots.slotClock.slotAt(clock.nowNs()),
      nowNs: clock.nowNs(),
      gateway: this.#gateway?.readiness() ?? null,
    });
  }

  metrics(format: Format): string {
    return writeMetrics(this.#facts(), format);
  }

  close(): void {
    this.#pinging.cancel();
    this.#meter.close();
    this.#server?.close();
  }

  #facts(): ServiceFacts {
    const { relay, clock } = this.#dependencies;
    const checks = this.checks();
    const snapshot = relay.snapshot();
    const { slotClock } = relay.slots;
    const { destinations } = snapshot;
    const subscribers = this.#subscribers?.status() ?? null;
    const { destinationSeries } = this.#config.operations;
    return {
      build: {
        version: this.#version,
        nodeVersion: process.version,
        ed25519: describeNative().ed25519,
      },
      process: this.#meter.facts(),
      checks: { isReady: isReady(checks), checks },
      relay: {
        snapshot,
        discovery: relay.discovery.status(),
        destinations: this.#rows.rows(destinations, relay.fixedAddresses, destinationSeries),
        tiers: relay.relay.tiers,
        isAuthenticated: relay.config.authentication === "leader-schedule",
        isCloning: relay.relay.transmit.mode === "clone",
        groups: relay.groups,
      },
      shredstream: { statuses: relay.shredstream.statuses(), delays: relay.traces.delays() },
      subscribers: subscribers && { status: subscribers, tiers: relay.relay.tiers },
      streams: this.#streams?.status() ?? null,
      slots: {
        now: slotClock.now(clock.nowNs()),
        skipShare: slotClock.skipShare(),
        schedule: relay.schedule ? coveredSlots(relay.schedule) : null,
      },
      gateway: this.#gateway?.facts() ?? null,
    };
  }

  /** Ignores the forwarded address of a loopback peer that is not a trusted proxy. */
  #mayRead(head: HttpHead): boolean {
    const { address, isCertain } = clientAddress(head, this.#trustedProxies);
    return isCertain && this.#allowed.some((range) => isInRange(address, range));
  }

  /** Never rejects: the store counts the result. */
  async #ping(): Promise<void> {
    if (this.#isPinging) return;
    this.#isPinging = true;
    await this.#gateway?.pingStore().catch(() => {});
    this.#isPinging = false;
  }
}

function proxiesOf({ http }: Config): readonly AddressRange[] {
  return (http?.trustedProxies ?? []).map(parseAddressRange);
}

function lastShredNs(relay: RelayService): ReadinessFacts["lastShredNs"] {
  let slots: readonly SlotSnapshot[];
  try {
    slots = relay.relay.slots();
  } catch {
    return "unanswered";
  }
  let newest: bigint | null = null;
  for (const { lastSeenNs } of slots) {
    if (newest === null || lastSeenNs > newest) newest = lastSeenNs;
  }
  return newest;
}
