// Origin: does this request come from the portal's own page?
//
// Asked before everything that changes something and before the live feed opens: a browser sends the
// session's cookie wherever a page asks it to, and says in Origin which page that was. What proxies
// forward is believed of trusted ones only.

import type { HttpHead } from "../../gateway/http/types.ts";

interface Proxies {
  /** Whether the TCP peer is a trusted proxy. */
  isProxied(head: HttpHead): boolean;
}

function lastOf(list: string | undefined): string | undefined {
  // Each proxy adds to the right; the last one is the one that is trusted.
  return list?.split(",").at(-1)?.trim().toLowerCase() || undefined;
}

/** Whether people reach this over TLS, as far as a trusted proxy says. */
export function isSecure(head: HttpHead, proxies: Proxies): boolean {
  return proxies.isProxied(head) && lastOf(head.header("x-forwarded-proto")) === "https";
}

function urlOf(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** False also without an Origin: pages always send one with what is asked here. */
export function isOwnOrigin(head: HttpHead, proxies: Proxies): boolean {
  const origin = urlOf(head.header("origin") ?? "");
  if (!origin || !/^https?:$/.test(origin.protocol)) return false;
  const isProxied = proxies.isProxied(head);
  const forwardedHost = isProxied ? lastOf(head.header("x-forwarded-host")) : undefined;
  const host = forwardedHost ?? head.header("host") ?? "";
  if (!/^[a-z0-9.:[\]_-]+$/i.test(host)) return false;
  const forwardedProtocol = isProxied ? lastOf(head.header("x-forwarded-proto")) : undefined;
  if (forwardedProtocol !== undefined && origin.protocol !== `${forwardedProtocol}:`) return false;
  // Both are written in the same way then: without the port that belongs to the protocol.
  return urlOf(`${origin.protocol}//${host}`)?.host === origin.host;
}
