// Address classes: which addresses may be destinations.
//
// Used for the configuration and for destinations that customers register. Ranges: IANA IPv4 and IPv6
// Special-Purpose Address Registries (RFC 6890).

import { formatAddress, parseAddressRange } from "./addresses.ts";

type AddressClass =
  | "global"
  | "unspecified"
  | "loopback"
  | "private"
  | "shared"
  | "link-local"
  | "multicast"
  | "broadcast"
  | "documentation"
  | "benchmarking"
  | "reserved";

// The first range that contains the address decides; narrower ranges come first.
const classRanges: readonly [string, AddressClass][] = [
  ["255.255.255.255", "broadcast"],
  ["0.0.0.0", "unspecified"],
  ["0.0.0.0/8", "reserved"],
  ["10.0.0.0/8", "private"],
  ["100.64.0.0/10", "shared"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local"],
  ["172.16.0.0/12", "private"],
  ["192.0.2.0/24", "documentation"],
  ["192.0.0.0/24", "reserved"],
  ["192.168.0.0/16", "private"],
  ["198.18.0.0/15", "benchmarking"],
  ["198.51.100.0/24", "documentation"],
  ["203.0.113.0/24", "documentation"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
  ["::", "unspecified"],
  ["::1", "loopback"],
  ["100::/64", "reserved"],
  ["2001:db8::/32", "documentation"],
  ["2001:2::/48", "benchmarking"],
  ["3fff::/20", "documentation"],
  ["fc00::/7", "private"],
  ["fe80::/10", "link-local"],
  ["fec0::/10", "private"],
  ["ff00::/8", "multicast"],
];
const parsedRanges = classRanges.map(([text, name]) => ({ ...parseAddressRange(text), name }));

// IPv6 addresses that routers translate to the IPv4 address that they contain: NAT64 and 6to4.
const embeddedIpv4: readonly { prefix: ReturnType<typeof parseAddressRange>; at: number }[] = [
  { prefix: parseAddressRange("64:ff9b::/96"), at: 12 },
  { prefix: parseAddressRange("2002::/16"), at: 2 },
];

function isIn(bytes: Uint8Array, range: { bytes: Uint8Array; prefixBits: number }): boolean {
  for (let i = 0; i * 8 < range.prefixBits; i++) {
    const mask = (0xff00 >> Math.min(range.prefixBits - i * 8, 8)) & 0xff;
    if (((bytes[i] ?? 0) & mask) !== range.bytes[i]) return false;
  }
  return true;
}

/** Class of an address (16 bytes). An IPv4 address inside NAT64 or 6to4 has its own class. */
export function classifyAddress(bytes: Uint8Array): AddressClass {
  for (const { prefix, at } of embeddedIpv4) {
    if (!isIn(bytes, prefix)) continue;
    const ipv4 = new Uint8Array(16);
    ipv4.fill(0xff, 10, 12);
    ipv4.set(bytes.subarray(at, at + 4), 12);
    return classifyAddress(ipv4);
  }
  return parsedRanges.find((range) => isIn(bytes, range))?.name ?? "global";
}

/**
 * Returns why `bytes` must not be a destination; undefined: it may be one. `allowPrivate` permits
 * every class except unspecified. Documentation addresses are always permitted for examples, since
 * they are not routed.
 */
export function destinationRefusal(bytes: Uint8Array, allowPrivate: boolean): string | undefined {
  const name = classifyAddress(bytes);
  if (name === "global" || name === "documentation") return undefined;
  if (allowPrivate && name !== "unspecified") return undefined;
  return `${formatAddress(bytes)} is an address of class ${name}`;
}
