// getTransactionStatus, getBundleStatuses, getInflightBundleStatuses: the state of submissions.
//
// Called through method-table.ts. A caller sees only submissions of its own account.

import type { WrittenInteger } from "../../client/responses.ts";
import { isJsonArray } from "../../core/json-rpc/json-text.ts";
import { blockEngineBundleMax } from "../../core/transactions/bundle-limits.ts";
import {
  anyOf,
  bundleId,
  bundleIdPattern,
  closed,
  described,
  enumOf,
  listOf,
  orNull,
  type SchemaOf,
  schemaOf,
  signatureText,
  slot,
} from "../schema/json-schema.ts";
import { type ArgsOf, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { invalid, readTexts, type Shape } from "../schema/shapes.ts";
import { statusSchema } from "../schema/status-schema.ts";
import {
  type BundleCommitments,
  type BundleStatus,
  type Commitment,
  commitments,
} from "../submission/types.ts";
import { type Call, type MethodTable, method } from "./method.ts";
import { statusJson } from "./status-json.ts";

const statusesMax = 256;
/** The limit of block engines. */
const bundleStatusesMax = 5;

const signatureExpected = "a signature (64 bytes in base58)";

/** Throws ShredwayError "value_invalid" unless `given` is base58 of 64 bytes. */
export function checkedSignature(
  call: Pick<Call, "dependencies">,
  what: string,
  given: string,
): string {
  const isShort = given.length > 0 && given.length <= 88;
  if (isShort && call.dependencies.base58.decode(given)?.length === 64) return given;
  throw invalid(what, signatureExpected, given);
}

/** One signature, or an array of 1 to 256. */
const oneOrMore: Shape<string | readonly string[]> = {
  schema: {
    anyOf: [signatureText, listOf(signatureText, { minItems: 1, maxItems: statusesMax })],
  },
  reader: (what) => (json) => {
    if (typeof json === "string") return json;
    if (isJsonArray(json)) return readTexts(what, json, statusesMax);
    throw invalid(what, `${signatureExpected}, or an array of 1 to ${statusesMax}`, json);
  },
};
type StatusAnswer = ReturnType<typeof statusJson>;

const statusParams = { signatures: required(oneOrMore, "a signature, or an array of 1 to 256") };

async function transactionStatus(
  call: Call,
  { signatures: given }: ArgsOf<typeof statusParams>,
): Promise<StatusAnswer | null | (StatusAnswer | null)[]> {
  const isOne = typeof given === "string";
  const signatures = isOne ? [given] : given;
  signatures.forEach((each, i) => {
    checkedSignature(call, isOne ? "params[0]" : `params[0][${i}]`, each);
  });
  const statuses = await call.dependencies.submissions.statuses(call.key.accountId, signatures);
  const shown = statuses.map((status) => (status ? statusJson(status) : null));
  return isOne ? (shown[0] ?? null) : shown;
}

const idPattern = new RegExp(bundleIdPattern);
const ids: Shape<readonly string[]> = {
  schema: listOf(bundleId, { minItems: 1, maxItems: bundleStatusesMax }),
  reader: (what) => (json) => {
    const given = readTexts(what, json, bundleStatusesMax);
    const wrong = given.findIndex((id) => !idPattern.test(id));
    if (wrong < 0) return given;
    throw invalid(`${what}[${wrong}]`, "the id of a bundle: 64 hex digits", given[wrong]);
  },
};
/** As block engines name the fields. */
interface LandedBundle {
  readonly bundle_id: string;
  readonly transactions: readonly string[];
  readonly slot: WrittenInteger;
  readonly confirmation_status: Commitment;
  readonly err: { readonly Ok: null };
}

/** As block engines name the fields. */
interface InflightBundle {
  readonly bundle_id: string;
  readonly status: "Pending" | "Landed" | "Failed" | "Invalid";
  readonly landed_slot: WrittenInteger | null;
}

const bundleParams = { ids: required(ids, "1 to 5 bundle ids") };

async function bundleJson(
  commitmentsOf: BundleCommitments,
  bundle: BundleStatus | null,
): Promise<LandedBundle | null> {
  const landed = bundle && (await commitmentsOf.of(bundle));
  if (!landed) return null;
  return {
    bundle_id: bundle.bundleId,
    transactions: bundle.transactions.map((each) => each.signature),
    slot: landed.slot,
    confirmation_status: landed.commitment,
    err: { Ok: null },
  };
}

async function inflightJson(
  commitmentsOf: BundleCommitments,
  id: string,
  bundle: BundleStatus | null,
): Promise<InflightBundle> {
  if (!bundle) return { bundle_id: id, status: "Invalid", landed_slot: null };
  const progress = await commitmentsOf.progressOf(bundle);
  if (progress.kind === "landed") {
    return { bundle_id: id, status: "Landed", landed_slot: progress.slot };
  }
  const status = progress.kind === "pending" ? "Pending" : "Failed";
  return { bundle_id: id, status, landed_slot: null };
}

async function bundleValues<T>(
  call: Call,
  { ids: bundleIds }: ArgsOf<typeof bundleParams>,
  jsonOf: (id: string, bundle: BundleStatus | null) => Promise<T | null>,
): Promise<BundleValues<T>> {
  const bundles = await call.dependencies.submissions.bundles(call.key.accountId, bundleIds);
  return {
    context: { slot: call.dependencies.slot() ?? 0n },
    value: await Promise.all(bundleIds.map((id, i) => jsonOf(id, bundles[i] ?? null))),
  };
}

interface BundleValues<T> {
  readonly context: { readonly slot: WrittenInteger };
  readonly value: readonly (T | null)[];
}

function valuesSchema<T>(title: string, value: SchemaOf<T>): SchemaOf<BundleValues<T>> {
  return closed<BundleValues<T>>(title, {
    context: closed(`${title}Context`, { slot: described("current slot; 0: unknown", slot) }),
    value: listOf(orNull(value), { maxItems: bundleStatusesMax }),
  });
}

const landedBundle = closed<LandedBundle>("LandedBundle", {
  bundle_id: bundleId,
  transactions: listOf(signatureText, { minItems: 1, maxItems: blockEngineBundleMax }),
  slot,
  confirmation_status: described(
    "processed: in a block that may still be abandoned; finalized: as the node of solana.rpc reports",
    enumOf(commitments),
  ),
  err: closed("BundleError", { Ok: schemaOf<null>({ type: "null" }) }),
});
const inflightBundle = closed<InflightBundle>("InflightBundle", {
  bundle_id: bundleId,
  status: {
    ...enumOf(["Pending", "Landed", "Failed", "Invalid"]),
    description: "Invalid: this account has no such bundle",
  },
  landed_slot: orNull(slot),
});

const statusSample = {
  signature: samples.signature,
  state: "landed",
  method: "sendTransaction",
  bundleId: null,
  receivedAt: samples.time,
  slot: samples.slot,
  reason: "confirmed",
  err: null,
  events: [
    {
      kind: "received",
      at: samples.time,
      offsetMs: 0,
      method: "sendTransaction",
      tipLamports: 20_000,
      priorityFeeLamports: 5_000,
    },
    { kind: "queued", at: samples.time, offsetMs: 0.21, route: "partner-1", attempt: 1 },
    {
      kind: "sent",
      at: samples.time,
      offsetMs: 0.4,
      route: "partner-1",
      attempt: 1,
      bytes: 215,
      slot: samples.slot - 2,
      leader: samples.leader,
    },
    {
      kind: "landed",
      at: samples.laterTime,
      offsetMs: 812.4,
      reason: "confirmed",
      slot: samples.slot,
      err: null,
    },
  ],
} as const;

const scopes = ["submit", "batch"] as const;

export const statusMethods: MethodTable = {
  getTransactionStatus: method({
    scopes,
    summary: "Returns the timelines of the account's submissions.",
    description:
      "null: the account has no such submission within the stored history. An array returns an array.",
    params: statusParams,
    result: {
      name: "status",
      schema: anyOf<StatusAnswer | null | readonly (StatusAnswer | null)[]>([
        orNull(statusSchema),
        listOf(orNull(statusSchema), { minItems: 1, maxItems: statusesMax }),
      ]),
    },
    errors: ["store_failed"],
    example: { params: [samples.signature], result: statusSample },
    run: transactionStatus,
  }),
  getBundleStatuses: method({
    scopes,
    summary:
      "Returns the commitment of landed bundles, as block engines do; null: not landed, or unknown.",
    description:
      "confirmation_status is the commitment that the node reports: processed, confirmed, then finalized. " +
      "Without a node, a bundle that was observed in the relay's shreds stays processed.",
    params: bundleParams,
    result: { name: "statuses", schema: valuesSchema("BundleStatuses", landedBundle) },
    errors: ["store_failed"],
    example: {
      params: [[samples.bundleId]],
      result: {
        context: { slot: samples.slot },
        value: [
          {
            bundle_id: samples.bundleId,
            transactions: [samples.signature, samples.secondSignature],
            slot: samples.slot,
            confirmation_status: "finalized",
            err: { Ok: null },
          },
        ],
      },
    },
    run: (call, args) =>
      bundleValues(call, args, (_, bundle) =>
        bundleJson(call.dependencies.bundleCommitments, bundle),
      ),
  }),
  getInflightBundleStatuses: method({
    scopes,
    summary: "Returns the state of bundles, as block engines do.",
    params: bundleParams,
    result: { name: "statuses", schema: valuesSchema("InflightBundleStatuses", inflightBundle) },
    errors: ["store_failed"],
    example: {
      params: [[samples.bundleId]],
      result: {
        context: { slot: samples.slot },
        value: [{ bundle_id: samples.bundleId, status: "Landed", landed_slot: samples.slot }],
      },
    },
    run: (call, args) =>
      bundleValues(call, args, (id, bundle) =>
        inflightJson(call.dependencies.bundleCommitments, id, bundle),
      ),
  }),
};
