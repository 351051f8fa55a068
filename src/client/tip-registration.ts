// The request that registers tips for shreds.

import { writeJson } from "./json.ts";
import type { RegisterTipsOptions } from "./options.ts";
import { base64Of } from "./transactions.ts";
import type { HttpCall } from "./transport.ts";
import type { TipRegistration } from "./types.ts";

export function registrationCall(
  tips: readonly TipRegistration[],
  { dryRun = false }: RegisterTipsOptions,
): HttpCall {
  const entries = tips.map(({ transaction, slot, proof }) => ({
    transaction: base64Of(transaction),
    slot,
    ...(proof !== undefined && { proof: base64Of(proof) }),
  }));
  return {
    method: "POST",
    path: `/shred-pay?verbose=true${dryRun ? "&dry_run=true" : ""}`,
    body: writeJson(entries),
    isRead: false,
    what: "/shred-pay",
  };
}
