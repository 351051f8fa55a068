// One UDP socket for each address family, at the addresses of two configuration keys.

import type { Socket } from "node:dgram";
import { type Endpoint, formatEndpoint, parseAddress } from "../../core/addresses/addresses.ts";
import { codeOf, ShredwayError } from "../../core/errors.ts";

export type FamilySockets = Partial<Record<Endpoint["family"], Socket>>;

/** Errors of a machine without IPv6. */
const withoutIpv6 = new Set(["EAFNOSUPPORT", "EADDRNOTAVAIL", "EPROTONOSUPPORT"]);

/** Own addresses with the ports that the kernel chose, IPv4 first. */
export function addressesOf({ ipv4, ipv6 }: FamilySockets): string[] {
  return [ipv4, ipv6].flatMap((socket) => {
    if (!socket) return [];
    const { address, port } = socket.address();
    return [formatEndpoint({ bytes: parseAddress(address), port })];
  });
}

/** `key`: of the configuration. Throws ShredwayError "config_invalid" for another family. */
export function checkFamily(key: string, endpoint: Endpoint, family: Endpoint["family"]): void {
  if (endpoint.family === family) return;
  const expected = family === "ipv6" ? "an IPv6 address" : "an IPv4 address";
  const message = `${key}: expected ${expected}, got ${formatEndpoint(endpoint)}`;
  throw new ShredwayError("config_invalid", message);
}

/** Whether the unspecified IPv6 address is not available, because the machine has no IPv6. */
export function lacksIpv6({ family, bytes }: Endpoint, error: unknown): boolean {
  const isUnspecified = family === "ipv6" && bytes.every((byte) => byte === 0);
  return isUnspecified && withoutIpv6.has(codeOf(error));
}
