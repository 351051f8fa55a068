// ShredwayCallError: the one error of the client, whatever went wrong with a call.
//
// Thrown by everything in this folder but aborts, which throw the signal's own reason. A program decides
// by `reason`: the gateway's words (docs/gateway.md, "Errors") and those of `clientReasons`.

/** What the client itself finds. All other reasons are the service's own words. */
export const clientReasons = [
  /** No connection, or it was cut before the answer. A submission may have arrived. */
  "unreachable",
  /** No whole answer within `timeoutMs`. A submission may have arrived. */
  "timeout",
  /** The answer is none of this service: a proxy's page, half an answer, another shape. */
  "answer_invalid",
  /** This runtime has no WebSocket and none was given. */
  "websocket_missing",
  /** The service is there and did not open the WebSocket. */
  "websocket_refused",
  /** None of this account in the time that is kept. */
  "submission_unknown",
  /** An error without a reason, as a node behind the service wrote it. */
  "unknown",
] as const;

interface ShredwayCallErrorOptions {
  readonly reason: string;
  /** JSON-RPC; null: the answer was none. */
  readonly code?: number | null;
  /** null: there was no answer. */
  readonly httpStatus?: number | null;
  /** null: the service did not say. */
  readonly retryAfterSeconds?: number | null;
  /** `error.data` as it came; integers beyond 2^53 are bigint. */
  readonly data?: unknown;
  readonly cause?: unknown;
}

export class ShredwayCallError extends Error {
  override readonly name = "ShredwayCallError";
  /** Stable word. */
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
