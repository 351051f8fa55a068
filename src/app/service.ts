// The service that a configuration describes: the relay and, if configured, the gateway.
//
// Created by open-service.ts, run by the command `start` and by the sandbox. A reload reads the file once
// for all parts. If one of them rejects it, nothing changes: the gateway prepares its change before the relay, and
// the relay returns to its previous tables if the subscribers of the block engine are rejected.

import { type Config, configWarnings } from "../core/configuration/configuration.ts";
import { openFilesWarnings } from "../core/configuration/connection-limits.ts";
import { messageOf } from "../core/errors.ts";
import { openFilesLimit } from "../core/files.ts";
import type { Logger } from "../core/log.ts";
import type { Check } from "../platform/metrics/pages.ts";
import type { RelayService } from "../relay/relay-service.ts";
import type { SubscriberService } from "../relay/shredstream/subscriber-service.ts";
import type { StreamService } from "../relay/streams/stream-service.ts";
import type { AccountSubscribers } from "./account-subscribers.ts";
import type { GatewayService, PreparedReload } from "./gateway-service.ts";
import type { Operations } from "./operations.ts";
import type { WarmUp } from "./warm-up.ts";

interface Closable {
  close(): void;
}

interface ServiceDependencies {
  readonly relay: RelayService;
  readonly gateway?: GatewayService;
  /** Absent: the section `shredstream` is not configured. */
  readonly subscribers?: SubscriberService;
  /** Absent: the section `streams` is not configured. */
  readonly streams?: StreamService;
  /** Absent: no gateway, or the relay decodes no transactions. */
  readonly writeLocks?: Closable;
  /** Absent: accounts cannot be subscribers. */
  readonly accountSubscribers?: AccountSubscribers;
  /** Absent: no metrics. */
  readonly operations?: Operations;
  /** Absent: the service was not made from a file. */
  readonly config?: Config;
  /** Reads the configuration file again. Throws ShredwayError. */
  readonly readConfig: () => Config;
  /** Adds the configuration's key to an error of `start`; default: none. */
  readonly explain?: (error: unknown) => unknown;
  /** Its abort ends `start` at once: it rejects. Default: never. */
  readonly interrupted?: AbortSignal | undefined;
  /** Called when the gateway listens; absent: its code is compiled by the first calls. */
  readonly startWarmUp?: () => WarmUp;
  readonly log: Logger;
}

/** Settles when the signal is aborted. */
function abortOf(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve();
    else signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}

export class Service {
  readonly relay: RelayService;
  readonly gateway: GatewayService | undefined;
  readonly operations: Operations | undefined;
  readonly subscribers: SubscriberService | undefined;
  readonly streams: StreamService | undefined;
  readonly #writeLocks: Closable | undefined;
  readonly #accountSubscribers: AccountSubscribers | undefined;
  /** Apply until a restart. */
  readonly #startWarnings: readonly string[];
  /** The file that the tables of the relay are from. */
  #config: Config | undefined;
  readonly #readConfig: () => Config;
  readonly #explain: (error: unknown) => unknown;
  readonly #interrupted: AbortSignal | undefined;
  readonly #startWarmUp: (() => WarmUp) | undefined;
  readonly #log: Logger;
  #warmUp: WarmUp | undefined;

  constructor({
    relay,
    gateway,
    subscribers,
    streams,
    writeLocks,
    accountSubscribers,
    operations,
    config,
    readConfig,
    explain,
    interrupted,
    startWarmUp,
    log,
  }: ServiceDependencies) {
    this.relay = relay;
    this.gateway = gateway;
    this.subscribers = subscribers;
    this.streams = streams;
    this.#writeLocks = writeLocks;
    this.#accountSubscribers = accountSubscribers;
    this.operations = operations;
    this.#config = config;
    this.#startWarnings = config
      ? [...openFilesWarnings(config, openFilesLimit()), ...configWarnings(config)]
      : [];
    this.#readConfig = readConfig;
    this.#explain = explain ?? ((error) => error);
    this.#interrupted = interrupted;
    this.#startWarmUp = startWarmUp;
    this.#log = log;
  }

