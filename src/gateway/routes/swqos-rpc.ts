// Dialect of a SWQoS partner: sendTransaction of a staked node.

import type { Dialect } from "./dialect.ts";
import { sendTransactionDialect } from "./send-transaction.ts";

export function swqosDialect(url: URL, callsPerRequest: number): Dialect {
  const path = `${url.pathname}${url.search}`;
  return sendTransactionDialect(callsPerRequest, path);
}
