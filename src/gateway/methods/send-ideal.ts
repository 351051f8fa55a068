// sendIdeal: sends two transactions with the same durable nonce; only one of them can land.
//
// Called through method-table.ts and by raw-endpoints.ts. Both must advance the nonce in their first instruction and use its value
// as lifetime; a pair that could land twice is refused. For a nonce that the service manages for
// the caller's account, missing signatures of the authority are added. Co-signed bytes are sent to
// routes only, never returned.

import { isShredwayError, reworded, ShredwayError } from "../../core/errors.ts";
import { isJsonArray, type Json } from "../../core/json-rpc/json-text.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { NonceInfo, Nonces } from "../nonces/types.ts";
import { listOf, signatureText } from "../schema/json-schema.ts";
import { type ArgsOf, optional, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { invalid, miscounted, optionsOf, readTexts, type Shape } from "../schema/shapes.ts";
import type { SubmitRequest } from "../submission/types.ts";
import { type Call, method } from "./method.ts";
import { noncesOf } from "./nonces.ts";
import {
  type Protection,
  protectionSchema,
  readProtection,
  submitOptionsOf,
} from "./protection.ts";
import { encodingField, submissionErrors, transactionText } from "./submission-params.ts";
import { duplicateOf } from "./transaction-admission.ts";

export const pairSize = 2;

type Pair = readonly [TransactionFacts, TransactionFacts];

/** The nonce that a transaction declares, in base58. */
interface DeclaredNonce {
  readonly account: string;
  readonly authority: string;
  readonly value: string;
}

/** Names of the pair and its transactions in messages. */
interface PairNames {
  readonly pair: string;
  readonly of: (index: number) => string;
}

const paramNames: PairNames = { pair: "params[0]", of: (index) => `params[0][${index}]` };

function refused(names: PairNames, index: number, expected: string, got: string): ShredwayError {
  return new ShredwayError("pair_invalid", `${names.of(index)}: expected ${expected}, got ${got}`, {
    details: { index },
  });
}

/** Adds `index` to the message and the details. */
function withIndex(names: PairNames, index: number, cause: ShredwayError): ShredwayError {
  return reworded(cause, `${names.of(index)}: ${cause.message}`, { index });
}

// ---- declared nonces ------------------------------------------------------------------------

function declaredNonceOf(
  { dependencies }: Call,
  transaction: TransactionFacts,
  names: PairNames,
  index: number,
): DeclaredNonce {
  const { nonce, version, computeUnitPrice, priorityFeeLamports, lifetime } = transaction;
  if (!nonce) {
    const expected = "an AdvanceNonceAccount instruction first";
    throw refused(names, index, expected, "another instruction or none");
  }
  if ((version === 1 ? priorityFeeLamports : computeUnitPrice) === 0n) {
    throw refused(names, index, "a compute-unit price (in version 1: a priority fee) above 0", "0");
  }
  const encode = (bytes: Uint8Array) => dependencies.base58.encode(bytes);
  return {
    account: encode(nonce.account),
    authority: encode(nonce.authority),
    value: encode(lifetime),
  };
}

/**
 * Returns the common nonce. Throws ShredwayError "pair_invalid", "tip_missing" or "tip_too_low".
 */
function checkPair(call: Call, pair: Pair, names: PairNames): DeclaredNonce {
  const first = declaredNonceOf(call, pair[0], names, 0);
  const second = declaredNonceOf(call, pair[1], names, 1);
  for (const field of ["account", "authority", "value"] as const) {
    if (first[field] === second[field]) continue;
    throw refused(names, 1, `the nonce ${field} of ${names.of(0)}, ${first[field]}`, second[field]);
  }
  const duplicate = duplicateOf(pair);
  if (duplicate !== undefined)
    throw refused(names, 1, `a signature other than that of ${names.of(0)}`, duplicate);
  for (const [index, each] of pair.entries()) {
    call.admission.checkTip("sendIdeal", names.of(index), [each]);
  }
  return first;
}

// ---- nonce on the chain ----------------------------------------------------------------------

/** Throws ShredwayError "nonce_stale" or "pair_invalid". */
function checkPresent(
  { value, authority }: DeclaredNonce,
  present: NonceInfo,
  names: PairNames,
): void {
  if (authority !== present.nonceAuthority) {
    throw refused(names, 0, `the nonce's authority ${present.nonceAuthority}`, authority);
  }
  if (value === present.nonce) return;
  throw new ShredwayError(
    "nonce_stale",
    `${names.pair}: expected the present nonce value ${present.nonce}, got ${value}; sign again with it`,
    { details: { expected: present.nonce, got: value } },
  );
}

// ---- managed nonces --------------------------------------------------------------------------

/** Returns the final bytes; a completely signed transaction is unchanged. */
async function coSigned(nonces: Nonces, account: string, wire: Uint8Array) {
  try {
    return await nonces.coSign(account, wire);
  } catch (thrown) {
    const isRefused = isShredwayError(thrown, "co_signing_refused");
    if (isRefused && thrown.details?.refusal === "nothing_missing") return wire;
    throw thrown;
  }
}

/** Returns the pair with all signatures verified and the present nonce value checked. */
async function completed(
  call: Call,
  pair: Pair,
  nonce: DeclaredNonce,
  names: PairNames,
): Promise<Pair> {
  const nonces = noncesOf(call, "sendIdeal");
  const { account } = nonce;
  const owner = nonces.ownerOf(account);
  if (owner === null) {
    // Verify first, because it does not need the node.
    await call.admission.verify(pair, names.of);
    // If the lifetime were a recent blockhash instead of the nonce value, both could land.
    checkPresent(nonce, await nonces.of(account, call.key.accountId), names);
    return pair;
  }
  if (owner.accountId !== call.key.accountId) {
    throw refused(
      names,
      0,
      "your own nonce account, or the one that the service manages for you",
      account,
    );
  }
  checkPresent(nonce, await nonces.of(account, call.key.accountId), names);
  const complete = async ({ wire }: TransactionFacts, index: number) => {
    const bytes = await coSigned(nonces, account, wire).catch((thrown: unknown) => {
      throw thrown instanceof ShredwayError ? withIndex(names, index, thrown) : thrown;
    });
    return call.admission.inspect(names.of(index), bytes);
  };
  const signed: Pair = [await complete(pair[0], 0), await complete(pair[1], 1)];
  await call.admission.verify(signed, names.of);
  return signed;
}

// ---- the method -----------------------------------------------------------------------------

const pairOfTexts: Shape<readonly [string, string]> = {
  schema: { type: "array", minItems: pairSize, maxItems: pairSize, items: transactionText },
  reader: (what) => (given) => {
    if (!isJsonArray(given)) throw invalid(what, `an array of ${pairSize} strings`, given);
    if (given.length !== pairSize) throw miscounted(what, String(pairSize), given.length);
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

/** Returns both signatures. */
export async function submitIdeal(
  call: Call,
  transactions: Pair,
  protection: Protection,
  names: PairNames,
): Promise<readonly string[]> {
  const options = submitOptionsOf(protection, null);
  const nonce = checkPair(call, transactions, names);
  call.countCalls(pairSize - 1);
  const pair = await completed(call, transactions, nonce, names);
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

function run(call: Call, args: ArgsOf<typeof params>, given: readonly Json[]) {
  const { encoding } = args.options;
  const protection = readProtection(given, call.uri);
  const [first, second] = args.transactions;
  const read = (text: string, index: number) =>
    call.admission.read(paramNames.of(index), text, encoding);
  return submitIdeal(call, [read(first, 0), read(second, 1)], protection, paramNames);
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
