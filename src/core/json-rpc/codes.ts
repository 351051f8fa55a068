// JSON-RPC error codes of Solana nodes: the only codes that the service may return.
//
// @solana/kit 8.4 throws a TypeError for codes that it does not know (-32000, -32429, …). core/errors.ts
// assigns codes to reasons; a test compares the two tables.

/** Codes by their names in the source of Agave, without the common prefix. */
export const jsonRpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  blockCleanedUp: -32001,
  sendTransactionPreflightFailure: -32002,
  transactionSignatureVerificationFailure: -32003,
  blockNotAvailable: -32004,
  nodeUnhealthy: -32005,
  transactionPrecompileVerificationFailure: -32006,
  slotSkipped: -32007,
  noSnapshot: -32008,
  longTermStorageSlotSkipped: -32009,
  keyExcludedFromSecondaryIndex: -32010,
  transactionHistoryNotAvailable: -32011,
  scanError: -32012,
  transactionSignatureLengthMismatch: -32013,
  blockStatusNotAvailableYet: -32014,
  unsupportedTransactionVersion: -32015,
  minContextSlotNotReached: -32016,
} as const;
export type JsonRpcCode = (typeof jsonRpcCodes)[keyof typeof jsonRpcCodes];

export const knownCodes: ReadonlySet<number> = new Set(Object.values(jsonRpcCodes));

export function isKnownCode(code: unknown): code is JsonRpcCode {
  return typeof code === "number" && knownCodes.has(code);
}
