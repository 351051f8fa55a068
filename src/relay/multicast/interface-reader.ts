// Reads a network interface: its addresses, and the multicast groups that have a route through it.

import { familyOf, formatAddress } from "../../core/addresses/addresses.ts";
import { native } from "../data-plane/native.ts";

export interface InterfaceFacts {
  /** The kernel's number, which a new interface of the same name does not have; 0: none exists. */
  readonly index: number;
  readonly isUp: boolean;
  /** null: no IPv4 address. */
  readonly ipv4: string | null;
  /** Multicast groups with a route of their own, in canonical form. */
  readonly groups: readonly string[];
}

export type InterfaceReader = (name: string) => InterfaceFacts;

function addressesOf(bytes: Uint8Array): Uint8Array[] {
  return Array.from({ length: bytes.length / 16 }, (_, i) => bytes.subarray(i * 16, i * 16 + 16));
}

/** Throws an Error if the kernel refuses. */
export function readInterface(name: string): InterfaceFacts {
  const found = native().readInterface(name);
  if ("error" in found) throw new Error(`cannot read the interface ${name}: ${found.error}`);
  const ipv4 = addressesOf(found.addresses).find((bytes) => familyOf(bytes) === "ipv4");
  return {
    index: found.index,
    isUp: found.isUp,
    ipv4: ipv4 ? formatAddress(ipv4) : null,
    groups: addressesOf(found.groups).map(formatAddress),
  };
}
