// sendTransaction as JSON-RPC: the dialect of most partners.
//
// Used by swqos-rpc.ts, block-engine.ts, scheduler.ts and alt-partner.ts. It disables the partner's
// preflight and retries: the submission pipeline decides about resends.

import type { OutboundTransaction } from "../submission/types.ts";
import { base64Of } from "./base64-cache.ts";
import type { Dialect } from "./dialect.ts";
import { readJsonRpc } from "./json-rpc-answers.ts";

/** The parts of a call around its id and its transaction. */
export const callParts = {
  beforeId: '{"jsonrpc":"2.0","id":',
  beforeText: ',"method":"sendTransaction","params":["',
  afterText: '",{"encoding":"base64","skipPreflight":true,"maxRetries":0}]}',
} as const;

function callText({ transactions }: OutboundTransaction, id: number): string {
  const [transaction] = transactions;
  const wire = transaction ? base64Of(transaction.wire) : "";
  const { beforeId, beforeText, afterText } = callParts;
  return `${beforeId}${id}${beforeText}${wire}${afterText}`;
}

/** Writes the calls of `batch` as one request body; several calls form an array. */
export function writeSendTransaction(
  batch: readonly OutboundTransaction[],
  firstId: number,
): Uint8Array {
  const calls = batch.map((outbound, place) => callText(outbound, firstId + place));
  return Buffer.from(calls.length === 1 ? (calls[0] ?? "") : `[${calls.join(",")}]`, "latin1");
}

export function sendTransactionDialect(
  callsMax: number,
  plainPath: string,
  pathOf: (outbound: OutboundTransaction) => string = () => plainPath,
): Dialect {
  return {
    callsMax,
    plainPath,
    contentType: "application/json",
    pathOf,
    write: writeSendTransaction,
    read: readJsonRpc,
  };
}
