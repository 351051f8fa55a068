// /.well-known/shredway-keys.json: the public keys of receipts and tip statistics, as a JWK Set (RFC 7517).
//
// Mounted by gateway.ts; needs no key. A rotation publishes a key before its first use, so a cached set
// may lack only the newest one.

import type { HttpHead, HttpResponse } from "../http/types.ts";
import type { StatementSigner } from "../receipts/types.ts";
import { documentHeaders } from "./answers.ts";

export const signingKeysPath = "/.well-known/shredway-keys.json";
export const keySetType = "application/jwk-set+json";
const cacheControl = "public, max-age=300";

export function answerKeySet(
  head: HttpHead,
  { keySet }: Pick<StatementSigner, "keySet">,
): HttpResponse {
  return {
    status: 200,
    headers: {
      ...documentHeaders(head),
      "content-type": keySetType,
      "cache-control": cacheControl,
    },
    body: keySet,
  };
}
