// getReceipt, and the receipts of submitting calls.
//
// Called through method-table.ts and by request-context.ts. A receipt is signed after the routes have taken
// the submission and the store has persisted it, so that it does not delay its own transaction.

import { ShredwayError } from "../../core/errors.ts";
import { isJsonObject, type Json, writeJson } from "../../core/json-rpc/json-text.ts";
import { receiptOf } from "../receipts/receipt.ts";
import { recorderOf } from "../receipts/submission-recorder.ts";
import { schemaOf, signatureText } from "../schema/json-schema.ts";
import { type ArgsOf, optional, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { field, flag, oneOf, optionsOf, text } from "../schema/shapes.ts";
import type { TransactionStatus } from "../submission/types.ts";
import { type Call, type MethodTable, method } from "./method.ts";
import { checkedSignature } from "./statuses.ts";

const receiptOption = "receipt";

/** Whether an options object of the call requests a receipt. Throws ShredwayError "value_invalid". */
export function readReceiptOption(params: readonly Json[]): boolean {
  let isRequested = false;
  for (const [position, given] of params.entries()) {
    if (!isJsonObject(given)) continue;
    const json = given[receiptOption];
    if (json === undefined || json === null) continue;
    if (flag.reader(`params[${position}].${receiptOption}`)(json)) isRequested = true;
  }
  return isRequested;
}

function signed(
  { dependencies }: Pick<Call, "dependencies">,
  statement: "accepted" | "final",
  statuses: readonly TransactionStatus[],
): string {
  const { signer, clock } = dependencies;
  const receipt = receiptOf({
    statement,
    statuses,
    slot: dependencies.slot(),
    nowNs: clock.nowNs(),
  });
  return signer.sign("shredway-receipt", writeJson(receipt));
}

interface WithReceipt {
  readonly result: unknown;
  /** null: the submission was accepted, but its receipt could not be made, which was reported. */
  readonly receipt: string | null;
}

/**
 * Runs a submitting method and signs a receipt of its acceptance. Rejects as the method does; a problem with
 * the receipt is passed to `report`, because the submission is accepted already.
 */
export async function withReceipt(
  call: Call,
  submit: (recorded: Call) => unknown,
  report: (thrown: unknown) => void,
): Promise<WithReceipt> {
  const { dependencies, key } = call;
  const { submissions, signatures } = recorderOf(dependencies.submissions);
  const result = await submit({ ...call, dependencies: { ...dependencies, submissions } });
  try {
    const statuses = await dependencies.submissions.statuses(key.accountId, signatures);
    const known = statuses.filter((status) => status !== null);
    if (known.length !== signatures.length || known.length === 0) {
      throw new ShredwayError("internal", "receipt: no status of an accepted transaction");
    }
    return { result, receipt: signed(call, "accepted", known) };
  } catch (thrown) {
    report(thrown);
    return { result, receipt: null };
  }
}

const statements = ["final", "accepted"] as const;

const params = {
  signature: required(text(signatureText), "signature of a submission of this account"),
  options: optional(
    optionsOf("ReceiptOptions", {
      statement: field(oneOf(statements), {
        description: "final: the final state; accepted: the acceptance only, at any time",
        absent: "final",
        fallback: "final",
      }),
    }),
    "which statement to sign",
  ),
};

async function run(
  call: Call,
  { signature, options: { statement } }: ArgsOf<typeof params>,
): Promise<string> {
  checkedSignature(call, "params[0]", signature);
  const { submissions } = call.dependencies;
  const [status] = await submissions.statuses(call.key.accountId, [signature]);
  if (!status) {
    throw new ShredwayError(
      "receipt_unknown",
      `params[0]: this account has no submission ${signature} within the stored history`,
    );
  }
  if (statement === "final" && status.state === "open") {
    throw new ShredwayError(
      "receipt_not_final",
      `params[0]: ${signature} is open; expected a final state; retry later, or request ` +
        '{"statement": "accepted"}',
    );
  }
  return signed(call, statement, [status]);
}

export const receiptMethods: MethodTable = {
  getReceipt: method({
    scopes: ["submit", "batch"],
    summary: "Returns a signed statement about the final state of a submission, or its acceptance.",
    description:
      "The result is a JWS in compact serialization (RFC 7515, EdDSA). The keys are at " +
      "/.well-known/shredway-keys.json; docs/receipts.md describes the content.",
    params,
    result: {
      name: "receipt",
      schema: schemaOf<string>({
        type: "string",
        pattern: "^[\\w-]+\\.[\\w-]+\\.[\\w-]{86}$",
        description: "JWS in compact serialization",
      }),
    },
    errors: ["receipt_unknown", "receipt_not_final", "store_failed"],
    example: { params: [samples.signature], result: samples.receipt },
    run,
  }),
};
