// Own addresses: whether a packet to a destination would return to a listener of this relay.
//
// A relay that sends to itself multiplies its traffic. The check is pure; callers pass the machine's
// addresses, which `readOwnAddresses` reads. It is applied to the configuration, and again at startup to
// the ports that the kernel chose.

import { networkInterfaces } from "node:os";
import { classifyAddress } from "./address-classes.ts";
import { type Endpoint, formatAddress, parseAddress } from "./addresses.ts";

/** Addresses of this machine's network interfaces; empty if they cannot be read. */
export function readOwnAddresses(): string[] {
  try {
    return Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .map(({ address }) => address);
  } catch {
    return []; // some sandboxes refuse this; loopback is known anyway
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
 * Checks many destinations. It reads the own addresses once, and only if a destination has the port
 * of a listener. The result for an endpoint object is cached.
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

/** Addresses in the form of formatAddress. */
export function canonicalAddresses(texts: readonly string[]): string[] {
  return texts.flatMap((text) => {
    try {
      return [formatAddress(parseAddress(text))];
    } catch {
      return []; // with a zone, as some systems write link-local ones
    }
  });
}

/**
 * Addresses of this machine from which a packet can come to a remote receiver, for its firewall.
 * `allowPrivate`: also those that are not routed on the Internet, such as loopback.
 */
export function senderAddresses(ownAddresses: readonly string[], allowPrivate: boolean): string[] {
  const [global, others] = [[], []] as [string[], string[]];
  for (const address of canonicalAddresses(ownAddresses)) {
    const name = classifyAddress(parseAddress(address));
    if (name !== "link-local") (name === "global" ? global : others).push(address);
  }
  return allowPrivate ? [...global, ...others] : global;
}
