// A refused call and the error object that the caller gets.
//
// Every ShredwayError is translated by the one table of core/errors.ts; its details become `error.data`.
// A fault of the program shows the caller a reference only: its text goes to the log.

import { type Reason, ShredwayError } from "../errors.ts";
import { type JsonRpcCode, jsonRpcCodes } from "./codes.ts";

interface JsonRpcErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** The error object of a node, which the caller gets as it is. */
export class PassedError extends ShredwayError {
  readonly error: JsonRpcErrorObject & { readonly code: JsonRpcCode };

  constructor(error: PassedError["error"]) {
    super("rpc_failed", error.message);
    this.error = error;
  }
}

/** Logs a fault of the program; returns what a caller can quote to find it there. */
export type ReportFault = (thrown: unknown) => string;

export interface RefusalOptions {
  readonly report: ReportFault;
  /** What `error.message` begins with, where strangers read it; default: nothing. */
  readonly prefixOf?: (reason: Reason) => string;
}

/** "internal" for everything that has no code for callers. */
export function reasonOf(thrown: unknown): Reason {
  const mayLeave = thrown instanceof ShredwayError && thrown.row.jsonRpcCode !== undefined;
  return mayLeave ? thrown.reason : "internal";
}

export function errorObjectOf(
  thrown: unknown,
  { report, prefixOf }: RefusalOptions,
): JsonRpcErrorObject {
  if (thrown instanceof PassedError) return thrown.error;
  const code = thrown instanceof ShredwayError ? thrown.row.jsonRpcCode : undefined;
  if (!(thrown instanceof ShredwayError) || code === undefined || thrown.reason === "internal") {
    const reference = report(thrown);
    const prefix = prefixOf?.("internal") ?? "";
    return {
      code: jsonRpcCodes.internalError,
      message: `${prefix}Internal error, reference ${reference}`,
      data: { reason: "internal", reference },
    };
  }
  // Which node it is, and what its network said, is the operator's business: the log has it.
  const isInner = prefixOf !== undefined && thrown.reason === "rpc_failed";
  const message = isInner
    ? "expected an answer of the node behind this service, got none that can be used"
    : thrown.message;
  return {
    code,
    message: `${prefixOf?.(thrown.reason) ?? ""}${message}`,
    data: { ...thrown.details, reason: thrown.reason },
  };
}
