// sendBundle: sends 1 to 4 transactions that land together, in order, or not at all; 5 below /api/v1.
//
// Called through method-table.ts and by raw-endpoints.ts.

import { ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import {
  blockEngineBundleMax,
  bundleTransactionsMax,
} from "../../core/transactions/bundle-limits.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { anyOf, bundleId, described, listOf, signatureText } from "../schema/json-schema.ts";
import { type ArgsOf, optional, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { anything, optionsOf, readTexts } from "../schema/shapes.ts";
import { bundleIdOf } from "../submission/tracked-transaction.ts";
import { type Call, method } from "./method.ts";
import {
  type Protection,
  protectionSchema,
  readProtection,
  submitOptionsOf,
} from "./protection.ts";
import { encodingField, submissionErrors, transactionText } from "./submission-params.ts";
import { duplicateOf } from "./transaction-admission.ts";

function checkBundle(transactions: readonly TransactionFacts[]): void {
  const duplicate = duplicateOf(transactions);
  if (duplicate !== undefined) {
    throw new ShredwayError(
      "bundle_invalid",
      `duplicate transaction ${duplicate}; expected different transactions`,
    );
  }
  const behind = transactions.findIndex(({ hasFrontKey }, index) => hasFrontKey && index > 0);
  if (behind > 0) {
    throw new ShredwayError(
      "bundle_invalid",
      `transaction with a "don't front" marker at index ${behind}; expected it at index 0`,
      { details: { index: behind } },
    );
  }
}

/** Returns the signatures; below /api/v1 the bundle id. `nameOf`: a transaction in messages. */
export async function submitBundle(
  call: Call,
  transactions: readonly TransactionFacts[],
  protection: Protection,
  nameOf = (index: number): string => `transaction ${index}`,
): Promise<string | readonly string[]> {
  checkBundle(transactions);
  if (protection.swqosOnly) {
    throw new ShredwayError(
      "value_invalid",
      "swqosOnly: expected false for a bundle, which is sent to block builders; got true",
    );
  }
  call.countCalls(transactions.length - 1);
  call.admission.checkTip("sendBundle", "bundle", transactions);
  await call.admission.verify(transactions, nameOf);
  await call.dependencies.submissions.submit({
    accountId: call.key.accountId,
    method: "sendBundle",
    transactions,
    isBundle: true,
    options: submitOptionsOf(protection, null),
    receivedNs: call.receivedNs,
    ingress: call.ingress,
  });
  const id = bundleIdOf(transactions.map(({ signature }) => signature));
  call.setBundleId(id);
  return call.isBlockEngine ? id : transactions.map(({ signature }) => signature);
}

const largerElsewhere = `, or up to ${blockEngineBundleMax} at /api/v1/bundles`;

/** The limit is that of the call's path. */
function readBundle({ isBlockEngine }: Call, given: Json | undefined): string[] {
  return isBlockEngine
    ? readTexts("params[0]", given, blockEngineBundleMax)
    : readTexts("params[0]", given, bundleTransactionsMax, largerElsewhere);
}

const params = {
  transactions: required(
    anything({
      type: "array",
      minItems: 1,
      maxItems: bundleTransactionsMax,
      items: transactionText,
    }),
    `transactions in the order in which they land; below /api/v1 up to ${blockEngineBundleMax}`,
  ),
  options: optional(
    optionsOf(
      "SendBundleOptions",
      { encoding: encodingField },
      { readElsewhere: protectionSchema },
    ),
    "options of the whole bundle",
  ),
};

function run(call: Call, args: ArgsOf<typeof params>, given: readonly Json[]) {
  const texts = readBundle(call, args.transactions);
  const protection = readProtection(given, call.uri);
  const nameOf = (index: number) => `params[0][${index}]`;
  const read = texts.map((each, i) => call.admission.read(nameOf(i), each, args.options.encoding));
  return submitBundle(call, read, protection, nameOf);
}

export const sendBundle = method({
  scopes: ["submit"],
  summary: "Sends 1 to 4 transactions that land together, in order, or not at all.",
  description:
    "It is sent to block builders. Below /api/v1 it may have 5 transactions, as at block engines. A single transaction without `revertProtection` also uses the routes " +
    "of sendTransaction. The bundle pays one tip in total. Below /api/v1 the result is the bundle id.",
  params,
  readingOrder: ["options"],
  result: {
    name: "signatures",
    schema: anyOf<string | readonly string[]>([
      listOf(signatureText, { minItems: 1, maxItems: bundleTransactionsMax }),
      described("below /api/v1: the bundle id", bundleId),
    ]),
  },
  errors: [...submissionErrors, "bundle_invalid"],
  example: {
    params: [[samples.transaction, samples.secondTransaction], { encoding: "base64" }],
    result: [samples.signature, samples.secondSignature],
  },
  run,
});
