// ShredwayCallError: the only error class of the client.
//
// Everything in this folder throws it, except for aborts, which throw the signal's own reason.
// Programs decide by `reason`: one of the gateway's reasons (docs/gateway.md, "Errors") or of
// `clientReasons`.

/** Reasons of the client itself. All other reasons come from the service. */
export const clientReasons = [
  /** No connection, or it was closed before the response. A submission may have arrived. */
  "unreachable",
  /** No complete response within `timeoutMs`. A submission may have arrived. */
  "timeout",
  /**
   * The response is not from this service: a proxy's page, an incomplete response, or an unknown
   * type.
   */
  "answer_invalid",
  /** The runtime has no WebSocket, and the option WebSocket is not set. */
  "websocket_missing",
  /** The service answers, but did not open the WebSocket. */
  "websocket_refused",
  /** This account has no such submission within the retention time. */
  "submission_unknown",
  /** A receipt or another signed statement is not one of this service, or was changed. */
  "statement_invalid",
  /** A statement is signed with another key than the given ones. */
  "signing_key_unknown",
  /** An error without a reason, for example from a node behind the service. */
  "unknown",
] as const;

interface ShredwayCallErrorOptions {
  readonly reason: string;
  /** JSON-RPC error code; null: the response was not a JSON-RPC error. */
  readonly code?: number | null;
  /** HTTP status; null: there was no response. */
  readonly httpStatus?: number | null;
  /** Seconds before the next attempt; null: the service did not say. */
  readonly retryAfterSeconds?: number | null;
  /** The unchanged `error.data`; integers beyond 2^53 are bigint. */
  readonly data?: unknown;
  readonly cause?: unknown;
}

export class ShredwayCallError extends Error {
  override readonly name = "ShredwayCallError";
  /** A stable word that programs can compare. */
  readonly reason: string;
  readonly code: number | null;
  readonly httpStatus: number | null;
  readonly retryAfterSeconds: number | null;
  readonly data: unknown;

  constructor(message: string, options: ShredwayCallErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.reason = options.reason;
    this.code = options.code ?? null;
    this.httpStatus = options.httpStatus ?? null;
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
    this.data = options.data ?? null;
  }
}

export function webSocketMissing(): ShredwayCallError {
  return new ShredwayCallError(
    "websocket_missing: this runtime has no WebSocket: pass an implementation as the option WebSocket, " +
      "on Node 20 for example that of the package ws",
    { reason: "websocket_missing" },
  );
}
