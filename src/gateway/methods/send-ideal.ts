// sendIdeal: two transactions of one durable nonce, of which only one can land.
//
// Called through table.ts. Whoever's the nonce is, both must advance it first and live by its value:
// two that could land both are refused here. Of a nonce that the service keeps for the caller's
// account the authority's missing signatures are put in; nobody else's nonce is touched. Never gives
// out what was co-signed: it leaves by routes alone.

import { isShredwayError, reworded, ShredwayError } from "../../core/errors.ts";
import { isJsonArray, type Json } from "../../core/json-rpc/json-text.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { NonceInfo, Nonces } from "../nonces/types.ts";
import { listOf, signatureText } from "../schema/json-schema.ts";
import { type ArgsOf, optional, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { invalid, optionsOf, readTexts, type Shape } from "../schema/shapes.ts";
import type { SubmitRequest } from "../submission/types.ts";
import { type Call, method } from "./method.ts";
import { noncesOf } from "./nonces.ts";
import { protectionSchema, readProtection } from "./protection.ts";
import { encodingField, submissionErrors, transactionText } from "./submission-params.ts";
import { duplicateOf } from "./transaction-admission.ts";

const pairSize = 2;

type Pair = readonly [TransactionFacts, TransactionFacts];

/** The nonce of a transaction as it says itself, in base58. */
interface NonceWords {
  readonly account: string;
  readonly authority: string;
  readonly value: string;
}

function nameOf(index: number): string {
  return `params[0][${index}]`;
}

function refused(index: number, expected: string, got: string): ShredwayError {
  return new ShredwayError("pair_invalid", `${nameOf(index)}: expected ${expected}, got ${got}`, {
    details: { index },
  });
}

/** With `index` before the message and among the details. */
function named(index: number, cause: ShredwayError): ShredwayError {
  return reworded(cause, `${nameOf(index)}: ${cause.message}`, { index });
}

// ---- what the two say -----------------------------------------------------------------------

function nonceWordsOf(
  { dependencies }: Call,
  transaction: TransactionFacts,
  index: number,
): NonceWords {
  const { nonce, version, computeUnitPrice, priorityFeeLamports, lifetime } = transaction;
  if (!nonce) {
    const expected = "the advance of a durable nonce as the first instruction";
    throw refused(index, expected, "another one, or none");
  }
  if ((version === 1 ? priorityFeeLamports : computeUnitPrice) === 0n) {
    throw refused(index, "a compute-unit price (in version 1: a priority fee) above 0", "0");
  }
  const encode = (bytes: Uint8Array) => dependencies.base58.encode(bytes);
  return {
    account: encode(nonce.account),
    authority: encode(nonce.authority),
    value: encode(lifetime),
  };
}

/** The nonce of both. Throws "pair_invalid", "tip_missing" or "tip_too_low". */
function checkPair(call: Call, pair: Pair): NonceWords {
  const first = nonceWordsOf(call, pair[0], 0);
  const second = nonceWordsOf(call, pair[1], 1);
  for (const word of ["account", "authority", "value"] as const) {
    if (first[word] === second[word]) continue;
    throw refused(1, `the nonce ${word} of ${nameOf(0)}, ${first[word]}`, second[word]);
  }
  const twice = duplicateOf(pair);
  if (twice !== undefined) throw refused(1, `another signature than ${nameOf(0)} has`, twice);
  for (const [index, each] of pair.entries()) call.admission.checkTip(nameOf(index), [each]);
  return first;
}

// ---- what the chain says --------------------------------------------------------------------

/** Throws "nonce_stale" or "pair_invalid". */
function checkPresent({ value, authority }: NonceWords, present: NonceInfo): void {
  if (authority !== present.nonceAuthority) {
    throw refused(0, `the nonce's authority ${present.nonceAuthority}`, authority);
  }
  if (value === present.nonce) return;
  throw new ShredwayError(
    "nonce_stale",
    `params[0]: expected the present nonce value ${present.nonce}, got ${value}`,
    { details: { expected: present.nonce, got: value } },
  );
}

// ---- a nonce that the service keeps ---------------------------------------------------------

/** The final bytes. What has all signatures already stays as it is. */
async function coSigned(nonces: Nonces, account: string, wire: Uint8Array, index: number) {
  try {
    return await nonces.coSign(account, wire);
  } catch (thrown) {
    if (!(thrown instanceof ShredwayError)) throw thrown;
    const isRefused = isShredwayError(thrown, "co_signing_refused");
    if (isRefused && thrown.details?.refusal === "nothing_missing") return wire;
    throw named(index, thrown);
  }
}

/** The final bytes, all signatures verified, and the nonce's value the present one. */
async function completed(call: Call, pair: Pair, nonce: NonceWords): Promise<Pair> {
  const nonces = noncesOf(call, "sendIdeal");
  const { account } = nonce;
  const owner = nonces.ownerOf(account);
  if (owner === null) {
    // First what costs the node nothing.
    await call.admission.verify(pair, nameOf);
    // By a recent blockhash instead of the value both could land.
    checkPresent(nonce, await nonces.of(account));
    return pair;
  }
  if (owner.accountId !== call.key.accountId) {
    throw refused(0, "a nonce account of your own, or the one kept for you", account);
  }
  checkPresent(nonce, await nonces.of(account));
  const complete = async ({ wire }: TransactionFacts, index: number) =>
    call.admission.inspect(nameOf(index), await coSigned(nonces, account, wire, index));
  const signed: Pair = [await complete(pair[0], 0), await complete(pair[1], 1)];
  await call.admission.verify(signed, nameOf);
  return signed;
}

// ---- the method -----------------------------------------------------------------------------

const pairOfTexts: Shape<readonly [string, string]> = {
  schema: { type: "array", minItems: pairSize, maxItems: pairSize, items: transactionText },
  reader: (what) => (given) => {
    if (!isJsonArray(given)) throw invalid(what, `an array of ${pairSize} strings`, given);
    if (given.length !== pairSize) throw invalid(what, `${pairSize} elements`, given.length);
    const [first = "", second = ""] = readTexts(what, given, pairSize);
    return [first, second];
  },
};

const params = {
  transactions: required(
    pairOfTexts,
    "two transactions with the same durable nonce; only one of them can land",
  ),
  options: optional(
    optionsOf("SendIdealOptions", { encoding: encodingField }, { readElsewhere: protectionSchema }),
    "options of both transactions",
  ),
};

async function run(
  call: Call,
  args: ArgsOf<typeof params>,
  given: readonly Json[],
): Promise<readonly string[]> {
  const { encoding } = args.options;
  const options = { ...readProtection(given, call.uri), resendsMax: null };
  const [first, second] = args.transactions;
  const read = (text: string, index: number) => call.admission.read(nameOf(index), text, encoding);
  const transactions: Pair = [read(first, 0), read(second, 1)];
  const nonce = checkPair(call, transactions);
  call.takeMore(pairSize - 1);
  const pair = await completed(call, transactions, nonce);
  const requestOf = (transaction: TransactionFacts): SubmitRequest => ({
    accountId: call.key.accountId,
    method: "sendIdeal",
    transactions: [transaction],
    isBundle: false,
    options,
    receivedNs: call.receivedNs,
  });
  await call.dependencies.submissions.submitPair(requestOf(pair[0]), requestOf(pair[1]));
  return pair.map(({ signature: each }) => each);
}

export const sendIdeal = method({
  scopes: ["submit"],
  summary: "Sends two transactions with the same durable nonce; only one of them can land.",
  description:
    "Usually one has a high priority fee for staked partners, and one a high tip for block builders; " +
    "both are sent to both. With a managed nonce account the authority's signatures may be missing.",
  params,
  readingOrder: ["options"],
  result: {
    name: "signatures",
    schema: listOf(signatureText, { minItems: pairSize, maxItems: pairSize }),
  },
  errors: [
    ...submissionErrors,
    "pair_invalid",
    "co_signing_refused",
    "nonce_stale",
    "nonce_invalid",
    "nonce_in_use",
    "upstream_missing",
    "rpc_failed",
  ],
  example: {
    params: [[samples.transaction, samples.secondTransaction], { encoding: "base64" }],
    result: [samples.signature, samples.secondSignature],
  },
  run,
});
