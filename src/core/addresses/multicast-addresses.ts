// Multicast addresses: 224.0.0.0/4 and ff00::/8.
//
// Used by the configuration, the relay's groups, and the tools that receive groups.

import { ShredwayError } from "../errors.ts";
import { familyOf, formatAddress, parseAddress } from "./addresses.ts";

/** `bytes`: 16 bytes, IPv4 as ::ffff:a.b.c.d. */
export function isMulticastAddress(bytes: Uint8Array): boolean {
  return familyOf(bytes) === "ipv4" ? (bytes[12] ?? 0) >> 4 === 0xe : bytes[0] === 0xff;
}

/** The canonical text of a multicast group. Throws ShredwayError "address_invalid". */
export function parseGroup(text: string): string {
  const bytes = parseAddress(text);
  if (isMulticastAddress(bytes)) return formatAddress(bytes);
  throw new ShredwayError(
    "address_invalid",
    `${formatAddress(bytes)} is not a multicast address; expected a group such as 233.84.178.1 or ff0e::1`,
  );
}
