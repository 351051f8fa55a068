// A refused call and the error object that the caller gets.
//
// Thrown by methods when the error has data of its own (the logs of a preflight failure); all other
// ShredwayErrors are translated by the one table of core/errors.ts. A fault of the program shows the
// caller a reference only: its text goes to the log.

import { type Reason, ShredwayError } from "../core/errors.ts";
import { jsonRpcCodes } from "./codes.ts";

/** A ShredwayError whose `error.data` holds more than plain facts. */
export class JsonRpcRefusal extends ShredwayError {
  readonly data: Readonly<Record<string, unknown>>;

  constructor(reason: Reason, message: string, data: Readonly<Record<string, unknown>>) {
    super(reason, message);
    this.data = data;
  }
}

export interface JsonRpcErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Logs a fault of the program; returns what a caller can quote to find it there. */
export type ReportFault = (thrown: unknown) => string;

export function errorObjectOf(thrown: unknown, report: ReportFault): JsonRpcErrorObject {
  const code = thrown instanceof ShredwayError ? thrown.row.jsonRpcCode : undefined;
  if (!(thrown instanceof ShredwayError) || code === undefined || thrown.reason === "internal") {
    const reference = report(thrown);
    return {
      code: jsonRpcCodes.internalError,
      message: `Internal error, reference ${reference}`,
      data: { reason: "internal", reference },
    };
  }
  const data = thrown instanceof JsonRpcRefusal ? thrown.data : thrown.details;
  return { code, message: thrown.message, data: { ...data, reason: thrown.reason } };
}
