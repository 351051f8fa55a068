// Dialect of a block engine: bundles and single transactions, each at its own path.
//
// `{url}/api/v1/bundles` takes sendBundle, `{url}/api/v1/transactions` takes sendTransaction; with
// `bundleOnly=true` a transaction lands only if it succeeds. The URL's path and query are kept.

import type { OutboundTransaction } from "../submission/types.ts";
import { base64Of } from "./base64-cache.ts";
import type { Dialect } from "./dialect.ts";
import { readJsonRpc } from "./json-rpc-answers.ts";
import { writeSendTransaction } from "./send-transaction.ts";

function writeBundle({ transactions }: OutboundTransaction, id: number): Uint8Array {
  const wires = transactions.map(({ wire }) => `"${base64Of(wire)}"`).join(",");
  const params = `[[${wires}],{"encoding":"base64"}]`;
  return Buffer.from(
    `{"jsonrpc":"2.0","id":${id},"method":"sendBundle","params":${params}}`,
    "latin1",
  );
}

/** Appends `parameter` to `path` and the query of `url`. */
export function withParameter(path: string, url: URL, parameter: string): string {
  return `${path}${url.search === "" ? "?" : `${url.search}&`}${parameter}`;
}

export function blockEngineDialect(url: URL): Dialect {
  // Operators often configure the URL with the path from the partner's examples.
  const base = url.pathname
    .replace(/\/+$/, "")
    .replace(/\/api\/v1(\/(bundles|transactions))?$/, "");
  const bundles = `${base}/api/v1/bundles${url.search}`;
  const transactions = `${base}/api/v1/transactions`;
  const plain = `${transactions}${url.search}`;
  const protectedPath = withParameter(transactions, url, "bundleOnly=true");
  return {
    callsMax: 1,
    plainPath: plain,
    contentType: "application/json",
    pathOf: ({ mode, revertProtection }) => {
      if (mode === "bundle") return bundles;
      return revertProtection ? protectedPath : plain;
    },
    write: (batch, firstId) => {
      const [outbound] = batch;
      return outbound?.mode === "bundle"
        ? writeBundle(outbound, firstId)
        : writeSendTransaction(batch, firstId);
    },
    read: readJsonRpc,
  };
}
