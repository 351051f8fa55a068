// JSON-RPC errors of streams that are not opened. Streams themselves end with a gRPC status.

import { ShredwayError } from "../../core/errors.ts";
import { GrpcError, type GrpcStatus } from "../../core/grpc/status.ts";

/** Reasons of JSON-RPC errors by gRPC status; all others: "value_invalid". */
const reasonByStatus = new Map<GrpcStatus, "unauthorized" | "scope_missing" | "rate_limited">([
  ["UNAUTHENTICATED", "unauthorized"],
  ["PERMISSION_DENIED", "scope_missing"],
  ["RESOURCE_EXHAUSTED", "rate_limited"],
]);

/** The result of `work`. A GrpcError becomes a ShredwayError with the same detail. */
export function withJsonRpcErrors<T>(method: string, work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    if (!(thrown instanceof GrpcError)) throw thrown;
    const { status, detail } = thrown;
    throw new ShredwayError(reasonByStatus.get(status) ?? "value_invalid", `${method}: ${detail}`);
  }
}
