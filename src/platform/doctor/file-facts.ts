// Facts about one file and one port, for the configuration checks.

import { statSync } from "node:fs";
import { classifyAddress } from "../../core/addresses/address-classes.ts";
import type { Endpoint } from "../../core/addresses/addresses.ts";
import { readOwnAddresses, senderAddresses } from "../../core/addresses/own-addresses.ts";
import { codeOf, messageOf } from "../../core/errors.ts";
import { type PortOwner, portOwner } from "./port-owner.ts";

export interface FileFact {
  readonly path: string;
  /** Permission bits; null: the file is inaccessible. */
  readonly mode: number | null;
}

export interface PortFact {
  readonly address: string;
  /** The reason why listening is impossible; null: it is possible. */
  readonly error: string | null;
  /** The process that uses the port; absent: the port is free, or its owner is unknown. */
  readonly owner?: PortOwner;
  /**
   * No interface of this machine has the address. These ones of its family exist, without link-local ones;
   * absent: there is another reason.
   */
  readonly ownAddresses?: readonly string[];
}

/** A port with its key in the configuration, for example "http.split[0].listen". */
export interface KeyedPortFact extends PortFact {
  /** For a derived address, the text continues with the derivation in parentheses. */
  readonly key: string;
}

/** Why the service cannot listen, from the error of the attempt. */
export function portFault(
  { bytes, family, port }: Endpoint,
  error: unknown,
  { protocol, file }: { readonly protocol: "udp" | "tcp"; readonly file: string },
): Omit<PortFact, "address"> {
  const text = messageOf(error);
  if (codeOf(error) === "EADDRNOTAVAIL" && classifyAddress(bytes) !== "unspecified") {
    const own = senderAddresses(readOwnAddresses(), true);
    const isIpv6 = family === "ipv6";
    return { error: text, ownAddresses: own.filter((each) => each.includes(":") === isIpv6) };
  }
  const owner = portOwner(protocol, port, file);
  return { error: text, ...(owner && { owner }) };
}

export function fileFact(path: string): FileFact {
  try {
    return { path, mode: statSync(path).mode & 0o777 };
  } catch {
    return { path, mode: null };
  }
}
