// Parts of a valid configuration that cannot work: keys of several sections that contradict each other.
//
// Called by file-problems.ts, whose warnings the start, each reload and the doctor report, and by the
// readiness check `configuration`. They do not reject the file, because the rest of it works, and a reload
// may complete it. Pure.

import {
  type AddressFamily,
  isInRange,
  parseAddress,
  parseAddressRange,
  parseEndpoint,
} from "../addresses/addresses.ts";
import { isForwardedSource, isMulticastSource } from "./relay-sources.ts";
import type { Config, RelayConfig } from "./schema.ts";
import { thresholdsOf } from "./schema-delivery.ts";
import { sellsShreds } from "./shred-tips.ts";

type Source = RelayConfig["sources"][number];

/** Keys that are absent in a file may be undefined here. */
type CheckedConfig = Pick<Config, "relay" | "tips" | "regions" | "tiers" | "routes"> & {
  readonly [Key in "http" | "quic" | "shredstream"]?: Config[Key] | undefined;
};

const familyNames: Readonly<Record<AddressFamily, string>> = { ipv4: "IPv4", ipv6: "IPv6" };
const namesShownMax = 5;
/** A short IPv6 prefix such as ::/0 contains all IPv4 addresses, too. */
const firstIpv4 = parseAddress("0.0.0.0");

function listOf(names: readonly string[]): string {
  const shown = names.slice(0, namesShownMax).join(", ");
  const more = names.length - namesShownMax;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** Undefined: any family. */
function senderFamilyOf(source: Source): AddressFamily | undefined {
  if (isMulticastSource(source) || source.address === undefined) return undefined;
  const range = parseAddressRange(source.address);
  const isOfBoth = range.family === "ipv6" && isInRange(firstIpv4, range);
  return isOfBoth ? undefined : range.family;
}

/** Sources whose packets reach no socket: a UDP socket here receives one address family only. */
function unreachableSources({ sources, listen }: RelayConfig): string[] {
  const listeners = listen.map((text) => ({
    text,
    ...parseEndpoint(text, { allowPortZero: true }),
  }));
  return sources.flatMap((source, index) => {
    const wanted = senderFamilyOf(source);
    if (wanted === undefined) return [];
    const open = listeners.filter(({ port }) => source.port === undefined || port === source.port);
    if (open.length === 0 || open.some(({ family }) => family === wanted)) return [];
    const [first] = open;
    const missing = `${wanted === "ipv6" ? "[::]" : "0.0.0.0"}:${first?.port ?? 0}`;
    return [
      `configuration: relay.sources[${index}] (${source.name}) has the ${familyNames[wanted]} address ` +
        `${source.address}, but relay.listen has no ${familyNames[wanted]} address for it ` +
        `(${open.map(({ text }) => text).join(", ")}), so none of its packets arrives; ` +
        `add "${missing}" to relay.listen`,
    ];
  });
}

/** The receivers of each tier, as messages name them. */
function receiversOf(
  config: CheckedConfig,
): { readonly tier: string; readonly receiver: string }[] {
  const { relay, shredstream, tiers, http } = config;
  const sold = http && sellsShreds(config) ? tiersSold(relay, tiers) : [];
  return [
    ...relay.destinations.map(({ name, address, tier }) => ({
      tier,
      receiver: `destination ${name ?? address}`,
    })),
    ...(relay.discovery ? [{ tier: relay.discovery.tier, receiver: "relay.discovery" }] : []),
    ...(shredstream?.subscribers ?? []).map(({ name, tier }) => ({
      tier,
      receiver: `subscriber ${name}`,
    })),
    ...sold.map((tier) => ({ tier, receiver: `accounts that buy ${tier}` })),
  ];
}

function tiersSold(
  { tiers: names }: RelayConfig,
  { thresholdLamports }: Config["tiers"],
): string[] {
  return thresholdsOf(names, thresholdLamports).map(([tier]) => tier);
}

/** Tiers narrower than every source that is forwarded: their receivers get no shred. */
function tiersWithoutShreds(config: CheckedConfig): string[] {
  const { tiers, sources } = config.relay;
  const forwarded = sources.filter(isForwardedSource).map(({ tier }) => tiers.indexOf(tier));
  if (forwarded.length === 0) return []; // the relay warns that nothing is sent
  const narrowest = Math.min(...forwarded);
  const receivers = receiversOf(config);
  return tiers.slice(0, narrowest).flatMap((tier) => {
    const names = receivers.filter((one) => one.tier === tier).map(({ receiver }) => receiver);
    if (names.length === 0) return [];
    return [
      `configuration: the narrowest tier of relay.sources is ${tiers[narrowest]}, so ${tier} gets no shreds ` +
        `(${listOf(names)}); set the tier of a source to ${tier} or a narrower one, or use ${tiers[narrowest]}`,
    ];
  });
}

/** Addresses of the QUIC ingress whose transactions no route may send. */
function ingressWithoutRoutes({ quic, routes }: CheckedConfig): string[] {
  if (!quic || routes.length === 0) return []; // without routes, the gateway warns
  const ends = [
    {
      key: "protectedListen",
      isServed: routes.some(({ mevSafe }) => mevSafe),
      remedy:
        "set mevSafe: true for a partner that protects transactions, or quic.protectedListen: []",
    },
    {
      key: "swqosOnlyListen",
      isServed: routes.some(({ kind }) => kind === "swqos"),
      remedy: "add a route of kind swqos, or set quic.swqosOnlyListen: []",
    },
  ] as const;
  return ends
    .filter(({ key, isServed }) => quic[key].length > 0 && !isServed)
    .map(
      ({ key, remedy }) =>
        `configuration: no route may send the transactions of quic.${key} (${quic[key].join(", ")}), ` +
        `so all of them are refused; ${remedy}`,
    );
}

/** One sentence for each part; empty: every part can work. */
export function unworkableParts(config: CheckedConfig): string[] {
  return [
    ...unreachableSources(config.relay),
    ...tiersWithoutShreds(config),
    ...ingressWithoutRoutes(config),
  ];
}
