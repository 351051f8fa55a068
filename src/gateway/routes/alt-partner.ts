// Dialect of the alternative partner: one address per leader, with a mode for transactions that
// must not land as failed.

import { withParameter } from "./block-engine.ts";
import type { Dialect } from "./dialect.ts";
import { sendTransactionDialect } from "./send-transaction.ts";

export function altPartnerDialect(url: URL, callsPerRequest: number): Dialect {
  const plain = `${url.pathname}${url.search}`;
  const protectedPath = withParameter(url.pathname, url, "revert-protection=true");
  return sendTransactionDialect(callsPerRequest, plain, ({ revertProtection }) =>
    revertProtection ? protectedPath : plain,
  );
}
