// Rule of the TCP listeners: the service can open all of them.
//
// Called by rules.ts and file-problems.ts. Without it, the start would report that this process itself uses
// the port.

import {
  type Endpoint,
  familyOf,
  formatAddress,
  formatEndpoint,
  parseEndpoint,
} from "../addresses/addresses.ts";
import { addressAbove } from "./derived.ts";
import { keyText } from "./key-text.ts";
import type { Config } from "./schema.ts";

type Path = readonly (string | number)[];
type Report = (path: Path, message: string) => void;

interface Listener {
  readonly path: Path;
  readonly endpoint: Endpoint;
}

function at(path: Path, texts: readonly string[]): Listener[] {
  return texts.map((text, index) => ({
    path: [...path, index],
    endpoint: parseEndpoint(text, { allowPortZero: true }),
  }));
}

/** A listener of one address. */
function single(path: Path, text: string | undefined): Listener[] {
  return at(path, text === undefined ? [] : [text]).map(({ endpoint }) => ({ path, endpoint }));
}

/** The service opens an address once that is written in both lists. */
function without(listeners: readonly Listener[], others: readonly Listener[]): Listener[] {
  const known = new Set(others.map(({ endpoint }) => formatEndpoint(endpoint)));
  return listeners.filter(({ endpoint }) => !known.has(formatEndpoint(endpoint)));
}

/** All of them; the derived addresses of WebSockets follow their lists. */
function listenersOf({ http, operations, streams, shredstream }: Config): Listener[] {
  const plain = at(["http", "listen"], http?.listen ?? []);
  const secure = at(["http", "tls", "listen"], http?.tls?.listen ?? []);
  const webSockets = http?.webSocketListen
    ? at(["http", "webSocketListen"], http.webSocketListen)
    : single(["http", "webSocketListen"], addressAbove(http?.listen ?? [])[0]);
  const secureWebSockets = single(
    ["http", "tls", "listen"],
    addressAbove(http?.tls?.listen ?? [])[0],
  );
  return [
    ...plain,
    ...without(webSockets, plain),
    ...secure,
    ...without(secureWebSockets, secure),
    ...(http?.split ?? []).flatMap(({ listen }, index) =>
      at(["http", "split", index, "listen"], listen),
    ),
    ...at(["operations", "listen"], operations.listen ?? []),
    ...single(["streams", "listen"], streams?.listen),
    ...single(["shredstream", "listen"], shredstream?.listen),
  ];
}

/** Whether a listener of `wide` also gets the connections of `other`; "::" takes both families. */
function includes(wide: Endpoint, other: Endpoint): boolean {
  const text = formatAddress(wide.bytes);
  return text === "::" || (text === "0.0.0.0" && familyOf(other.bytes) === "ipv4");
}

/** Whether the system refuses the second one. With port 0 it chooses the port. */
function excludes(one: Endpoint, other: Endpoint): boolean {
  if (one.port === 0 || one.port !== other.port) return false;
  return (
    formatEndpoint(one) === formatEndpoint(other) || includes(one, other) || includes(other, one)
  );
}

/**
 * Leaves the derived port of WebSockets to a listener that the file puts there. Returns a warning if clients
 * that need the port get none.
 */
export function deriveWebSocketListen(config: Config): string[] {
  const { http } = config;
  const [derived] = single(["http", "webSocketListen"], addressAbove(http?.listen ?? [])[0]);
  if (!http || http.webSocketListen || !derived) return [];
  const written = listenersOf({ ...config, http: { ...http, webSocketListen: [] } });
  const user = written.find(({ endpoint }) => excludes(endpoint, derived.endpoint));
  if (!user) return [];
  http.webSocketListen = [];
  const key = keyText(user.path);
  if (key.startsWith("http.listen")) return [];
  return [
    `configuration: ${key} is ${formatEndpoint(user.endpoint)}, the port after http.listen, where @solana/web3.js opens ` +
      "its WebSocket; so these clients get no WebSocket: change this port, or set http.webSocketListen",
  ];
}

export function checkTcpListeners(config: Config, report: Report): void {
  const all = listenersOf(config);
  for (const [index, { path, endpoint }] of all.entries()) {
    const first = all.slice(0, index).find((other) => excludes(other.endpoint, endpoint));
    if (!first) continue;
    const [text, before] = [formatEndpoint(endpoint), formatEndpoint(first.endpoint)];
    const also = `also ${keyText(first.path)}${text === before ? "" : ` ${before}`}`;
    report(path, `duplicate address ${text} (${also}); expected different addresses`);
  }
}
