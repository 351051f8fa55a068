// Own addresses: "would a packet to this destination come back to a listener of this relay?"
//
// Asked by config-rules.ts for a file, and by the service for the ports that the kernel chose. The
// rule is pure; who this machine is comes from `readOwnAddresses`, which main, start and doctor hand
// in. A relay that sends to itself multiplies what it receives.

import { networkInterfaces } from "node:os";
import { classifyAddress } from "./address-classes.ts";
import { type Endpoint, formatAddress, parseAddress } from "./addresses.ts";

/** Addresses of this machine's network interfaces; empty when the kernel does not tell. */
export function readOwnAddresses(): string[] {
  try {
    return Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .map(({ address }) => address);
  } catch {
    return []; // refused inside some sandboxes: loopback is known anyway
  }
}

/**
 * The listener that a packet to `destination` would reach, or undefined. A listener on an unspecified
 * address (0.0.0.0, ::) is reached at every one of `ownAddresses` and on loopback.
 */
export function listenerReachedBy(
  destination: Endpoint,
  listeners: readonly Endpoint[],
  ownAddresses: readonly string[],
): Endpoint | undefined {
  const text = formatAddress(destination.bytes);
  return listeners.find(({ bytes, port, family }) => {
    if (port !== destination.port || family !== destination.family) return false;
    if (formatAddress(bytes) === text) return true;
    if (classifyAddress(bytes) !== "unspecified") return false;
    return (
      classifyAddress(destination.bytes) === "loopback" ||
      ownAddresses.some((own) => sameAddress(own, text))
    );
  });
}

function sameAddress(own: string, text: string): boolean {
  try {
    return formatAddress(parseAddress(own)) === text;
  } catch {
    return false; // with a zone, as some systems write link-local ones
  }
}
