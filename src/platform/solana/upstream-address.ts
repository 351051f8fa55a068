// Where a node is reached: its HTTP address, its WebSocket address, and what of them is secret.
//
// Called by upstream.ts. Addresses may hold keys (user and password, path, query): they go to the
// node and nowhere else, so everything that is said of the node passes `mask` first.

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
  /** `text` without the parts of the address that may be keys. */
  readonly mask: (text: string) => string;
}

function invalid(what: string, expected: string): ShredwayError {
  // Not quoted: it may hold a key.
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
 * Of `websocket`, or what @solana/web3.js makes of `rpc`: ws for http, and the port above where the
 * address names one. Throws ShredwayError "value_invalid".
 */
export function webSocketAddress(rpc: string, websocket?: string): NodeAddress {
  const schemes = ["ws", "wss"] as const;
  if (websocket !== undefined) return addressOf(websocket, "solana.websocket", schemes);
  const url = new URL(rpc.replace(/^\s*http/i, "ws"));
  // The text is asked: a URL forgets a port that is its scheme's own.
  const named = /^\s*\w+:\/\/(?:[^/?#]*@)?(?:\[[^\]]*\]|[^:/?#]*):(\d+)(?![^/?#])/.exec(rpc)?.[1];
  const port = named === undefined ? url.port : String(Number(named) + 1);
  if (Number(port) > 65_535)
    throw invalid("solana.websocket", "an address: no port is above 65535");
  url.port = port;
  return addressOf(url.href, "solana.rpc", schemes);
}
