// Settings of the gateway that are derived from the configuration: regions, tip addresses, policy.
// Pure.
//
// Called by compose-gateway.ts at startup and by gateway-service.ts on reload. The reload also uses
// it to find the changed keys that need a restart.

import { parseAddressRange } from "../core/addresses/addresses.ts";
import type { Config } from "../core/configuration/configuration.ts";
import { sellsShreds, shredTipAddressesOf } from "../core/configuration/shred-tips.ts";
import { parsePubkey, pubkeyBytes } from "../core/primitives.ts";
import type { ApiKey } from "../gateway/accounts/types.ts";
import type { GatewaySettings, Region } from "../gateway/methods/dependencies.ts";
import type { PlanPolicy } from "../gateway/submission/plan.ts";
import type { Tracker } from "../gateway/tracker/types.ts";
import { withTablesOf } from "../relay/relay-tables.ts";
import { readMethodsIn } from "./read-method-list.ts";

/** Whether a shred-tip address may be published. */
type IsOffered = (shredAddress: string) => boolean;

function regionOf(config: Config, one: Config["regions"][number]): Region {
  const own = (addresses: readonly string[], shared: readonly string[]) =>
    addresses.length > 0 ? addresses : shared;
  return {
    name: one.name,
    url: one.url ?? null,
    tipAddresses: own(one.tipAddresses, config.tips.addresses),
    shredTipAddresses: own(one.shredTipAddresses, config.tips.shredAddresses),
  };
}

/** All regions; the region of this node comes first. */
function regionsOf(config: Config): readonly [Region, ...Region[]] {
  const { tips, region, regions } = config;
  const all = regions.map((one) => regionOf(config, one));
  const own = all.find(({ name }) => name === region) ?? all[0];
  if (own) return [own, ...all.filter((other) => other !== own)];
  const { addresses: tipAddresses, shredAddresses: shredTipAddresses } = tips;
  return [{ name: "default", url: null, tipAddresses, shredTipAddresses }];
}

/** Minimum tips of single methods. */
function minimumTipsOf({ tips }: Config): GatewaySettings["minimumTipLamportsByMethod"] {
  const minimums = Object.entries(tips.minimumLamportsByMethod);
  return Object.fromEntries(minimums.map(([method, lamports]) => [method, BigInt(lamports)]));
}

function lowestMinimumOf({ tips }: Config): bigint {
  const ofMethods = Object.values(tips.minimumLamportsByMethod);
  return BigInt(Math.min(tips.minimumLamports, ...ofMethods));
}

/**
 * `isOffered`: default: every shred-tip address of the configuration is published. Throws ShredwayError
 * "config_invalid" for invalid `gateway.readMethods`.
 */
export function settingsOf(config: Config, isOffered: IsOffered = () => true): GatewaySettings {
  const [first, ...others] = regionsOf(config);
  const offeredBy = (region: Region): Region => ({
    ...region,
    shredTipAddresses: region.shredTipAddresses.filter(isOffered),
  });
  return {
    regions: [offeredBy(first), ...others.map(offeredBy)],
    withholdsShredTips: ![...shredTipAddressesOf(config)].every(isOffered),
    minimumTipLamports: BigInt(config.tips.minimumLamports),
    minimumTipLamportsByMethod: minimumTipsOf(config),
    partnerUnitLamports: BigInt(config.gateway.partnerUnitLamports),
    trustedProxies: (config.http?.trustedProxies ?? []).map(parseAddressRange),
    readMethods: readMethodsIn(config.gateway.readMethods),
  };
}

/** The limit on calls with the key. */
export function rateLimitOf(
  { gateway }: Pick<Config, "gateway">,
  { requestsPerSecond, burst }: Pick<ApiKey, "requestsPerSecond" | "burst">,
): { readonly requestsPerSecond: number; readonly burst: number } {
  return {
    requestsPerSecond: requestsPerSecond ?? gateway.requestsPerSecond,
    burst: burst ?? gateway.burst,
  };
}

/** Distinct addresses of 32 bytes. */
export function bytesOf(addresses: Iterable<string>): Uint8Array[] {
  return [...new Set(addresses)].map((text) => pubkeyBytes(parsePubkey(text)));
}

/** A tip to any region's address counts in every region. */
export function tipAddressesOf(config: Config): Uint8Array[] {
  const all = regionsOf(config).flatMap(({ tipAddresses }) => tipAddresses);
  return bytesOf([...all, ...config.tips.addresses]);
}

