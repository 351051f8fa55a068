// getTransactionStatus, getBundleStatuses, getInflightBundleStatuses: what became of submissions.
//
// Called through table.ts. Only of the caller's own account: what another one submitted is unknown.

import type { Json } from "../../json-rpc/json-text.ts";
import type { BundleStatus, TransactionStatus } from "../../submission/types.ts";
import type { Call, MethodTable } from "../method.ts";
import { invalid, text, texts } from "../params.ts";
import { statusJson } from "../status-json.ts";

export const statusesMax = 256;
/** As block engines bound it. */
export const bundleStatusesMax = 5;

/** Throws "value_invalid" unless it is base58 of 64 bytes. */
export function checkedSignature(
  call: Pick<Call, "parts">,
  what: string,
  signature: string,
): string {
  const isShort = signature.length > 0 && signature.length <= 88;
  if (isShort && call.parts.base58.decode(signature)?.length === 64) return signature;
  throw invalid(what, "a signature: 64 bytes in base58", signature);
}

async function transactionStatus(call: Call, [given]: readonly Json[]): Promise<unknown> {
  const isOne = typeof given === "string";
  const signatures = isOne ? [given] : texts("params[0]", given, statusesMax);
  signatures.forEach((signature, i) => {
    checkedSignature(call, isOne ? "params[0]" : `params[0][${i}]`, signature);
  });
  const statuses = await call.parts.submissions.statuses(call.key.accountId, signatures);
  const shown = statuses.map((status) => (status ? statusJson(status) : null));
  return isOne ? (shown[0] ?? null) : shown;
}

function readIds([given]: readonly Json[]): string[] {
  return texts("params[0]", given, bundleStatusesMax).map((id, i) => {
    if (/^[0-9a-f]{64}$/.test(id)) return text(`params[0][${i}]`, id);
    throw invalid(`params[0][${i}]`, "the id of a bundle: 64 hex digits", id);
  });
}

function landedSlot(transactions: readonly TransactionStatus[]): bigint | null {
  const isLanded = transactions.every(({ state }) => state === "landed");
  return isLanded ? (transactions[0]?.slot ?? null) : null;
}

function bundleJson(bundle: BundleStatus | null): unknown {
  const slot = bundle ? landedSlot(bundle.transactions) : null;
  if (!bundle || slot === null) return null;
  return {
    bundle_id: bundle.bundleId,
    transactions: bundle.transactions.map(({ signature }) => signature),
    slot,
    confirmation_status: "confirmed",
    err: { Ok: null },
  };
}

function inflightJson(id: string, bundle: BundleStatus | null): unknown {
  if (!bundle) return { bundle_id: id, status: "Invalid", landed_slot: null };
  const slot = landedSlot(bundle.transactions);
  if (slot !== null) return { bundle_id: id, status: "Landed", landed_slot: slot };
  const isOpen = bundle.transactions.some(({ state }) => state === "open");
  return { bundle_id: id, status: isOpen ? "Pending" : "Failed", landed_slot: null };
}

async function bundleValues(
  call: Call,
  params: readonly Json[],
  shape: (id: string, bundle: BundleStatus | null) => unknown,
): Promise<unknown> {
  const ids = readIds(params);
  const bundles = await call.parts.submissions.bundles(call.key.accountId, ids);
  return {
    context: { slot: call.parts.slot() ?? 0n },
    value: ids.map((id, i) => shape(id, bundles[i] ?? null)),
  };
}

const scopes = ["submit", "batch"] as const;

export const statusMethods: MethodTable = {
  getTransactionStatus: { scopes, run: transactionStatus },
  getBundleStatuses: {
    scopes,
    run: (call, params) => bundleValues(call, params, (_, bundle) => bundleJson(bundle)),
  },
  getInflightBundleStatuses: {
    scopes,
    run: (call, params) => bundleValues(call, params, inflightJson),
  },
};
