// Schemas of receipts in HTTP responses, and of the public keys that verify them.
//
// Used by paths.ts.

import type { KeySet, PublishedKey } from "../../../client/responses.ts";
import {
  closed,
  described,
  listOf,
  schemaOf,
  string,
  wholeNumber,
  word,
} from "../../schema/json-schema.ts";

export const receiptHeaders = {
  "X-Shredway-Receipt": {
    description: "signed receipt of a single submission that requested one, unless it is too long",
    schema: string,
  },
} as const;

const base64Url = schemaOf<string>({ type: "string", pattern: "^[\\w-]{43}$" });
export const tipSignatureHeaders = {
  "X-Shredway-Signature": {
    description: "with signed=1: JWS with detached content (RFC 7515, appendix F) over the body",
    schema: string,
  },
} as const;

const seconds = described("seconds since 1970", wholeNumber(0, Number.MAX_SAFE_INTEGER));

export const keySet = closed<KeySet>("SigningKeys", {
  keys: listOf(
    closed<PublishedKey>(
      "SigningKey",
      {
        kty: word("OKP"),
        crv: word("Ed25519"),
        x: base64Url,
        kid: base64Url,
        alg: word("EdDSA"),
        use: word("sig"),
        iat: described("start of its use", seconds),
        exp: described("end of its use; absent: it is in use", seconds),
      },
      ["exp"],
    ),
  ),
});
