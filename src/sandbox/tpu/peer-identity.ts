// Identity of a peer: the Ed25519 key of its certificate.
//
// Called once for every handshake. The rest of the certificate is ignored, including its signature:
// TLS has already verified that the peer has the private key.

import { X509Certificate } from "node:crypto";
import { encodeBase58 } from "../../relay/data-plane/base58.ts";

/** Identity in base58; null: no certificate, an unreadable one, or a key of another type. */
export function identityOf(chain: readonly Uint8Array[] | null): string | null {
  const first = chain?.[0];
  if (!first) return null;
  try {
    const { publicKey } = new X509Certificate(Buffer.from(first));
    if (publicKey.asymmetricKeyType !== "ed25519") return null;
    const { x } = publicKey.export({ format: "jwk" });
    return x === undefined ? null : encodeBase58(Buffer.from(x, "base64url"));
  } catch {
    return null; // not X.509, or a key type that OpenSSL does not support
  }
}
