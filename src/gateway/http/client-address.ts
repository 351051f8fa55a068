// Whose request is it: the TCP peer's, or that of somebody whom trusted proxies name?
//
// Asked for limits by address and, before anything is shown that is not for everybody. Proxies add to the
// right of X-Forwarded-For, so it is read from there, and only as far as each proxy is a trusted one.

import {
  type AddressRange,
  isInRange,
  parseAddress,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import type { HttpHead } from "./types.ts";

/** Of X-Forwarded-For, from the right. */
const hopsMax = 16;
/** Whoever sends one of them speaks for somebody else. */
const forwardingHeaders = ["x-forwarded-for", "forwarded", "x-real-ip", "via"] as const;

interface ClientAddress {
  /** 16 bytes. The peer's where nothing better is known. */
  readonly address: Uint8Array;
  /**
   * False when somebody stands behind the peer and it is not known who: a proxy that is not trusted, or
   * a trusted one that does not tell.
   */
  readonly isCertain: boolean;
}

/** One hop; some proxies write the port, too. */
function parseHop(text: string): Uint8Array | null {
  for (const parse of [parseAddress, (hop: string) => parseEndpoint(hop).bytes]) {
    try {
      return parse(text);
    } catch {
      // The next form, or none.
    }
  }
  return null;
}

/** Whether the TCP peer is one of the proxies whose headers are believed. */
export function isFromProxy(
  { remoteAddress }: HttpHead,
  trustedProxies: readonly AddressRange[],
): boolean {
  const peer = parseHop(remoteAddress);
  return peer !== null && trustedProxies.some((range) => isInRange(peer, range));
}

export function clientAddress(
  head: HttpHead,
  trustedProxies: readonly AddressRange[],
): ClientAddress {
  const isTrusted = (bytes: Uint8Array) => trustedProxies.some((range) => isInRange(bytes, range));
  const peer = parseHop(head.remoteAddress);
  let address = peer ?? new Uint8Array(16);
  const isForwarded = forwardingHeaders.some((name) => head.header(name) !== undefined);
  if (!peer || !isForwarded) return { address, isCertain: peer !== null };
  if (!isTrusted(address)) return { address, isCertain: false };
  const hops = (head.header("x-forwarded-for") ?? "").split(",").slice(-hopsMax);
  while (hops.length > 0 && isTrusted(address)) {
    const hop = parseHop((hops.pop() ?? "").trim());
    if (!hop) return { address, isCertain: false };
    address = hop;
  }
  return { address, isCertain: true };
}
