// The part of the fast path's conditions that a route's configuration decides (docs/fast-path.md).

import type { RouteConfig } from "./schema.ts";

/** Whether the fast path may use the route, whose partner then gets sendTransaction without TLS at any time. */
export function isOnFastPath({ kind, transactions, url }: RouteConfig): boolean {
  const sendsByHttp = kind === "swqos" || kind === "block-builder" || kind === "scheduler";
  return sendsByHttp && transactions && url !== undefined && new URL(url).protocol === "http:";
}
