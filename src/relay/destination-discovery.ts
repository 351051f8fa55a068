// Discovered destinations: addresses from a URL of the operator, polled regularly.
//
// Created by relay-service.ts, which merges them into the table of destinations. An answer is used as a
// whole or not at all: if one address is invalid, the last good answer stays in force.

import { destinationRefusal } from "../core/addresses/address-classes.ts";
import {
  type Endpoint,
  formatEndpoint,
  parseAddress,
  parseEndpoint,
} from "../core/addresses/addresses.ts";
import type { Clock, Timer } from "../core/clock.ts";
import type { RelayConfig } from "../core/configuration/configuration.ts";
import { counted } from "../core/counted.ts";
import { messageOf, quote, ShredwayError } from "../core/errors.ts";
import { FailureStreak } from "../core/failure-streak.ts";
import type { Logger } from "../core/log.ts";
import type { Destination } from "./data-plane/tables.ts";

type DiscoveryConfig = NonNullable<RelayConfig["discovery"]>;

interface DestinationDiscoveryDependencies {
  /** Rejects if there is no usable answer. */
  readonly fetchList: (url: string) => Promise<readonly string[]>;
  /** Called after each change of the destinations. May throw; then it is tried again. */
  readonly publish: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Facts for metrics and readiness. */
interface DiscoveryStatus {
  readonly host: string;
  readonly destinations: number;
  readonly failures: number;
  /** Wall clock of the last good answer; null: none yet. */
  readonly lastAnswerNs: bigint | null;
  /** Why the last request failed; null: it succeeded, or there was none yet. */
  readonly problem: string | null;
}

/** A checked configuration that is not in force yet. */
interface PreparedDiscovery {
  readonly destinations: readonly Destination[];
  readonly activate: () => void;
}

const logEvery = 20;

/** The rules of one answer. Throws ShredwayError "address_invalid". */
function discoveredDestinations(
  texts: readonly string[],
  { tier, port }: Pick<DiscoveryConfig, "tier" | "port">,
  allowPrivate: boolean,
): Destination[] {
  const addresses = texts.map((text) => {
    const endpoint = endpointOf(text, port);
    const refusal = destinationRefusal(endpoint.bytes, allowPrivate);
    if (refusal === undefined) return formatEndpoint(endpoint);
    throw new ShredwayError(
      "address_invalid",
      `${refusal}; expected public addresses, or relay.allowPrivateDestinations: true`,
    );
  });
  return [...new Set(addresses)].map((address) => ({ address, tier }));
}

/** Text with a port: after a bracket, or after its only colon. */
const withPort = /^\[|^[^:]*:[^:]*$/;

/** "ip:port", or "ip" with the configured port. */
function endpointOf(text: string, port: number | undefined): Pick<Endpoint, "bytes" | "port"> {
  if (withPort.test(text)) return parseEndpoint(text);
  const bytes = parseAddress(text);
  if (port !== undefined) return { bytes, port };
  throw new ShredwayError(
    "address_invalid",
    `${quote(text)} has no port; expected ip:port, or relay.discovery.port`,
  );
}

export class DestinationDiscovery {
  readonly #dependencies: DestinationDiscoveryDependencies;
  readonly #failures = new FailureStreak(logEvery);
  #config: DiscoveryConfig | undefined;
  #allowPrivate = false;
  #timer: Timer | undefined;
  #isStarted = false;
  /** The present run; results of an earlier run are ignored. */
  #run: object | undefined;
  /** The last good answer as it came, so that a reload can apply another tier or port. */
  #answer: readonly string[] = [];
  /** The destinations of the last good answer. */
  #destinations: readonly Destination[] = [];
  #failed = 0;
  #lastAnswerNs: bigint | null = null;
  #problem: string | null = null;

  constructor(dependencies: DestinationDiscoveryDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Checks the last answer against a configuration with the same URL; another URL begins without
   * destinations. The returned function puts the configuration into force. Throws ShredwayError if the
   * answer does not fit.
   */
  prepare({ discovery, allowPrivateDestinations }: RelayConfig): PreparedDiscovery {
    const answer = discovery && discovery.url === this.#config?.url ? this.#answer : [];
    const destinations = discovery
      ? discoveredDestinations(answer, discovery, allowPrivateDestinations)
      : [];
    const activate = () => {
      const isSame = JSON.stringify(this.#config) === JSON.stringify(discovery);
      if (discovery?.url !== this.#config?.url) this.#lastAnswerNs = null;
      this.#answer = answer;
      this.#destinations = destinations;
      this.#config = discovery;
      this.#allowPrivate = allowPrivateDestinations;
      if (isSame) return;
      this.#stop();
      this.#problem = null;
      if (this.#isStarted) void this.#begin();
    };
    return { destinations, activate };
  }

  /** The destinations of the last good answer. */
  destinations(): readonly Destination[] {
    return this.#destinations;
  }

  /** null: no URL is configured. */
  status(): DiscoveryStatus | null {
    if (!this.#config) return null;
    return {
      host: new URL(this.#config.url).host,
      destinations: this.#destinations.length,
      failures: this.#failed,
      lastAnswerNs: this.#lastAnswerNs,
      problem: this.#problem,
    };
  }

  /** Settles after the first request, successful or not. */
  async start(): Promise<void> {
    this.#isStarted = true;
    await this.#begin();
  }

  close(): void {
    this.#isStarted = false;
    this.#stop();
  }

  async #begin(): Promise<void> {
    if (!this.#config) return;
    this.#run = {};
    await this.#poll(this.#run, this.#config);
  }

  #stop(): void {
    this.#run = undefined;
    this.#timer?.cancel();
  }

  async #poll(run: object, config: DiscoveryConfig): Promise<void> {
    const { fetchList, clock, log } = this.#dependencies;
    try {
      const texts = await fetchList(config.url);
      if (this.#run !== run) return;
      this.#take(texts, config);
      if (this.#failures.isFailing) log.info("discovery: destinations are current again");
      this.#failures.end();
      this.#problem = null;
    } catch (error) {
      if (this.#run !== run) return;
      this.#failed++;
      this.#problem = messageOf(error);
      if (this.#failures.add(this.#problem)) {
        log.warn(
          `discovery: ${this.#problem}; the last good answer (${counted(this.#destinations.length, "destination")}) stays in force`,
        );
      }
    }
    this.#timer = clock.after(config.intervalSeconds * 1000, () => void this.#poll(run, config));
  }

  /** Throws ShredwayError; then the previous answer stays in force. */
  #take(texts: readonly string[], config: DiscoveryConfig): void {
    const { clock, log, publish } = this.#dependencies;
    const before = { answer: this.#answer, destinations: this.#destinations };
    const destinations = discoveredDestinations(texts, config, this.#allowPrivate);
    const addressesOf = (list: readonly Destination[]) => new Set(list.map((one) => one.address));
    const [old, now] = [addressesOf(before.destinations), addressesOf(destinations)];
    this.#lastAnswerNs = clock.nowNs();
    const added = [...now].filter((address) => !old.has(address)).length;
    const removed = [...old].filter((address) => !now.has(address)).length;
    if (added === 0 && removed === 0) return;
    [this.#answer, this.#destinations] = [texts, destinations];
    try {
      publish();
    } catch (error) {
      [this.#answer, this.#destinations] = [before.answer, before.destinations];
      throw error;
    }
    log.info(`discovery: ${counted(now.size, "destination")}: ${added} added, ${removed} removed`);
  }
}
