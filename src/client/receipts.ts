// Receipts: verification, and their content.
//
// Used by users' programs and by `shredway verify-receipt`. docs/receipts.md describes the fields.

import { readTipSnapshot } from "./answers.ts";
import { Fields, listOf } from "./fields.ts";
import { readJson } from "./json.ts";
import type { KeySet, PublishedKey, Receipt, ReceiptEnd, ReceiptTransaction } from "./responses.ts";
import {
  type SigningKeys,
  type Statement,
  statementInvalid,
  verifyStatement,
} from "./signed-statement.ts";
import { readTipHistory, tipHistoryPath } from "./tip-stream.ts";
import { endStates, type TipHistory, type TipSnapshot } from "./types.ts";

function readEnd(value: unknown, where: string): ReceiptEnd | null {
  if (value === null) return null;
  const fields = new Fields<ReceiptEnd>(value, where);
  return {
    state: fields.oneOf("state", endStates),
    at: fields.text("at"),
    reason: fields.text("reason"),
    slot: fields.integerOrNull("slot"),
    err: fields.value("err") ?? null,
    sibling: fields.textOrNull("sibling"),
  };
}

function readTransaction(value: unknown, where: string): ReceiptTransaction {
  const fields = new Fields<ReceiptTransaction>(value, where);
  return {
    signature: fields.text("signature"),
    receivedAt: fields.text("receivedAt"),
    tipLamports: fields.integerOrNull("tipLamports"),
    routes: fields.texts("routes"),
    held: fields.textOrNull("held"),
    end: readEnd(fields.value("end"), `${where}.end`),
  };
}

/**
 * Returns the content of a receipt if one of the keys has signed it. Rejects with ShredwayCallError
 * "statement_invalid", or "signing_key_unknown" if it names another key.
 */
export async function verifyReceipt(receipt: string, keys: SigningKeys): Promise<Receipt> {
  const payload = await verifyStatement({ jws: receipt, type: "shredway-receipt" }, keys);
  let value: unknown;
  try {
    value = readJson(new TextDecoder("utf-8", { fatal: true }).decode(payload));
  } catch {
    throw statementInvalid("expected a receipt in JSON, got another content");
  }
  const fields = new Fields<Receipt>(value, "receipt");
  return {
    statement: fields.oneOf("statement", ["accepted", "final"]),
    iat: fields.number("iat"),
    time: fields.text("time"),
    slot: fields.integerOrNull("slot"),
    method: fields.text("method"),
    bundleId: fields.textOrNull("bundleId"),
    transactions: fields.list("transactions", readTransaction),
  };
}

/**
 * Returns the snapshot of GET /tip_floor?signed=1 if one of the keys has signed it. `body`: the unchanged
 * response; `signature`: its header x-shredway-signature. Rejects like verifyReceipt.
 */
export async function verifyTipFloor(
  body: string,
  signature: string,
  keys: SigningKeys,
): Promise<TipSnapshot> {
  await verifyBody(body, { jws: signature, type: "shredway-tips" }, keys);
  const [snapshot] = listOf(readJson(body), "/tip_floor", readTipSnapshot);
  if (snapshot) return snapshot;
  throw statementInvalid("expected a snapshot, got an empty list");
}

/** Returns the content of GET /tip_floor/history?signed=1, like verifyTipFloor. */
export async function verifyTipHistory(
  body: string,
  signature: string,
  keys: SigningKeys,
): Promise<TipHistory> {
  await verifyBody(body, { jws: signature, type: "shredway-tip-history" }, keys);
  return readTipHistory(readJson(body), tipHistoryPath);
}

async function verifyBody(body: string, statement: Statement, keys: SigningKeys): Promise<void> {
  await verifyStatement({ ...statement, detached: new TextEncoder().encode(body) }, keys);
}

function readKey(value: unknown, where: string): PublishedKey {
  const fields = new Fields<PublishedKey>(value, where);
  return {
    kty: fields.oneOf("kty", ["OKP"]),
    crv: fields.oneOf("crv", ["Ed25519"]),
    x: fields.text("x"),
    kid: fields.text("kid"),
    alg: fields.oneOf("alg", ["EdDSA"]),
    use: fields.oneOf("use", ["sig"]),
    iat: fields.number("iat"),
    ...(fields.has("exp") && { exp: fields.number("exp") }),
  };
}

export function readKeySet(value: unknown, where: string): KeySet {
  return { keys: new Fields<KeySet>(value, where).list("keys", readKey) };
}
