// Parameters and errors that all submitting methods share.
//
// Used by send-*.ts.

import type { Reason } from "../../core/errors.ts";
import { encodings } from "../../core/transactions/transaction-text.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import { field, oneOf } from "../schema/shapes.ts";

/** Length of 4,096 bytes in base64; a base58 text has at most 1,683 characters. */
const textLengthMax = 5464;

export const transactionText: JsonSchema = {
  type: "string",
  minLength: 1,
  maxLength: textLengthMax,
  pattern: "^[A-Za-z0-9+/]+={0,2}$",
  description:
    "a signed transaction (legacy, v0 or v1) in base64, or in at most 1,683 characters of base58",
};

export const encodingField = field(oneOf(encodings), {
  description: "encoding of the transactions; default: detected",
  absent: null,
});

/** Errors of parsing, checking and queueing a transaction. */
export const submissionErrors = [
  "transaction_invalid",
  "transaction_version",
  "tip_missing",
  "tip_too_low",
  "signature_invalid",
  "overloaded",
  "no_route",
  "store_failed",
] as const satisfies readonly Reason[];
