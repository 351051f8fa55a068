// Addresses of a node: its HTTP URL, its WebSocket URL, and their secret parts.
//
// Called by upstream.ts. URLs may contain keys (user and password, path, query), which only the node may
// receive. Every text about the node passes `mask` first.

import { basicAuthorization, maskerOf } from "../../core/configuration/url-secrets.ts";
import { ShredwayError } from "../../core/errors.ts";

export interface NodeAddress {
  /** "https://rpc.example:8899", without a path. */
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
  /** Host and port, for messages. */
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  /** `text` without the parts of the URL that may be keys. */
  readonly mask: (text: string) => string;
}

function invalid(what: string, expected: string): ShredwayError {
  // Not quoted, because it may contain a key.
  return new ShredwayError("value_invalid", `${what}: expected ${expected}, got another text`);
}

function addressOf(text: string, what: string, schemes: readonly [string, string]): NodeAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !schemes.includes(url.protocol.slice(0, -1))) {
    throw invalid(what, `a URL of ${schemes.join(" or ")}`);
  }
  const authorization = basicAuthorization(url);
  return {
    origin: `${url.protocol}//${url.host}`,
    path: `${url.pathname}${url.search}`,
    host: url.host,
    headers: authorization === null ? {} : { authorization },
    mask: maskerOf(url),
  };
}

/** Throws ShredwayError "value_invalid". */
export function httpAddress(rpc: string): NodeAddress {
  return addressOf(rpc, "solana.rpc", ["http", "https"]);
}

/**
 * The URL `websocket`, or the one that @solana/web3.js derives from `rpc`: ws for http, and the next
 * port if the URL has one. Throws ShredwayError "value_invalid".
 */
export function webSocketAddress(rpc: string, websocket?: string): NodeAddress {
  const schemes = ["ws", "wss"] as const;
  if (websocket !== undefined) return addressOf(websocket, "solana.websocket", schemes);
  const url = new URL(rpc.replace(/^\s*http/i, "ws"));
  // Reads the text, because a URL omits the default port of its scheme.
  const named = /^\s*\w+:\/\/(?:[^/?#]*@)?(?:\[[^\]]*\]|[^:/?#]*):(\d+)(?![^/?#])/.exec(rpc)?.[1];
  const port = named === undefined ? url.port : String(Number(named) + 1);
  if (Number(port) > 65_535)
    throw invalid("solana.websocket", "an address: no port is above 65535");
  url.port = port;
  return addressOf(url.href, "solana.rpc", schemes);
}
