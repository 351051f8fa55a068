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
  return listenersReached(listeners, () => ownAddresses)(destination);
}

/**
 * The same for many destinations, by own addresses that are read once, and only when a destination has
 * the port of a listener. An endpoint that is asked again (the same object) is answered from memory.
 */
export function listenersReached(
  listeners: readonly Endpoint[],
  readOwn: () => readonly string[],
): (destination: Endpoint) => Endpoint | undefined {
  const prepared = listeners.map((listener) => ({
    listener,
    text: formatAddress(listener.bytes),
    isEverywhere: classifyAddress(listener.bytes) === "unspecified",
  }));
  const ports = new Set(listeners.map(({ port }) => port));
  const answers = new WeakMap<Endpoint, { listener: Endpoint | undefined }>();
  let own: ReadonlySet<string> | undefined;
  const find = (destination: Endpoint): Endpoint | undefined => {
    own ??= new Set(canonicalAddresses(readOwn()));
    const text = formatAddress(destination.bytes);
    const isHere = own.has(text) || classifyAddress(destination.bytes) === "loopback";
    return prepared.find(
      ({ listener, text: listening, isEverywhere }) =>
        listener.port === destination.port &&
        listener.family === destination.family &&
        (listening === text || (isEverywhere && isHere)),
    )?.listener;
  };
  return (destination) => {
    if (!ports.has(destination.port)) return undefined;
    let answer = answers.get(destination);
    if (!answer) {
      answer = { listener: find(destination) };
      answers.set(destination, answer);
    }
    return answer.listener;
  };
}

/** As formatAddress writes them. */
export function canonicalAddresses(texts: readonly string[]): string[] {
  return texts.flatMap((text) => {
    try {
      return [formatAddress(parseAddress(text))];
    } catch {
      return []; // with a zone, as some systems write link-local ones
    }
  });
}
