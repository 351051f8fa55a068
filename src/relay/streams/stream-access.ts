// Access to streams: the API key of a call, its scope and its tier.

import type { IncomingHttpHeaders } from "node:http2";
import { isShredwayError, quote, ShredwayError } from "../../core/errors.ts";
import { GrpcError } from "../../core/grpc/status.ts";

/** The scope that streams need. */
const scope = "stream";

export interface StreamKey {
  readonly id: string;
  readonly accountId: string;
  readonly accountName: string;
  readonly scopes: readonly string[];
}

export interface StreamAccess {
  /** Throws ShredwayError "unauthorized" or "rate_limited". */
  readonly authenticate: (peer: string, keyText: string) => StreamKey;
  /**
   * The key as it is now; null: it is revoked, expired, or not allowed from this address. `peer`: null if
   * the stream has no caller.
   */
  readonly current: (keyId: string, peer: string | null) => StreamKey | null;
  /** null: the account has no tier. */
  readonly tierOf: (accountId: string) => string | null;
}

const headerNames = ["x-token", "x-api-key", "api-key", "api_key"] as const;
const expected =
  "expected a valid API key as metadata x-token, x-api-key or authorization: Bearer, or in the URL";

/** The only parameter of the URL of a call. */
const keyParameter = "api-key";

/** The key of a call. Throws GrpcError, also for a URL with another parameter: to ignore it would surprise. */
export function authenticate(
  access: StreamAccess,
  { peer, headers }: { readonly peer: string; readonly headers: IncomingHttpHeaders },
): StreamKey {
  checkParameters(headers);
  const [text, ...others] = new Set(keysIn(headers));
  if (text === undefined) throw new GrpcError("UNAUTHENTICATED", `missing API key; ${expected}`);
  if (others.length > 0) {
    throw new GrpcError("UNAUTHENTICATED", `the call contains different API keys; ${expected}`);
  }
  let key: StreamKey;
  try {
    key = access.authenticate(peer, text);
  } catch (error) {
    if (isShredwayError(error, "rate_limited")) {
      throw new GrpcError("RESOURCE_EXHAUSTED", error.message);
    }
    if (error instanceof ShredwayError) {
      throw new GrpcError("UNAUTHENTICATED", `${error.message}; ${expected}`);
    }
    throw error;
  }
  return withScope(key);
}

/** The key of an open WebSocket as it is now. Throws GrpcError. */
export function currentKey(access: StreamAccess, keyId: string, peer: string): StreamKey {
  const key = access.current(keyId, peer);
  if (key) return withScope(key);
  throw new GrpcError("UNAUTHENTICATED", "the API key is not valid any more");
}

function withScope(key: StreamKey): StreamKey {
  if (hasScope(key)) return key;
  throw new GrpcError(
    "PERMISSION_DENIED",
    `the API key does not have the scope ${scope}; it has: ${key.scopes.join(", ") || "none"}`,
  );
}

export function hasScope({ scopes }: StreamKey): boolean {
  return scopes.includes(scope);
}

/**
 * The tier whose shreds the account receives. `running`: the tiers of the relay, which a reload does not
 * change. Throws GrpcError.
 */
export function tierFor(
  access: StreamAccess,
  key: StreamKey,
  {
    fallback,
    running,
  }: { readonly fallback: string | undefined; readonly running: readonly string[] },
): string {
  const tier = access.tierOf(key.accountId) ?? fallback;
  if (tier === undefined) {
    const detail = "the account has no tier; register tips for shreds first";
    throw new GrpcError("PERMISSION_DENIED", detail);
  }
  if (running.includes(tier)) return tier;
  throw new GrpcError(
    "UNAVAILABLE",
    `the running relay has no tier ${quote(tier)}; the operator has to restart the service`,
  );
}

function parametersIn(headers: IncomingHttpHeaders): URLSearchParams {
  const [, query = ""] = (headers[":path"] ?? "").split("?", 2);
  return new URLSearchParams(query);
}

function checkParameters(headers: IncomingHttpHeaders): void {
  for (const name of parametersIn(headers).keys()) {
    if (name === keyParameter) continue;
    // A key may stand in the place of a name.
    const shown = quote(name.replaceAll(/sw_\w+/g, "sw_…"));
    const detail = `unknown URI parameter ${shown}; expected ${keyParameter}`;
    throw new GrpcError("INVALID_ARGUMENT", detail);
  }
}

/** All keys of a call. A URL may contain one as "?api-key=KEY" or before the method's path. */
function keysIn(headers: IncomingHttpHeaders): string[] {
  const keys: string[] = [];
  for (const name of headerNames) {
    const value = headers[name];
    if (typeof value === "string" && value !== "") keys.push(value);
  }
  const bearer = /^bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1];
  if (bearer) keys.push(bearer);
  const [path = ""] = (headers[":path"] ?? "").split("?", 1);
  for (const key of parametersIn(headers).getAll(keyParameter)) if (key !== "") keys.push(key);
  const before = /^\/([^/]+)\/[^/]+\/[^/]+$/.exec(path)?.[1];
  if (before) keys.push(before);
  return keys;
}
