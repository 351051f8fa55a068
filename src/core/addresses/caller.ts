// Addresses of callers: of a socket's peer, and the groups that count as one caller for limits.

import { familyOf, parseAddress } from "./addresses.ts";

/**
 * The address of a socket's peer, 16 bytes. Node.js adds the interface to link-local ones, as in
 * "fe80::1%eth0". Throws ShredwayError "address_invalid" for a text without an address.
 */
export function peerAddress(text: string): Uint8Array {
  return parseAddress(text.replace(/%.*$/, ""));
}

/**
 * The group of an address of 16 bytes. All addresses of an IPv6 /64 form one group,
 * because one client usually owns all of them.
 */
export function callerOf(address: Uint8Array): string {
  const length = familyOf(address) === "ipv4" ? 16 : 8;
  return Buffer.from(address.buffer, address.byteOffset, length).toString("latin1");
}
