// Dialect of a scheduler: an HTTP service that accepts transactions as JSON-RPC, base64 or bytes.
//
// For base64 and bytes, a status of 2xx means acknowledged, unless the body is JSON with an error.

import type { RouteConfig } from "../../core/configuration/configuration.ts";
import { isObject } from "../../core/values.ts";
import { base64Of } from "./base64-cache.ts";
import type { Dialect, Reading } from "./dialect.ts";
import { acknowledged, parseJson, readJsonRpc, readStatus } from "./json-rpc-answers.ts";
import { sendTransactionDialect } from "./send-transaction.ts";

const read: Dialect["read"] = (answer, batch, firstId): Reading => {
  const byStatus = readStatus(answer, batch, true);
  if (byStatus) return byStatus;
  const isObjectText = answer.body[0] === 0x7b; // "{"
  const body = isObjectText ? parseJson(answer.body) : undefined;
  const { error } = isObject(body) ? body : {};
  if (error === undefined || error === null) {
    return { verdicts: batch.map(() => acknowledged), fault: null };
  }
  // The request had no id, so an id in the response is ignored.
  const text = Buffer.from(JSON.stringify({ id: firstId, error }));
  return readJsonRpc({ status: answer.status, body: text }, batch, firstId);
};

export function schedulerDialect(
  url: URL,
  { format, callsPerRequest }: Pick<RouteConfig, "format" | "callsPerRequest">,
): Dialect {
  const path = `${url.pathname}${url.search}`;
  if (format === "json-rpc") return sendTransactionDialect(callsPerRequest, path);
  const isText = format === "base64";
  return {
    callsMax: 1,
    contentType: isText ? "text/plain" : "application/octet-stream",
    pathOf: () => path,
    write: ([outbound]) => {
      const wire = outbound?.transactions[0]?.wire ?? new Uint8Array(0);
      return isText ? Buffer.from(base64Of(wire), "latin1") : wire;
    },
    read,
  };
}
