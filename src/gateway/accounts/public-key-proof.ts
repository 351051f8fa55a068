// Proof that the caller owns an Ed25519 key pair: a signature of the key over a text.
//
// Used by public-keys.ts and by `shredway public-keys`. The text names the account, the key, its purpose and
// an end, so that the signature is invalid for another account or purpose, and after this end.

import { verify } from "node:crypto";
import { decodeBase58 } from "../../core/base58.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import { isSmallOrderKey, publicKeyOf } from "../../core/key-pair.ts";
import { isPubkey, type Pubkey, parsePubkey, pubkeyBytes } from "../../core/primitives.ts";
import type { PublicKeyPurpose } from "./public-key-types.ts";

const signatureBytes = 64;
/** More characters than base64 of a signature has, and than base58 of one can have. */
const signatureCharactersMax = 90;
const minuteMs = 60_000;
/** The longest time for which a signature is valid. */
export const proofMinutesMax = 60;
/** Precise to the millisecond at most, so that every text has one meaning. */
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/;

export interface PublicKeyClaim {
  readonly accountId: string;
  /** Base58. */
  readonly publicKey: string;
  readonly purpose: PublicKeyPurpose;
  /** ISO 8601 in UTC: the signature is valid before this time. */
  readonly expiresAt: string;
}

/** The text that the key signs. */
export function claimTextOf({ accountId, publicKey, purpose, expiresAt }: PublicKeyClaim): string {
  return (
    `shredway: register public key\naccount: ${accountId}\npublic key: ${publicKey}\n` +
    `purpose: ${purpose}\nexpires: ${expiresAt}\n`
  );
}

function checkExpiry(expiresAt: string, nowMs: number): void {
  const ms = time.test(expiresAt) ? Date.parse(expiresAt) : Number.NaN;
  if (ms > nowMs && ms <= nowMs + proofMinutesMax * minuteMs) return;
  throw new ShredwayError(
    "value_invalid",
    `expiresAt: invalid value ${quote(expiresAt)}; expected a time in the next ${proofMinutesMax} minutes ` +
      `in ISO 8601 and UTC, for example ${new Date(nowMs + 10 * minuteMs).toISOString()}`,
  );
}

/** The text of a public key. Throws ShredwayError "value_invalid". */
export function checkPublicKey(text: string): Pubkey {
  if (isPubkey(text)) return parsePubkey(text);
  throw new ShredwayError(
    "value_invalid",
    `publicKey: invalid value ${quote(text)}; expected an Ed25519 public key: 32 bytes in base58`,
  );
}

/** As checkPublicKey, for a key to register: every caller can sign for a key of small order. */
export function checkNewPublicKey(text: string): Pubkey {
  const publicKey = checkPublicKey(text);
  if (!isSmallOrderKey(pubkeyBytes(publicKey))) return publicKey;
  throw new ShredwayError(
    "value_invalid",
    `publicKey: invalid value ${quote(text)}; expected the public key of a key pair, got a point of small order`,
  );
}

/** null: not base58 or base64 of a signature. */
function signatureOf(text: string): Uint8Array | null {
  if (text.length > signatureCharactersMax) return null;
  // Base64 of 64 bytes always ends like this, and base58 never does.
  const bytes = text.endsWith("==") ? Buffer.from(text, "base64") : decodeBase58(text);
  return bytes?.length === signatureBytes ? bytes : null;
}

function isValid(text: string, publicKey: Pubkey, signature: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    // In the thread pool. A key that is not a point of the curve is an error.
    verify(null, Buffer.from(text), publicKeyOf(pubkeyBytes(publicKey)), signature, (error, is) =>
      resolve(error === null && is),
    );
  });
}

/** Rejects with ShredwayError "value_invalid" or "signature_invalid". */
export async function checkClaim(
  claim: PublicKeyClaim,
  signatureText: string,
  nowMs: number,
): Promise<void> {
  const publicKey = checkNewPublicKey(claim.publicKey);
  checkExpiry(claim.expiresAt, nowMs);
  const signature = signatureOf(signatureText);
  if (!signature) {
    throw new ShredwayError(
      "value_invalid",
      `signature: invalid value; expected ${signatureBytes} bytes in base58 or base64`,
    );
  }
  const text = claimTextOf(claim);
  if (await isValid(text, publicKey, signature)) return;
  throw new ShredwayError(
    "signature_invalid",
    `signature: expected the signature of ${publicKey} over ${JSON.stringify(text)}, got another one`,
  );
}
