// API keys of WebSocket handshakes, in the places where stock clients of other services put them.
//
// Some clients know only a URL. It may therefore contain the key as its path, too: /KEY or /stream/KEY.

import type { HttpHead, HttpResponse, WebSocketRoute } from "../http/types.ts";
import { Query } from "./query.ts";

const headerNames = ["x-token", "x-api-key"] as const;
/** Keys of this service (accounts/api-keys.ts). Another path is unknown. */
const keyPath = /^\/(?:stream\/)?(sw_[1-9A-HJ-NP-Za-km-z]{1,64})\/?$/;

function keyInPath(path: string): string | undefined {
  return keyPath.exec(path)?.[1];
}

/** `route` for the paths that are a key; `answer` responds to all others. */
export function keyPathRoute(
  route: WebSocketRoute,
  answer: (head: HttpHead) => HttpResponse,
): WebSocketRoute {
  return {
    ...route,
    accept: (head) => (keyInPath(head.path) === undefined ? answer(head) : route.accept?.(head)),
  };
}

/** The handshake with the keys of these places in its query; callers.ts checks that all keys are equal. */
export function withSocketKeys(head: HttpHead): HttpHead {
  const keys = [
    keyInPath(head.path),
    ...headerNames.map((name) => head.header(name)),
    ...new Query(head.query).all("api_key"),
  ].flatMap((key) => (key === undefined || key === "" ? [] : key));
  if (keys.length === 0) return head;
  const fields = keys.map((key) => `api-key=${encodeURIComponent(key)}`);
  return { ...head, query: [...fields, head.query].join("&") };
}
