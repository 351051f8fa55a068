// Payer proof: shows that the fee payer of a tip assigns it to an account.
//
// Called by registrar.ts for each entry. Three forms name the account by its id: a memo in the
// transaction, a reference key among its static keys, or a signature of the fee payer over a text. The
// transaction's own signature covers memo and reference key, so nobody else can add them. The text names
// the account and the transaction, so its signature proves nothing about another account or tip.

import { createHash, verify } from "node:crypto";
import { publicKeyOf } from "../../core/key-pair.ts";
import { parsePubkey, pubkeyBytes, pubkeyOf } from "../../core/primitives.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { type MessageContent, messageContentOf } from "../../core/transactions/message-content.ts";
import { type Refused, refusal } from "./registration-checks.ts";
import type { ProofKind } from "./registration-types.ts";

const memoPrefix = "shredway:";
const memoPrograms = [
  "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo",
].map((text) => Buffer.from(pubkeyBytes(parsePubkey(text))));
const signatureBytes = 64;
/** More characters than base64 of a signature has, and than base58 of one can have. */
const proofCharactersMax = 90;

const noContent: MessageContent = { keys: [], instructions: [], hasTables: false };

/** A word of a memo that assigns the tip to the account. */
export function memoOf(accountId: string): string {
  return `${memoPrefix}${accountId}`;
}

function referenceBytes(accountId: string): Buffer {
  return createHash("sha256").update(`shredway: reference key of ${accountId}`).digest();
}

/** A public key that assigns the tip to the account; no private key is known for it. Base58. */
export function referenceKeyOf(accountId: string): string {
  return pubkeyOf(referenceBytes(accountId));
}

/** The text that the fee payer signs. */
export function proofMessageOf(accountId: string, signature: string): string {
  return `shredway: register tip\naccount: ${accountId}\ntransaction: ${signature}\n`;
}

/** Without a proof in the entry: what the transaction itself says. */
function proofInside({ wire, signature }: TransactionFacts, accountId: string) {
  const { keys, instructions } = messageContentOf(wire) ?? noContent;
  const reference = referenceBytes(accountId);
  const named = instructions.flatMap(({ program, data }) => {
    const key = keys[program];
    if (!key || !memoPrograms.some((memo) => memo.equals(key))) return [];
    return Buffer.from(data)
      .toString("utf8")
      .split(/\s+/)
      .filter((word) => word.startsWith(memoPrefix));
  });
  if (named.includes(memoOf(accountId))) return "memo" as const;
  if (keys.some((key) => reference.equals(key))) return "reference" as const;
  if (named.length === 0) return null;
  const expected = `transaction: expected the memo ${memoOf(accountId)}`;
  return refusal("proof_invalid", `${expected}, got that of another account`, signature);
}

function bytesOf(
  proof: string,
  decode: (text: string) => Uint8Array | null | undefined,
): Uint8Array | null {
  if (proof.length > proofCharactersMax) return null;
  // Base64 of 64 bytes always ends like this, and base58 never does.
  if (!proof.endsWith("==")) return decode(proof) ?? null;
  const bytes = Buffer.from(proof, "base64");
  return bytes.toString("base64") === proof ? bytes : null;
}

function isValid(text: string, feePayer: Uint8Array, signature: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    // In the thread pool. A key that is not a point of the curve is an error.
    verify(null, Buffer.from(text), publicKeyOf(feePayer), signature, (error, is) =>
      resolve(error === null && is),
    );
  });
}

/**
 * How the payer assigns the tip to the account; null: it does not. Refused: the given proof is invalid,
 * or the memo names another account. Call it for a transaction whose signatures are valid.
 */
export async function checkProof(
  facts: TransactionFacts,
  accountId: string,
  proof: string | null,
  decode: (text: string) => Uint8Array | null | undefined,
): Promise<ProofKind | null | Refused> {
  if (proof === null) return proofInside(facts, accountId);
  const { signature, feePayer } = facts;
  const bytes = bytesOf(proof, decode);
  if (bytes?.length !== signatureBytes) {
    const message = `proof: expected a signature of ${signatureBytes} bytes in base58 or base64, got another text`;
    return refusal("proof_invalid", message, signature);
  }
  const text = proofMessageOf(accountId, signature);
  if (await isValid(text, feePayer, bytes)) return "signature";
  const message = `proof: expected the signature of the fee payer ${pubkeyOf(feePayer)} over ${JSON.stringify(text)}, got another one`;
  return refusal("proof_invalid", message, signature);
}
