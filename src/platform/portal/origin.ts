// Origin check: whether a request comes from the portal's own page.
//
// Runs before every change and before the live feed opens. A browser sends the session cookie
// with requests of any page, and the header Origin names that page. Forwarding headers count only
// if a trusted proxy sent them.

import type { HttpHead } from "../../gateway/http/types.ts";

interface Proxies {
  /** Whether the TCP peer is a trusted proxy. */
  isProxied(head: HttpHead): boolean;
}

function lastOf(list: string | undefined): string | undefined {
  // Each proxy appends on the right; the last entry is from the trusted proxy.
  return list?.split(",").at(-1)?.trim().toLowerCase() || undefined;
}

/** The protocol of the client's URL; null: unknown, because a proxy did not report it. */
function protocolOf(head: HttpHead, proxies: Proxies): string | null {
  if (proxies.isProxied(head)) return lastOf(head.header("x-forwarded-proto")) ?? null;
  return head.isTls ? "https" : null;
}

/** Whether the client uses TLS, at this server or according to a trusted proxy. */
export function isSecure(head: HttpHead, proxies: Proxies): boolean {
  return protocolOf(head, proxies) === "https";
}

function urlOf(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** False without an Origin header: pages always send it with these requests. */
export function isOwnOrigin(head: HttpHead, proxies: Proxies): boolean {
  const origin = urlOf(head.header("origin") ?? "");
  if (!origin || !/^https?:$/.test(origin.protocol)) return false;
  const isProxied = proxies.isProxied(head);
  const forwardedHost = isProxied ? lastOf(head.header("x-forwarded-host")) : undefined;
  const host = forwardedHost ?? head.header("host") ?? "";
  if (!/^[a-z0-9.:[\]_-]+$/i.test(host)) return false;
  const protocol = protocolOf(head, proxies);
  if (protocol !== null && origin.protocol !== `${protocol}:`) return false;
  // URL parsing removes the default port from both sides.
  return urlOf(`${origin.protocol}//${host}`)?.host === origin.host;
}
