// sendBundle: 1 to 4 transactions that land together, in order, or not at all.
//
// Called through table.ts and by raw.ts.

import { ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../json-rpc/json-text.ts";
import { bundleIdOf } from "../../submission/tracked.ts";
import type { TransactionFacts } from "../../transactions/facts.ts";
import { encodings } from "../../transactions/transaction-text.ts";
import { duplicateOf } from "../admission.ts";
import type { Call, Method } from "../method.ts";
import { Config, texts } from "../params.ts";

export const bundleTransactionsMax = 4;

export interface BundleOptions {
  readonly mevProtect: boolean;
  readonly revertProtection: boolean;
}

function checkBundle(transactions: readonly TransactionFacts[]): void {
  const twice = duplicateOf(transactions);
  if (twice !== undefined) {
    throw new ShredwayError(
      "bundle_invalid",
      `expected different transactions, got ${twice} twice`,
    );
  }
  const behind = transactions.findIndex(({ hasFrontKey }, index) => hasFrontKey && index > 0);
  if (behind > 0) {
    throw new ShredwayError(
      "bundle_invalid",
      `expected the transaction with a front key at index 0, got it at index ${behind}`,
      { details: { index: behind } },
    );
  }
}

/** The signatures; below /api/v1 the id of the bundle. */
export async function submitBundle(
  call: Call,
  transactions: readonly TransactionFacts[],
  options: BundleOptions,
): Promise<string | readonly string[]> {
  checkBundle(transactions);
  if (call.uri.swqosOnly) {
    throw new ShredwayError(
      "value_invalid",
      "swqos-only: expected false for a bundle, which goes to block builders; got true",
    );
  }
  call.takeMore(transactions.length - 1);
  call.admission.checkTip("bundle", transactions);
  await call.admission.verify(transactions, (index) => `transaction ${index}`);
  await call.parts.submissions.submit({
    accountId: call.key.accountId,
    method: "sendBundle",
    transactions,
    isBundle: true,
    options: { ...options, swqosOnly: false, resendsMax: null },
    receivedNs: call.receivedNs,
  });
  const id = bundleIdOf(transactions.map(({ signature }) => signature));
  call.tellBundleId(id);
  return call.isBlockEngine ? id : transactions.map(({ signature }) => signature);
}

async function run(call: Call, params: readonly Json[]): Promise<unknown> {
  const config = new Config("params[1]", params[1]);
  const encoding = config.oneOf("encoding", encodings);
  const options = {
    mevProtect: config.flag("mevProtect") || call.uri.mevProtect,
    revertProtection: config.flag("revertProtection"),
  };
  const transactions = texts("params[0]", params[0], bundleTransactionsMax).map((each, i) =>
    call.admission.read(`params[0][${i}]`, each, encoding),
  );
  return submitBundle(call, transactions, options);
}

export const sendBundle: Method = { scopes: ["submit"], run };
