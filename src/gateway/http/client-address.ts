// Determines the client address: the TCP peer, or the client that trusted proxies report.
//
// Used for limits by address, and before content is shown that is not public. Proxies append to the
// right of X-Forwarded-For, so it is read from there, and only as far as each proxy is trusted.

import {
  type AddressRange,
  isInRange,
  parseAddress,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import type { HttpHead } from "./types.ts";

/** Entries of X-Forwarded-For that are read, from the right. */
const hopsMax = 16;
/** A request with one of these headers came through a proxy. */
const forwardingHeaders = ["x-forwarded-for", "forwarded", "x-real-ip", "via"] as const;

interface ClientAddress {
  /** 16 bytes. The peer's address if the client's is unknown. */
  readonly address: Uint8Array;
  /**
   * False if the request came through a proxy that is not trusted, or that does not report the
   * client.
   */
  readonly isCertain: boolean;
}

/** Parses one entry; some proxies append the port. */
function parseHop(text: string): Uint8Array | null {
  for (const parse of [parseAddress, (hop: string) => parseEndpoint(hop).bytes]) {
    try {
      return parse(text);
    } catch {
      // Try the next format.
    }
  }
  return null;
}

/** Whether the TCP peer is a trusted proxy. */
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
