// Defaults that depend on other keys: regions, the second port for WebSockets, thresholds, node name.
//
// deriveRegions completes a configuration that was read. effectiveConfig also fills in the values
// that the service derives at startup, for --print-config.

import { formatEndpoint, parseEndpoint } from "../addresses/addresses.ts";
import { nodeNameOf } from "./node-name.ts";
import type { Config } from "./schema.ts";
import { thresholdsOf } from "./schema-delivery.ts";

/** Ports that URLs omit, and the last port, have no port above. */
const portsWithoutNext: readonly number[] = [0, 443, 65_535];
const keepAliveSecondsOf = { node: 90, uws: 10 } as const;

/**
 * The port above the first address, where @solana/web3.js opens its WebSocket if the URL contains a
 * port. Empty for port 443, which URLs of HTTPS omit.
 */
export function addressAbove(listen: readonly string[]): string[] {
  const [first] = listen.map((text) => parseEndpoint(text, { allowPortZero: true }));
  if (!first || portsWithoutNext.includes(first.port)) return [];
  return [formatEndpoint({ ...first, port: first.port + 1 })];
}

/** Regions that the file itself names. */
interface WrittenRegions {
  readonly hasDeliveryRegions: boolean;
}

/**
 * Fills in `region`, `delivery.regions` and `delivery.region` from each other. Returns a warning if
 * the file does not name the region of this machine.
 */
export function deriveRegions(config: Config, { hasDeliveryRegions }: WrittenRegions): string[] {
  const { delivery, regions } = config;
  if (!hasDeliveryRegions && regions.length > 0) delivery.regions = regions.map(({ name }) => name);
  const own = delivery.region;
  if (config.region === undefined && own !== undefined && regions.some(({ name }) => name === own))
    config.region = own;
  if (delivery.region !== undefined) return [];
  const { region } = config;
  const [first = ""] = delivery.regions;
  const isKnown = region !== undefined && delivery.regions.includes(region);
  delivery.region = isKnown ? region : first;
  // Without a gateway, no account has a destination.
  if (isKnown || delivery.regions.length < 2 || !config.http) return [];
  return [
    `configuration: delivery.region is missing, so this machine serves the destinations in ${first}, ` +
      `the first of delivery.regions (${delivery.regions.join(", ")}); set delivery.region to the region of this machine`,
  ];
}

/** The values that apply, also for keys without a fixed default. `config` stays unchanged. */
export function effectiveConfig(config: Config, hostName: string): Config {
  const { http, tiers, data, relay, regions, region } = config;
  const thresholds = thresholdsOf(relay.tiers, tiers.thresholdLamports);
  const ownRegion = region ?? regions[0]?.name;
  return {
    ...config,
    ...(ownRegion !== undefined && { region: ownRegion }),
    data: {
      ...data,
      node: nodeNameOf(data.node, hostName),
      durableSubmissions: data.durableSubmissions ?? data.postgres !== undefined,
    },
    tiers: { thresholdLamports: Object.fromEntries(thresholds) },
    ...(http && {
      http: {
        ...http,
        webSocketListen: http.webSocketListen ?? addressAbove(http.listen),
        keepAliveSeconds: http.keepAliveSeconds ?? keepAliveSecondsOf[http.engine],
      },
    }),
  };
}

/** Connections that the listeners of HTTP accept together. */
export function connectionsLimitOf({ connectionsMax, split }: NonNullable<Config["http"]>): number {
  return connectionsMax * (1 + split.length);
}
