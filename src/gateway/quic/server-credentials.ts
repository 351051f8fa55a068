// Checks the server's certificate before the process of the connections gets it. No I/O.
//
// Called by the composition and by the doctor. Node's TLS accepts keys that the QUIC library rejects, or
// with which no client could complete a handshake. A process that got such a key could not start.

import { createPrivateKey, type KeyObject } from "node:crypto";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import {
  buildQuicheConfig,
  loadQuiche,
  packetBytesMax,
  type QuicheCredentials,
  tpuProtocol,
} from "../../core/quic/quiche.ts";

const curves: ReadonlySet<string> = new Set(["prime256v1", "secp384r1"]);
const expected = "expected a key of the type P-256, P-384, Ed25519 or RSA";
const remedy =
  "make one with: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650";

function isSupported({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject) {
  return type === "ed25519" || type === "rsa" || curves.has(details?.namedCurve ?? "");
}

function typeOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  return asymmetricKeyDetails?.namedCurve ?? asymmetricKeyType ?? "unknown";
}

/**
 * `source` names the files in errors. The pair is already a key and its certificate in PEM. Throws
 * ShredwayError "config_invalid".
 */
export function checkServerCredentials(credentials: QuicheCredentials, source: string): void {
  const key = createPrivateKey(credentials.keyPem);
  if (!isSupported(key)) {
    const message = `${source}: the key has the type ${typeOf(key)}; ${expected}; ${remedy}`;
    throw new ShredwayError("config_invalid", message);
  }
  const quiche = loadQuiche();
  if (!quiche) return;
  try {
    buildQuicheConfig(quiche, {
      credentials,
      asksCertificate: true,
      applicationProtocol: tpuProtocol,
      idleTimeoutMs: 0,
      packetBytesMax,
      connectionBytesMax: 0,
      streamBytesMax: 0,
      streamsMax: 0,
    });
  } catch (cause) {
    const message = `${source}: the QUIC library rejects the certificate: ${messageOf(cause)}; ${expected}; ${remedy}`;
    throw new ShredwayError("config_invalid", message, { cause });
  }
}
