// Converts the configuration into relay options and tables. Pure.
//
// Called by src/app when the relay opens and by relay-service.ts on reload, which also reads here which
// keys need a restart.

import { isDeepStrictEqual } from "node:util";
import { formatEndpoint, parseAddress } from "../core/addresses/addresses.ts";
import type { RelayConfig } from "../core/configuration/configuration.ts";
import type { RelayOptions } from "./data-plane/relay-options.ts";
import { groupListenersOf } from "./multicast/group-plan.ts";

export function relayOptionsOf(relay: RelayConfig): RelayOptions {
  const { source, bufferBytes, gso, ttl, dscp } = relay.send;
  return {
    listen: relay.listen,
    multicast: groupListenersOf(relay.sources),
    workers: relay.workers,
    tiers: relay.tiers,
    authentication: relay.authentication,
    shredVersion: relay.shredVersion,
    receive: relay.receive,
    send: {
      bufferBytes,
      gso,
      ttl,
      dscp,
      ...(source !== undefined && {
        source: formatEndpoint({ bytes: parseAddress(source), port: 0 }),
      }),
    },
    transmit: relay.transmit === "auto" ? "automatic" : relay.transmit,
    ...(relay.xdpInterfaces && { xdpInterfaces: relay.xdpInterfaces }),
    ...(Array.isArray(relay.cpus) && { cpus: relay.cpus }),
    ...(relay.senderThreads !== "auto" && { senderThreads: relay.senderThreads }),
    failedChecksPerSecond: relay.failedChecksPerSecond,
    keepRetransmitterSignatures: relay.keepRetransmitterSignatures,
    deshred: relay.deshred,
    lockMemory: relay.lockMemory,
  };
}

/** Keys that a running relay applies as new tables. */
const liveKeys: readonly string[] = [
  "sources",
  "destinations",
  "discovery",
  "leaders",
  "allowPrivateDestinations",
] satisfies (keyof RelayConfig)[];

/** Changed keys that need a restart, as written in the file. */
export function restartKeys(running: RelayConfig, wanted: RelayConfig): string[] {
  const keys = new Set([...Object.keys(running), ...Object.keys(wanted)]);
  const before = new Map<string, unknown>(Object.entries(running));
  const after = new Map<string, unknown>(Object.entries(wanted));
  return [...keys]
    .filter((key) => !liveKeys.includes(key))
    .filter((key) => !isDeepStrictEqual(before.get(key), after.get(key)))
    .map((key) => `relay.${key}`);
}

/** `running` with the tables of `wanted`: the active configuration after a reload. */
export function withTablesOf(running: RelayConfig, wanted: RelayConfig): RelayConfig {
  const { leaders: _leaders, discovery: _discovery, ...runningSettings } = running;
  return {
    ...runningSettings,
    sources: wanted.sources,
    destinations: wanted.destinations,
    allowPrivateDestinations: wanted.allowPrivateDestinations,
    ...(wanted.leaders && { leaders: wanted.leaders }),
    ...(wanted.discovery && { discovery: wanted.discovery }),
  };
}
