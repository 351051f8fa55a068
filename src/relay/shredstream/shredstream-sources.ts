// Sources of kind "shredstream": one subscription each, replaced when the configuration changes.
//
// Created by relay-service.ts, which publishes the table of sources with the same ports.

import { familyOf, parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import type { RelayConfig } from "../../core/configuration/configuration.ts";
import type { Logger } from "../../core/log.ts";
import type { VerdictName } from "../data-plane/names.ts";
import type { RelaySnapshot } from "../data-plane/snapshot.ts";
import type { SubscriberKey } from "./block-engine.ts";
import { Subscription, type SubscriptionSettings } from "./subscription.ts";
import type { SubscriptionStatus } from "./subscription-status.ts";

type SourceConfig = RelayConfig["sources"][number];

/** Keys, randomness and trust of the program around the relay. */
export interface ShredstreamEnvironment {
  /** Throws ShredwayError. */
  readonly readKey: (path: string) => SubscriberKey;
  /** 0 to 1. */
  readonly random: () => number;
  /** Certificates in PEM form that replace the roots of Node.js. */
  readonly certificateAuthorities?: string;
}

interface ShredstreamSourcesDependencies extends ShredstreamEnvironment {
  readonly clock: Clock;
  readonly log: Logger;
  /** Listening addresses of the relay with their real ports. */
  readonly addresses: readonly string[];
  /** Throws if the relay is closed. */
  readonly snapshot: () => Pick<RelaySnapshot, "sources">;
}

/** The table of sources, with the real port of each subscription. */
export function tableOf(
  sources: readonly SourceConfig[],
  addresses: readonly string[],
): SourceConfig[] {
  return sources.map((source) =>
    source.shredstream && source.port === undefined
      ? { ...source, port: firstPortOf(addresses) }
      : source,
  );
}

function firstPortOf(addresses: readonly string[]): number {
  return parseEndpoint(addresses[0] ?? "", { allowPortZero: true }).port;
}

/** The address family of a port of the relay (absent: of all ports); undefined: both. */
export function subscriptionFamily(
  listen: readonly string[],
  port: number | undefined,
): 4 | 6 | undefined {
  const families = listen
    .map((text) => parseEndpoint(text, { allowPortZero: true }))
    .filter((endpoint) => port === undefined || endpoint.port === port)
    .map(({ bytes }) => familyOf(bytes));
  const [family, ...others] = new Set(families);
  return others.length > 0 ? undefined : family === "ipv6" ? 6 : 4;
}

/** Verdicts of authentic shreds; without a leader schedule, nothing can be authenticated. */
const countedVerdicts = [
  "first",
  "new_tier",
  "equivocation",
  "first_forwardable",
  "own_use",
  "duplicate",
  "equivocation_excess",
  "unknown_leader",
] as const satisfies VerdictName[];

export class ShredstreamSources {
  readonly #dependencies: ShredstreamSourcesDependencies;
  #subscriptions: readonly Subscription[] = [];
  #isStarted = false;

  constructor(dependencies: ShredstreamSourcesDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Reads the keys of the sources. The returned function puts them into force: it closes the
   * subscriptions that changed and opens the new ones. Throws ShredwayError if a key is unusable.
   */
  prepare(sources: readonly SourceConfig[]): () => void {
    const wanted = sources.flatMap((source) => this.#settingsOf(source));
    return () => this.#replace(wanted);
  }

  /** Starts the subscriptions, and from now on new ones at once. */
  start(): void {
    this.#isStarted = true;
    for (const subscription of this.#subscriptions) subscription.start();
  }

  statuses(): SubscriptionStatus[] {
    return this.#subscriptions.map(({ status }) => status);
  }

  close(): void {
    this.#isStarted = false;
    for (const subscription of this.#subscriptions) subscription.close();
    this.#subscriptions = [];
  }

  #settingsOf({ name, port, shredstream }: SourceConfig): SubscriptionSettings[] {
    if (!shredstream) return [];
    const { addresses, readKey } = this.#dependencies;
    const ownPort = port ?? firstPortOf(addresses);
    return [
      {
        name,
        url: new URL(shredstream.url).origin,
        authUrl: new URL(shredstream.authUrl ?? shredstream.url).origin,
        key: readKey(shredstream.keyFile),
        regions: shredstream.regions,
        port: ownPort,
        publicAddress: shredstream.publicAddress,
        family: subscriptionFamily(addresses, ownPort),
      },
    ];
  }

  #replace(wanted: readonly SubscriptionSettings[]): void {
    const before = new Map(this.#subscriptions.map((one) => [textOf(one.settings), one]));
    const next = wanted.map((settings) => {
      const unchanged = before.get(textOf(settings));
      before.delete(textOf(settings));
      return unchanged ?? this.#open(settings);
    });
    for (const removed of before.values()) removed.close();
    const known = new Set(this.#subscriptions);
    this.#subscriptions = next;
    if (!this.#isStarted) return;
    for (const one of next) if (!known.has(one)) one.start();
  }

  #open(settings: SubscriptionSettings): Subscription {
    const { clock, log, random, certificateAuthorities } = this.#dependencies;
    const countPackets = () => this.#countPackets(settings.name);
    return new Subscription(settings, { clock, log, random, countPackets, certificateAuthorities });
  }

  /** Anyone can send to the port, so noise and trace packets do not count. */
  #countPackets(name: string): bigint | undefined {
    let snapshot: Pick<RelaySnapshot, "sources">;
    try {
      snapshot = this.#dependencies.snapshot();
    } catch {
      return undefined;
    }
    const verdicts = snapshot.sources.find((source) => source.name === name)?.verdicts;
    if (!verdicts) return undefined;
    return countedVerdicts.reduce((total, verdict) => total + verdicts[verdict], 0n);
  }
}

/** Equal for equal settings; the key is compared by its public part. */
function textOf({ key, ...settings }: SubscriptionSettings): string {
  return JSON.stringify({ ...settings, key: key.address });
}
