// sendTransaction: one transaction, to every route that its options allow.
//
// Called through table.ts. Stands in for a node: its options, and the two of the third parameter
// and the URL.

import { u64Max } from "../../core/primitives.ts";
import type { Json } from "../../json-rpc/json-text.ts";
import { bundleIdOf } from "../../submission/tracked.ts";
import type { SubmitOptions } from "../../submission/types.ts";
import type { TransactionFacts } from "../../transactions/facts.ts";
import { encodings } from "../../transactions/transaction-text.ts";
import type { Call, Method } from "../method.ts";
import { Config, text } from "../params.ts";

const u32Max = 0xffff_ffff;
const commitments = ["processed", "confirmed", "finalized"] as const;

/** null: no limit. Given as null it means none, as `maxRetries: 0` does. */
function resendsMax(config: Config): number | null {
  for (const name of ["maxRetries", "max_retries"]) {
    if (config.has(name)) return config.count(name, u32Max) ?? 0;
  }
  return null;
}

function minContextSlot(config: Config): bigint | null {
  const slot = config.integer("minContextSlot", u64Max);
  return slot ?? config.integer("min_context_slot", u64Max);
}

/** Everything but decoding: also for transactions that came as bytes. */
export async function submitTransaction(
  call: Call,
  transaction: TransactionFacts,
  options: SubmitOptions,
): Promise<void> {
  const isBundle = call.isBlockEngine && call.uri.bundleOnly;
  const transactions = [transaction];
  await call.parts.submissions.submit({
    accountId: call.key.accountId,
    method: "sendTransaction",
    transactions,
    isBundle,
    options: isBundle ? { ...options, revertProtection: true } : options,
    receivedNs: call.receivedNs,
  });
  if (isBundle) call.tellBundleId(bundleIdOf(transactions.map(({ signature }) => signature)));
}

async function run(call: Call, params: readonly Json[]): Promise<string> {
  const { admission, uri } = call;
  const config = new Config("params[1]", params[1]);
  const protection = new Config("params[2]", params[2]);
  const encoding = config.oneOf("encoding", encodings);
  const skipsPreflight = config.flag("skipPreflight");
  const commitment = config.oneOf("preflightCommitment", commitments) ?? "finalized";
  const slot = minContextSlot(config);
  const options = {
    swqosOnly: uri.swqosOnly,
    mevProtect: protection.flag("mevProtect") || uri.mevProtect,
    revertProtection: false,
    resendsMax: resendsMax(config),
  };
  const transaction = admission.read("params[0]", text("params[0]", params[0]), encoding);
  admission.checkTip("params[0]", [transaction]);
  await admission.verify([transaction], () => "params[0]");
  admission.checkContext(slot);
  if (!skipsPreflight) {
    await admission.preflight(transaction.wire, { commitment, minContextSlot: slot });
  }
  await submitTransaction(call, transaction, options);
  return transaction.signature;
}

export const sendTransaction: Method = { scopes: ["submit"], run };