/** The tracker's members change at runtime, so they are read on each use. */
export function policyOf(config: Config, tracker: Tracker): PlanPolicy {
  return {
    denyLeaders: new Set(config.gateway.denyLeaders),
    // Admission has checked the minimum of the method; the lowest one applies to every method here.
    minimumTipLamports: lowestMinimumOf(config),
    tipAddresses: regionsOf(config)[0].tipAddresses,
    partnerUnitLamports: BigInt(config.gateway.partnerUnitLamports),
    get partners() {
      return tracker.memberSet();
    },
    nextPartnerSlot: (slot) => tracker.next(slot)?.leaderSlot ?? null,
  };
}

function differs(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) !== JSON.stringify(b);
}

function changedKeys(section: string, running: object, wanted: object): string[] {
  const before = new Map(Object.entries(running));
  const after = new Map(Object.entries(wanted));
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((key) => differs(before.get(key), after.get(key)))
    .map((key) => `${section}.${key}`);
}

/** Keys that take effect only after a restart, in sections whose other keys follow a reload. */
const httpRestartKeys = [
  "listen",
  "tls",
  "webSocketListen",
  "connectionsMax",
  "engine",
  "keepAliveSeconds",
  "serves",
  "split",
] as const;
const ownRestartKeys = [
  "openMax",
  "openPerAccountMax",
  "checkThreads",
  "checkQueueMax",
  "fastPath",
  "warmUpSubmissions",
  "resendMs",
] as const;
const proofRestartKeys = ["listen", "listenIpv6"] as const;
/** Sections that take effect only after a restart. */
const restartSections = ["quic", "tiers", "nonces", "portal"] as const;

/** Configuration keys that take effect only after a restart. `running`: the configuration in force. */
export function gatewayRestartKeys(running: Config, wanted: Config): string[] {
  const { http } = running;
  const found = wanted.http
    ? httpRestartKeys
        .filter((key) => differs(http?.[key], wanted.http?.[key]))
        .map((key) => `http.${key}`)
    : ["http"];
  for (const key of ownRestartKeys) {
    if (differs(running.gateway[key], wanted.gateway[key])) found.push(`gateway.${key}`);
  }
  found.push(...restartSections.filter((section) => differs(running[section], wanted[section])));
  found.push(...changedKeys("data", running.data, wanted.data));
  for (const key of proofRestartKeys) {
    if (running.delivery.proof[key] !== wanted.delivery.proof[key]) {
      found.push(`delivery.proof.${key}`);
    }
  }
  if (sellsShreds(running) !== sellsShreds(wanted)) found.push("tips.shredAddresses");
  if (running.solana?.websocket !== wanted.solana?.websocket) found.push("solana.websocket");
  return found;
}

/** `values` with some keys of `kept`. */
function withKeys<T extends object>(values: T, kept: T, keys: readonly (keyof T)[]): T {
  const result = { ...values };
  for (const key of keys) result[key] = kept[key];
  return result;
}

/** The configuration that is in force after a reload: keys that need a restart stay as they run. */
export function inForceAfter(running: Config, wanted: Config): Config {
  const { http, delivery } = running;
  return {
    ...withKeys(wanted, running, [...restartSections, "data", "solana"]),
    relay: withTablesOf(running.relay, wanted.relay),
    gateway: withKeys(wanted.gateway, running.gateway, ownRestartKeys),
    delivery: {
      ...wanted.delivery,
      proof: withKeys(wanted.delivery.proof, delivery.proof, proofRestartKeys),
    },
    ...(http && { http: wanted.http ? withKeys(wanted.http, http, httpRestartKeys) : http }),
    ...(sellsShreds(running) !== sellsShreds(wanted) && {
      tips: { ...wanted.tips, shredAddresses: running.tips.shredAddresses },
      regions: running.regions,
    }),
  };
}

/**
 * Instructions for moving to another database, if one of the keys that need a restart selects it;
 * null: the database is unchanged.
 */
export function databaseChangeWarning(restartKeys: readonly string[]): string | null {
  const changed = restartKeys.filter((key) => key === "data.postgres" || key === "data.directory");
  if (changed.length === 0) return null;
  return (
    `${changed.join(", ")}: a running service cannot change its database. To change it, stop the service, run ` +
    `"shredway export" with the old configuration and "shredway import" with the new one, then start ` +
    `(docs/backup.md)`
  );
}
