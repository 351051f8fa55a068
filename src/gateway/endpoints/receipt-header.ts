// The header x-shredway-receipt: in a request it asks for a receipt, in a response it contains one.
//
// Used by request-context.ts and submission-sockets.ts.

import { invalid } from "../schema/shapes.ts";

export const receiptHeader = "x-shredway-receipt";

/**
 * Longer receipts are in the body only: common proxies reject responses with more than 4,096 bytes of
 * headers.
 */
export const receiptHeaderBytesMax = 3072;

/** Whether a request's header asks for a receipt. Throws ShredwayError "value_invalid". */
export function isReceiptHeaderSet(value: string | undefined): boolean {
  if (value === undefined || value === "" || value === "0" || value === "false") return false;
  if (value === "1" || value === "true") return true;
  throw invalid(`header ${receiptHeader}`, "1, true, 0 or false", value);
}
