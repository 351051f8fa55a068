// The group of addresses that counts as one caller, for limits.

import { familyOf } from "./addresses.ts";

/**
 * The group of an address of 16 bytes. All addresses of an IPv6 /64 form one group,
 * because one client usually owns all of them.
 */
export function callerOf(address: Uint8Array): string {
  const length = familyOf(address) === "ipv4" ? 16 : 8;
  return Buffer.from(address.buffer, address.byteOffset, length).toString("latin1");
}
