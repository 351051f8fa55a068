// The part of the fast path's conditions that a route's configuration decides (docs/fast-path.md).

import type { RouteConfig } from "./schema.ts";

/** Whether the fast path may use the route, whose partner then gets sendTransaction without TLS at any time. */
export function isOnFastPath({ kind, format, transactions, url }: RouteConfig): boolean {
  const isScheduler = kind === "scheduler" && format === "json-rpc";
  const sendsCalls = kind === "swqos" || kind === "block-builder" || isScheduler;
  return sendsCalls && transactions && url !== undefined && new URL(url).protocol === "http:";
}
