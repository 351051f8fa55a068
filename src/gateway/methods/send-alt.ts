// sendAlt: one transaction, for the slots of alternative-partner leaders.
//
// Called through table.ts. Which slots those are, and what the fallback means, is the plan's business:
// the leader may change between the check here and the sending.

import { ShredwayError } from "../../core/errors.ts";
import { isJsonObject, type Json } from "../../json-rpc/json-text.ts";
import type { TransactionFacts } from "../../transactions/facts.ts";
import { encodings } from "../../transactions/transaction-text.ts";
import { paysPerUnit, unitFeeText } from "../../transactions/unit-fee.ts";
import type { Call, Method } from "../method.ts";
import { Config, invalid, text } from "../params.ts";

/** With fallback, too: whoever asks for the partner's auction has to pay for it. */
function checkUnitFee(transaction: TransactionFacts, unitLamports: bigint): void {
  if (paysPerUnit(transaction, unitLamports)) return;
  const { computeUnitPrice, computeUnitLimit, priorityFeeLamports } = transaction;
  throw new ShredwayError(
    "priority_fee_too_low",
    `params[0]: ${unitFeeText(transaction, unitLamports)}`,
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

async function run(call: Call, params: readonly Json[]): Promise<readonly string[]> {
  const { admission, uri, settings } = call;
  if (!isJsonObject(params[1])) throw invalid("params[1]", "an object", params[1]);
  const config = new Config("params[1]", params[1]);
  const encoding = config.oneOf("encoding", encodings);
  const options = {
    swqosOnly: false,
    mevProtect: uri.mevProtect,
    revertProtection: config.flag("revertProtection"),
    enableFallback: config.flag("enableFallback"),
    resendsMax: null,
  };
  if (uri.swqosOnly) {
    throw new ShredwayError(
      "value_invalid",
      "swqos-only: expected false for sendAlt, which goes to alternative partners; got true",
    );
  }
  const transaction = admission.read("params[0]", text("params[0]", params[0]), encoding);
  admission.checkTip("params[0]", [transaction]);
  checkUnitFee(transaction, settings.partnerUnitLamports);
  await admission.verify([transaction], () => "params[0]");
  await call.parts.submissions.submit({
    accountId: call.key.accountId,
    method: "sendAlt",
    transactions: [transaction],
    isBundle: false,
    options,
    receivedNs: call.receivedNs,
  });
  return [transaction.signature];
}

export const sendAlt: Method = { scopes: ["submit"], run };