  /**
   * Settles when HTTP is open and the leader schedule is published, or known to be unavailable. Call `close`
   * after a rejection.
   */
  async start(): Promise<void> {
    const steps = [
      () => this.operations?.start(),
      // The wait for a node; the relay needs no other end than `close`.
      () => Promise.race([this.relay.start(), abortOf(this.#interrupted)]),
      () => this.subscribers?.start(),
      () => this.gateway?.start(),
      () => this.streams?.start(),
      () => this.operations?.started(),
    ];
    try {
      for (const step of steps) {
        await step();
        this.#interrupted?.throwIfAborted();
      }
      if (this.gateway) this.#warmUp = this.#startWarmUp?.();
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /** Warnings for the operator at startup, the most severe first. */
  warnings(): string[] {
    return [...this.#partWarnings(), ...this.#startWarnings];
  }

  #partWarnings(): string[] {
    return [...this.relay.warnings(), ...(this.gateway?.warnings() ?? [])];
  }

  /** Checks that keep this node from being ready for traffic: `/health/ready` returns 503. */
  degraded(): readonly Check[] {
    return (this.operations?.checks() ?? []).filter(({ critical, ok }) => critical && !ok);
  }

  /** Applies all changes of the configuration file that need no restart. Never throws. */
  reload(): boolean {
    const before = new Set(this.#partWarnings());
    try {
      const wanted = this.#readConfig();
      for (const warning of configWarnings(wanted)) this.#log.warn(warning);
      const restart = this.#apply(wanted);
      for (const warning of this.#partWarnings()) if (!before.has(warning)) this.#log.warn(warning);
      if (restart.length > 0)
        this.#log.warn({ keys: restart }, `reload: restart needed for: ${restart.join(", ")}`);
      return true;
    } catch (error) {
      this.#log.error(
        `reload failed, the previous configuration stays in force: ${messageOf(error)}`,
      );
      return false;
    }
  }

  /** Returns the keys that need a restart. Throws ShredwayError; then nothing of the reload remains. */
  #apply(wanted: Config): string[] {
    const gatewayReload = this.gateway?.prepare(wanted);
    const restart = this.#applyTables(wanted, gatewayReload);
    // The rest cannot fail.
    if (this.streams) restart.push(...this.streams.apply(wanted.streams));
    else if (wanted.streams) restart.push("streams");
    if (gatewayReload) restart.push(...gatewayReload.apply());
    else if (wanted.http) restart.push("http");
    restart.push(...(this.operations?.apply(wanted) ?? []));
    return restart;
  }

  /** The tables of the relay and its subscribers: both or neither. */
  #applyTables(wanted: Config, gatewayReload: PreparedReload | undefined): string[] {
    try {
      const restart = [...this.relay.apply(wanted)];
      restart.push(...this.#applySubscribers(wanted));
      this.#config = wanted;
      return restart;
    } catch (error) {
      gatewayReload?.abandon();
      throw error;
    }
  }

  #applySubscribers({ shredstream }: Config): readonly string[] {
    if (!this.subscribers) return shredstream ? ["shredstream"] : [];
    try {
      return this.subscribers.apply(shredstream);
    } catch (error) {
      this.#restoreRelay();
      throw error;
    }
  }

  #restoreRelay(): void {
    if (!this.#config) return;
    try {
      this.relay.apply(this.#config);
    } catch (error) {
      this.#log.error(
        `reload: the relay keeps the new sources and destinations; restart the service: ${messageOf(error)}`,
      );
    }
  }

  /** Answers requests in progress and accepts no new ones. Takes at most `graceMs`. */
  async drain(graceMs: number): Promise<void> {
    this.operations?.draining();
    await this.gateway?.drain(graceMs);
  }

  /** Settles when all data is durable and everything is closed. Idempotent. */
  async close(): Promise<void> {
    await this.#warmUp?.close();
    this.#accountSubscribers?.close();
    this.subscribers?.close();
    this.#writeLocks?.close();
    this.streams?.close();
    await this.gateway?.close();
    this.operations?.close();
    this.relay.close();
  }
}
