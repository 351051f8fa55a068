// The key that signs the service's statements: JSON Web Signatures (RFC 7515) with Ed25519 (RFC 8037).
//
// Used for receipts and for tip statistics. Any JOSE library verifies these signatures with the published
// key. The private key stays inside the object.

import { createHash, createPrivateKey } from "node:crypto";
import { KeyPair } from "./key-pair.ts";

/** Media types of the header `typ`, so that no statement can be mistaken for one of another kind. */
export type StatementType = "shredway-receipt" | "shredway-tips" | "shredway-tip-history";

function base64Url(bytes: Uint8Array | string): string {
  return Buffer.from(bytes).toString("base64url");
}

/** Name of a public key (32 bytes): its thumbprint (RFC 7638), the same on every node. */
function keyIdOf(publicKey: Uint8Array): string {
  const members = `{"crv":"Ed25519","kty":"OKP","x":"${base64Url(publicKey)}"}`;
  return createHash("sha256").update(members).digest("base64url");
}

export class SigningKey {
  readonly kid: string;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly #pair: KeyPair;
  readonly #headers = new Map<StatementType, string>();

  /** `seed`: 32 bytes; no reference to it is stored. Throws a TypeError for another length. */
  constructor(seed: Uint8Array) {
    this.#pair = new KeyPair(seed);
    this.publicKey = this.#pair.publicKey;
    this.kid = keyIdOf(this.publicKey);
  }

  /** Compact serialization: header, payload and signature in base64url. */
  sign(type: StatementType, payload: string): string {
    const signed = `${this.#header(type)}.${base64Url(payload)}`;
    return `${signed}.${this.#signature(signed)}`;
  }

  /** Detached content (RFC 7515, appendix F): the same without the payload between the periods. */
  signDetached(type: StatementType, payload: string): string {
    const header = this.#header(type);
    return `${header}..${this.#signature(`${header}.${base64Url(payload)}`)}`;
  }

  #header(type: StatementType): string {
    const known = this.#headers.get(type);
    if (known !== undefined) return known;
    const header = base64Url(JSON.stringify({ alg: "EdDSA", kid: this.kid, typ: type }));
    this.#headers.set(type, header);
    return header;
  }

  #signature(text: string): string {
    return base64Url(this.#pair.sign(Buffer.from(text, "latin1")));
  }
}

/** The key of a PKCS #8 file in PEM; null: another content. Quotes none of it. */
export function signingKeyOf(pem: string): SigningKey | null {
  try {
    const { kty, crv, d } = createPrivateKey(pem).export({ format: "jwk" });
    if (kty !== "OKP" || crv !== "Ed25519" || typeof d !== "string") return null;
    const seed = Buffer.from(d, "base64url");
    const key = new SigningKey(seed);
    seed.fill(0);
    return key;
  } catch {
    return null;
  }
}
