// Destination lists: the destinations of the configuration and of accounts, merged into one table.
//
// Called by relay-service.ts after every change of either. It never rejects the accounts' list or the
// subscribers' leases: a destination that cannot be served is skipped and logged once per address.
// Otherwise the old table would stay active and serve accounts that have lost their tier.

import type { Endpoint } from "../core/addresses/addresses.ts";
import { EndpointCache, type KnownEndpoint } from "../core/addresses/endpoint-cache.ts";
import { quote } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Destination } from "./data-plane/tables.ts";

/** Maximum number of logged addresses; beyond it, an address may be logged again. */
const loggedMax = 4096;

interface DestinationListsDependencies {
  /** Narrowest first. */
  readonly tiers: readonly string[];
  /** Maximum number of destinations of a relay. */
  readonly max: number;
  readonly log: Logger;
}

interface JoinedDestinations {
  readonly table: readonly Destination[];
  /** The addresses of accounts in the table, as written by the accounts. */
  readonly served: ReadonlySet<string>;
  readonly omitted: readonly OmittedDestination[];
  /** Destinations of accounts above the limit. */
  readonly excess: number;
}

interface OmittedDestination {
  readonly destination: Destination;
  readonly why: string;
}

export class DestinationLists {
  readonly #tiers: readonly string[];
  readonly #max: number;
  readonly #log: Logger;
  readonly #endpoints: EndpointCache;
  readonly #said = new Set<string>();
  #loggedExcess = 0;
  #loggedDiscovered = 0;

  constructor({ tiers, max, log }: DestinationListsDependencies) {
    this.#tiers = tiers;
    this.#max = max;
    this.#log = log;
    this.#endpoints = new EndpointCache(2 * max);
  }

  /**
   * `configured` unchanged, then the discovered and leased ones that it does not contain, as many as the
   * relay can have. One of a tier that the running relay does not have is skipped and logged once.
   */
  withDiscovered(
    configured: readonly Destination[],
    discovered: readonly Destination[],
    reachesRelay: (endpoint: Endpoint) => boolean,
  ): readonly Destination[] {
    const known = new Set(configured.map(({ address }) => this.#endpoints.get(address).canonical));
    const wanted = discovered.filter((destination) => {
      const { address, tier } = destination;
      if (!this.#tiers.includes(tier)) {
        const why = `the running relay has no tier ${quote(tier)}; restart to apply relay.tiers`;
        this.#logSkipped("discovered or leased", destination, why);
        return false;
      }
      const endpoint = this.#endpoints.get(address);
      const isNew = !known.has(endpoint.canonical) && !reachesRelay(endpoint);
      if (isNew) known.add(endpoint.canonical);
      return isNew;
    });
    const fitting = wanted.slice(0, Math.max(0, this.#max - configured.length));
    const excess = wanted.length - fitting.length;
    if (excess > 0 && excess !== this.#loggedDiscovered) {
      this.#log.warn(
        `destinations: ${excess} discovered or leased destinations are not served; the limit is ${this.#max} destinations, ` +
          "including relay.destinations",
      );
    }
    this.#loggedDiscovered = excess;
    return [...configured, ...fitting];
  }

  /** `fixed` unchanged, then those of accounts that can be served. */
  join(
    fixed: readonly Destination[],
    ofAccounts: readonly Destination[],
    reachesRelay: (endpoint: Endpoint) => boolean,
  ): JoinedDestinations {
    const namesByEndpoint = new Map<string, string>();
    for (const { address } of fixed)
      namesByEndpoint.set(
        this.#endpoints.get(address).canonical,
        "relay.destinations, relay.discovery or a subscriber has it too",
      );
    const refusal = ({ address, tier }: Destination): string | undefined => {
      const endpoint = this.#endpointOf(address);
      if (!endpoint) return "expected an address and port";
      if (!this.#tiers.includes(tier)) return `relay.tiers has no tier ${quote(tier)}`;
      if (reachesRelay(endpoint)) return "it is a listener of the relay itself";
      const why = namesByEndpoint.get(endpoint.canonical);
      if (why === undefined)
        namesByEndpoint.set(endpoint.canonical, "another account has this destination");
      return why;
    };
    const omitted: OmittedDestination[] = [];
    const wanted = ofAccounts.filter((destination) => {
      const why = refusal(destination);
      if (why !== undefined) omitted.push({ destination, why });
      return why === undefined;
    });
    const served = this.#fitting(wanted, this.#max - fixed.length);
    return {
      table: [...fixed, ...served],
      served: new Set(served.map(({ address }) => address)),
      omitted,
      excess: wanted.length - served.length,
    };
  }

  /** Logs what was skipped and was not logged yet. */
  log({ omitted, excess }: JoinedDestinations): void {
    for (const { destination, why } of omitted) this.#logSkipped("account", destination, why);
    if (excess > 0 && excess !== this.#loggedExcess) {
      this.#log.warn(
        { excess },
        `destinations: ${excess} account destinations of the narrowest tiers are not served; the limit is ` +
          `${this.#max} destinations, including relay.destinations`,
      );
    }
    this.#loggedExcess = excess;
  }

  /** Logs each address of a kind once. */
  #logSkipped(kind: string, { address, name }: Destination, why: string): void {
    const key = `${kind} ${address}`;
    if (this.#said.has(key)) return;
    if (this.#said.size >= loggedMax) this.#said.clear();
    this.#said.add(key);
    this.#log.warn(
      { destination: name, address },
      `destinations: ${kind} destination ${quote(address)} is not served: ${why}`,
    );
  }

  #endpointOf(address: string): KnownEndpoint | undefined {
    try {
      return this.#endpoints.get(address);
    } catch {
      return undefined;
    }
  }

  /** At most `room`, wider tiers first. */
  #fitting(wanted: readonly Destination[], capacity: number): readonly Destination[] {
    if (wanted.length <= capacity) return wanted;
    const width = new Map(this.#tiers.map((tier, i) => [tier, i]));
    return wanted
      .toSorted((a, b) => (width.get(b.tier) ?? 0) - (width.get(a.tier) ?? 0))
      .slice(0, capacity);
  }
}
