// Verifies signed statements of the service: JSON Web Signatures with Ed25519 (RFC 7515, RFC 8037).
//
// Called by receipts.ts and by users' programs. Needs WebCrypto with Ed25519: Node 20 and later, and
// browsers since 2025. It accepts only the exact form that the service writes, so that a statement has one
// text. Throws only ShredwayCallError "statement_invalid" and "signing_key_unknown".

import { ShredwayCallError } from "./error.ts";
import { isObject } from "./fields.ts";

/** A JWK Set: the response of getSigningKeys, or keys that were stored earlier. */
export interface SigningKeys {
  readonly keys: readonly {
    readonly kty: string;
    readonly crv?: string | undefined;
    readonly x?: string | undefined;
  }[];
}

export interface Statement {
  /** JWS in compact serialization, or with detached content. */
  readonly jws: string;
  /** Expected header `typ`. */
  readonly type: "shredway-receipt" | "shredway-tips" | "shredway-tip-history";
  /** The bytes that a detached signature covers. */
  readonly detached?: Uint8Array;
}

const signatureBytes = 64;
const keyBytes = 32;
/** A batch of 25 transactions over 64 routes fits. */
const charactersMax = 262_144;

export function statementInvalid(message: string): ShredwayCallError {
  return new ShredwayCallError(`statement_invalid: ${message}`, { reason: "statement_invalid" });
}

function textOf(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** null: not base64url, or another text of the same bytes. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[\w-]*$/.test(text) || text.length % 4 === 1) return null;
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return textOf(bytes) === text ? bytes : null;
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}

/** The `kid` of a header of the service. Further members, as `crit`, are refused. */
function keyIdOf(header: string, type: string): string {
  const bytes = bytesOf(header);
  const fields = bytes && parse(bytes);
  if (!isObject(fields)) throw statementInvalid("expected a JWS, got another text");
  const { alg, kid, typ, ...others } = fields;
  if (typ !== type) throw statementInvalid(`expected the type ${type}, got ${JSON.stringify(typ)}`);
  if (alg !== "EdDSA" || typeof kid !== "string" || Object.keys(others).length > 0) {
    throw statementInvalid("expected a header with alg EdDSA, kid and typ, got another one");
  }
  return kid;
}

/** Name of a public key (RFC 7638). */
async function thumbprintOf(x: string): Promise<string> {
  const members = `{"crv":"Ed25519","kty":"OKP","x":"${x}"}`;
  return textOf(
    new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(members))),
  );
}

/** The public key with this name; names in the set are not trusted. */
async function findKey({ keys }: SigningKeys, kid: string): Promise<Uint8Array<ArrayBuffer>> {
  for (const { kty, crv, x } of keys) {
    if (kty !== "OKP" || crv !== "Ed25519" || typeof x !== "string") continue;
    const bytes = bytesOf(x);
    if (bytes?.length === keyBytes && (await thumbprintOf(x)) === kid) return bytes;
  }
  throw new ShredwayCallError(
    `signing_key_unknown: the statement is signed with the key ${JSON.stringify(kid.slice(0, 64))}; expected ` +
      "one of the given keys",
    { reason: "signing_key_unknown" },
  );
}

/** Returns the signed bytes. */
export async function verifyStatement(
  { jws, type, detached }: Statement,
  keys: SigningKeys,
): Promise<Uint8Array> {
  if (jws.length > charactersMax) {
    throw statementInvalid(`expected at most ${charactersMax} characters, got ${jws.length}`);
  }
  const [header = "", content = "", signatureText = "", ...more] = jws.split(".");
  if (more.length > 0 || signatureText === "" || (content === "") !== (detached !== undefined)) {
    throw statementInvalid("expected a JWS in compact serialization, got another text");
  }
  const kid = keyIdOf(header, type);
  const payload = detached ?? bytesOf(content);
  const signature = bytesOf(signatureText);
  if (!payload || signature?.length !== signatureBytes) {
    throw statementInvalid("expected a payload and a signature in base64url, got another text");
  }
  const key = await findKey(keys, kid);
  const publicKey = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
  const signed = new TextEncoder().encode(`${header}.${textOf(payload)}`);
  if (await crypto.subtle.verify("Ed25519", publicKey, signature, signed)) return payload;
  throw statementInvalid(
    "signature verification failed: the text was changed, or the key is another one",
  );
}
