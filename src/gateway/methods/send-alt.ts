// sendAlt: sends one transaction for the slots of alternative-partner leaders.
//
// Called through method-table.ts and by raw-endpoints.ts. The send plan determines the slots and the fallback, because the leader
// may change between this check and sending.

import { ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { paysPerUnit, unitFeeText } from "../../core/transactions/unit-fee.ts";
import { listOf, signatureText } from "../schema/json-schema.ts";
import { type ArgsOf, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { flag, invalid, optionsOf, requiredField, type Shape, text } from "../schema/shapes.ts";
import { type Call, method } from "./method.ts";
import { type Protection, protectionSchema, readProtection } from "./protection.ts";
import { encodingField, submissionErrors, transactionText } from "./submission-params.ts";

/** Also applies with fallback: the partner's auction requires the fee. */
function checkUnitFee(what: string, transaction: TransactionFacts, unitLamports: bigint): void {
  if (paysPerUnit(transaction, unitLamports)) return;
  const { computeUnitPrice, computeUnitLimit, priorityFeeLamports } = transaction;
  throw new ShredwayError(
    "priority_fee_too_low",
    `${what}: ${unitFeeText(transaction, unitLamports)}`,
    {
      details: {
        minimumLamportsPerUnit: unitLamports,
        computeUnitLimit,
        priorityFeeLamports,
        ...(transaction.version !== 1 && { computeUnitPrice }),
      },
    },
  );
}

function checkAltProtection({ swqosOnly }: Protection): void {
  if (!swqosOnly) return;
  throw new ShredwayError(
    "value_invalid",
    "swqosOnly: expected false for sendAlt, which sends to alternative partners; got true",
  );
}

interface AltTransaction {
  /** Its name in messages. */
  readonly what: string;
  readonly read: () => TransactionFacts;
}

/** Returns an array with the signature. */
export async function submitAlt(
  call: Call,
  { what, read }: AltTransaction,
  protection: Protection,
  enableFallback: boolean,
): Promise<readonly string[]> {
  const { admission, settings } = call;
  checkAltProtection(protection);
  const { mevProtect, swqosOnly, revertProtection } = protection;
  const transaction = read();
  admission.checkTip("sendAlt", what, [transaction]);
  checkUnitFee(what, transaction, settings.partnerUnitLamports);
  await admission.verify([transaction], () => what);
  await call.dependencies.submissions.submit({
    accountId: call.key.accountId,
    method: "sendAlt",
    transactions: [transaction],
    isBundle: false,
    options: { mevProtect, swqosOnly, revertProtection, enableFallback, resendsMax: null },
    receivedNs: call.receivedNs,
  });
  return [transaction.signature];
}

/** Null is refused too: both values surprise a client that did not choose. */
const requiredFlag: Shape<boolean> = {
  schema: flag.schema,
  reader: (what) => (json) => {
    if (typeof json === "boolean") return json;
    throw invalid(what, "true or false; sendAlt requires it", json);
  },
};

const params = {
  transaction: required(text(transactionText), "the transaction"),
  options: required(
    optionsOf(
      "SendAltOptions",
      {
        encoding: encodingField,
        enableFallback: requiredField(
          requiredFlag,
          "also uses the routes of sendTransaction if no partner accepts it",
        ),
      },
      { readElsewhere: protectionSchema },
    ),
    "options of the transaction",
  ),
};

function run(call: Call, args: ArgsOf<typeof params>, given: readonly Json[]) {
  const { encoding, enableFallback } = args.options;
  const what = "params[0]";
  const read = () => call.admission.read(what, args.transaction, encoding);
  return submitAlt(call, { what, read }, readProtection(given, call.uri), enableFallback);
}

export const sendAlt = method({
  scopes: ["submit"],
  summary: "Sends a transaction for the slots of alternative-partner leaders.",
  description:
    "Without fallback it is sent to the partner that leads, and nowhere else. The minimum priority fee " +
    "per compute unit also applies with fallback.",
  params,
  readingOrder: ["options"],
  result: { name: "signatures", schema: listOf(signatureText, { minItems: 1, maxItems: 1 }) },
  errors: [...submissionErrors, "priority_fee_too_low", "non_partner_slot"],
  example: {
    params: [samples.transaction, { encoding: "base64", enableFallback: true }],
    result: [samples.signature],
  },
  run,
});
