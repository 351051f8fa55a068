// sendTransaction: sends one transaction over every route that its options allow.
//
// Called through method-table.ts. Compatible with the method of a node, with additional protective options
// in the third parameter and the URL.

import type { Json } from "../../core/json-rpc/json-text.ts";
import { u64Max } from "../../core/primitives.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { Encoding } from "../../core/transactions/transaction-text.ts";
import { signatureText } from "../schema/json-schema.ts";
import { type ArgsOf, optional, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import {
  count,
  field,
  integer,
  nullableField,
  oneOf,
  optionsOf,
  switchField,
  text,
} from "../schema/shapes.ts";
import type { TakenRequest } from "../submission/taken-request.ts";
import { bundleIdOf } from "../submission/tracked-transaction.ts";
import type { SubmitOptions } from "../submission/types.ts";
import { type Call, method } from "./method.ts";
import {
  type Protection,
  protectionSchema,
  readProtection,
  submitOptionsOf,
} from "./protection.ts";
import { encodingField, submissionErrors, transactionText } from "./submission-params.ts";

const u32Max = 0xffff_ffff;
const commitments = ["processed", "confirmed", "finalized"] as const;

/** Wall time of a monotonic time in the past. */
function wallNsOf(monotonicNs: bigint, { dependencies: { clock } }: Call): bigint {
  return clock.nowNs() - (clock.monotonicNs() - monotonicNs);
}

function isOwnBundle({ isBlockEngine, uri }: Call): boolean {
  return isBlockEngine && uri.bundleOnly;
}

export function isProtected({ mevProtect, swqosOnly, revertProtection }: Protection): boolean {
  return mevProtect || swqosOnly || revertProtection;
}

/** Sends a transaction before it is recorded, if every route may have it. null: it was not sent. */
function sendNow(
  call: Call,
  { signature, wire }: TransactionFacts,
  options: SubmitOptions,
): TakenRequest | null {
  const { fastSends } = call.dependencies;
  if (!fastSends?.mayTake(call.key.accountId) || isProtected(options) || isOwnBundle(call)) {
    return null;
  }
  if (fastSends.isKnown(signature)) return null;
  return call.admission.mayVerifyNow(wire) ? fastSends.send(wire) : null;
}

/** A decoded transaction, and what its call requires. */
interface Sending {
  readonly transaction: TransactionFacts;
  /** Its place in the request, for errors. */
  readonly what: string;
  readonly options: SubmitOptions;
  readonly minContextSlot: bigint | null;
  /** Absent: none. */
  readonly preflight?: (() => Promise<void>) | undefined;
}

/** Checks and submits a transaction; also used for transactions from raw bodies. */
export async function checkAndSubmit(call: Call, sending: Sending): Promise<void> {
  const { transaction, what, options, minContextSlot, preflight } = sending;
  const { admission, dependencies } = call;
  admission.checkTip("sendTransaction", what, [transaction]);
  const claimed = call.fastPath?.claimOf(transaction.wire) ?? null;
  // Nothing may refuse it afterwards.
  const isUnconditional = minContextSlot === null && !preflight;
  const sent = !claimed && isUnconditional ? sendNow(call, transaction, options) : null;
  const taken = claimed ?? sent;
  try {
    if (!taken) await admission.verify([transaction], () => what);
    admission.checkContext(minContextSlot);
    await preflight?.();
    await submitTransaction(call, transaction, options, taken);
  } finally {
    if (sent) dependencies.fastSends?.abandoned(sent);
  }
}

async function submitTransaction(
  call: Call,
  transaction: TransactionFacts,
  options: SubmitOptions,
  taken: TakenRequest | null,
): Promise<void> {
  const isBundle = isOwnBundle(call);
  const takenNs = taken ? wallNsOf(taken.takenNs, call) : call.receivedNs;
  const transactions = [transaction];
  try {
    await call.dependencies.submissions.submit({
      accountId: call.key.accountId,
      method: "sendTransaction",
      transactions,
      isBundle,
      options: isBundle ? { ...options, revertProtection: true } : options,
      receivedNs: takenNs < call.receivedNs ? takenNs : call.receivedNs,
      ingress: call.ingress,
      taken: taken ?? undefined,
    });
  } catch (thrown) {
    call.fastPath?.forget(); // the next calls may be refused for the same reason
    throw thrown;
  }
  if (isBundle) call.setBundleId(bundleIdOf(transactions.map(({ signature }) => signature)));
}

const params = {
  transaction: required(text(transactionText), "the transaction"),
  options: optional(
    optionsOf(
      "SendTransactionOptions",
      {
        encoding: encodingField,
        skipPreflight: switchField("skips the simulation; true is recommended"),
        preflightCommitment: field(oneOf(commitments), {
          description: "commitment of the state for the simulation",
          absent: "finalized",
          fallback: "finalized",
        }),
        minContextSlot: field(integer(u64Max), {
          description: "the call fails while the current slot is lower",
          absent: null,
          alias: "min_context_slot",
        }),
        maxRetries: nullableField(count(u32Max), {
          description:
            "maximum number of resends; null: none; default: resend until the transaction ends",
          absent: null,
          ofNull: 0,
          alias: "max_retries",
        }),
      },
      {
        values: (read, given) => ({
          encoding: read.encoding(given),
          skipPreflight: read.skipPreflight(given),
          preflightCommitment: read.preflightCommitment(given),
          minContextSlot: read.minContextSlot(given),
          maxRetries: read.maxRetries(given),
        }),
        readElsewhere: protectionSchema,
      },
    ),
    "the options of the node's method",
  ),
  protection: optional(
    optionsOf("Protection", {}, { readElsewhere: protectionSchema }),
    "protective options; they also count in the second parameter",
  ),
};

async function run(
  call: Call,
  args: ArgsOf<typeof params>,
  given: readonly Json[],
): Promise<string> {
  const { admission, uri } = call;
  const { encoding, skipPreflight, preflightCommitment: commitment } = args.options;
  const { minContextSlot, maxRetries: resendsMax } = args.options;
  const options = submitOptionsOf(readProtection(given, uri), resendsMax);
  const what = "params[0]";
  const transaction = admission.read(what, args.transaction, encoding);
  const preflight = () => admission.preflight(transaction.wire, { commitment, minContextSlot });
  await checkAndSubmit(call, {
    transaction,
    what,
    options,
    minContextSlot,
    preflight: skipPreflight ? undefined : preflight,
  });
  const isPlain = skipPreflight && minContextSlot === null && !isProtected(options);
  if (isPlain && encoding !== null) teach(call, encoding);
  return transaction.signature;
}

/** The next calls of the connection that have the same form may be sent before they are read. */
export function teach(call: Call, encoding: Encoding): void {
  const mayTake = call.dependencies.fastSends?.mayTake(call.key.accountId) ?? false;
  if (mayTake && !isOwnBundle(call)) call.fastPath?.accepted(encoding === "base58");
  else call.fastPath?.forget();
}

export const sendTransaction = method({
  scopes: ["submit"],
  summary: "Sends a transaction over every route that its options allow.",
  description:
    "Compatible with the method of a node. A returned signature means that at least one route has the " +
    "transaction in its queue and that it is stored on disk. It does not mean that it landed.",
  params,
  readingOrder: ["options", "protection"],
  result: { name: "signature", schema: signatureText },
  errors: [...submissionErrors, "context_slot_ahead", "preflight_failed", "rpc_failed"],
  example: {
    params: [samples.transaction, { encoding: "base64", skipPreflight: true, maxRetries: 0 }],
    result: samples.signature,
  },
  run,
});
