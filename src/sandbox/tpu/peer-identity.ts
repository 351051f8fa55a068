// Who a peer is: the Ed25519 key of the certificate that it showed.
//
// Called once for every handshake. Nothing else of the certificate counts, not even its signature: TLS
// has made the peer prove that it holds the key.

import { X509Certificate } from "node:crypto";
import { encodeBase58 } from "../../relay/data-plane/base58.ts";

/** Base58; null: no certificate, none that can be read, or a key of another kind. */
export function identityOf(chain: readonly Uint8Array[] | null): string | null {
  const first = chain?.[0];
  if (!first) return null;
  try {
    const { publicKey } = new X509Certificate(Buffer.from(first));
    if (publicKey.asymmetricKeyType !== "ed25519") return null;
    const { x } = publicKey.export({ format: "jwk" });
    return x === undefined ? null : encodeBase58(Buffer.from(x, "base64url"));
  } catch {
    return null; // not X.509, or a key that OpenSSL does not know
  }
}
