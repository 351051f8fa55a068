// sendBatch: sends up to 25 independent transactions; all are checked before the first is sent.
//
// Called through method-table.ts and by raw-endpoints.ts. Its error messages are the specification's exact texts;
// `error.data` has the details.

import { isShredwayError, messageOf, ShredwayError } from "../../core/errors.ts";
import { isJsonArray, type Json } from "../../core/json-rpc/json-text.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { listOf, signatureText } from "../schema/json-schema.ts";
import { type ArgsOf, optional, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { invalid, optionsOf, type Shape, texts } from "../schema/shapes.ts";
import { type Call, method } from "./method.ts";
import {
  type Protection,
  protectionSchema,
  readProtection,
  submitOptionsOf,
} from "./protection.ts";
import { encodingField, transactionText } from "./submission-params.ts";
import { duplicateOf } from "./transaction-admission.ts";

export const batchTransactionsMax = 25;

/** Throws ShredwayError "batch_refused". */
export function checkBatchSize(size: number): void {
  if (size <= batchTransactionsMax) return;
  throw new ShredwayError(
    "batch_refused",
    `request size ${size} exceeded max batch size ${batchTransactionsMax}`,
    { details: { size, max: batchTransactionsMax } },
  );
}

/** Returns the facts of one transaction, or throws the refusal of the whole batch. */
export function sanitise(index: number, read: () => TransactionFacts): TransactionFacts {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof ShredwayError)) throw thrown;
    throw sanitizationError(index, thrown);
  }
}

function sanitizationError(index: number, { reason, message }: ShredwayError): ShredwayError {
  return new ShredwayError("batch_refused", "Transaction sanitization errors", {
    details: { index, cause: reason, detail: message },
  });
}

async function submitAll(
  call: Call,
  transactions: readonly TransactionFacts[],
  protection: Protection,
): Promise<void> {
  const options = submitOptionsOf(protection, null);
  const results = await Promise.allSettled(
    transactions.map((transaction) =>
      call.dependencies.submissions.submit({
        accountId: call.key.accountId,
        method: "sendBatch",
        transactions: [transaction],
        isBundle: false,
        options,
        receivedNs: call.receivedNs,
      }),
    ),
  );
  const failed = results.flatMap((result, index) => {
    if (result.status === "fulfilled") return [];
    const { reason: thrown }: { reason: unknown } = result;
    // Any other error is internal; its text is not for callers.
    if (!(thrown instanceof ShredwayError)) throw thrown;
    return [{ index, cause: thrown.reason, detail: messageOf(thrown) }];
  });
  if (failed.length === 0) return;
  const sent = transactions.filter((_, index) => results[index]?.status === "fulfilled");
  throw new ShredwayError("batch_failed", "failed to send batch, internal error", {
    details: { failed, sent: sent.map(({ signature }) => signature) },
  });
}

/** Returns the signatures in order. `nameOf`: a transaction in messages. */
export async function submitBatch(
  call: Call,
  transactions: readonly TransactionFacts[],
  protection: Protection,
  nameOf = (index: number): string => `transaction ${index}`,
): Promise<readonly string[]> {
  const duplicate = duplicateOf(transactions);
  if (duplicate !== undefined) {
    throw new ShredwayError("batch_refused", "contains duplicate signature", {
      details: { signature: duplicate },
    });
  }
  call.countCalls(transactions.length - 1);
  try {
    await call.admission.verify(transactions, nameOf);
  } catch (thrown) {
    if (!isShredwayError(thrown, "signature_invalid")) throw thrown;
    throw sanitizationError(thrown.details?.index ?? 0, thrown);
  }
  await submitAll(call, transactions, protection);
  return transactions.map(({ signature }) => signature);
}

const list = texts(batchTransactionsMax, transactionText);

const params = {
  transactions: required(
    {
      ...list,
      check: (_, given) => {
        if (!isJsonArray(given)) throw invalid("params[0]", "an array of strings", given);
        checkBatchSize(given.length);
      },
    } satisfies Shape<string[]>,
    "independent transactions",
  ),
  options: optional(
    optionsOf("SendBatchOptions", { encoding: encodingField }, { readElsewhere: protectionSchema }),
    "options of the whole batch",
  ),
};

function run(call: Call, args: ArgsOf<typeof params>, given: readonly Json[]) {
  const protection = readProtection(given, call.uri);
  const nameOf = (index: number) => `params[0][${index}]`;
  const read = args.transactions.map((each, index) => {
    const what = nameOf(index);
    return sanitise(index, () => {
      const transaction = call.admission.read(what, each, args.options.encoding);
      call.admission.checkTip("sendBatch", what, [transaction]);
      return transaction;
    });
  });
  return submitBatch(call, read, protection, nameOf);
}

export const sendBatch = method({
  scopes: ["batch"],
  summary: "Sends 1 to 25 independent transactions.",
  description:
    "All of them are checked before the first is sent; each pays its own tip. A transaction that cannot " +
    "be parsed, or whose signature is invalid, rejects the whole batch with `batch_refused`.",
  params,
  readingOrder: ["options"],
  result: {
    name: "signatures",
    schema: listOf(signatureText, { minItems: 1, maxItems: batchTransactionsMax }),
  },
  errors: ["batch_refused", "batch_failed", "overloaded"],
  example: {
    params: [[samples.transaction, samples.secondTransaction], { encoding: "base64" }],
    result: [samples.signature, samples.secondSignature],
  },
  run,
});
