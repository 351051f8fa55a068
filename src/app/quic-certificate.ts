// The certificate of the QUIC ingress: created at the first start and kept in the data folder.
//
// Called by compose-quic.ts if `quic.tls` is absent. Clients of these protocols do not verify the server's
// certificate, but some pin it, so it must survive restarts. Key and certificate are in one file, so that
// they always belong together.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../core/configuration/configuration.ts";
import { messageOf } from "../core/errors.ts";
import { newEcdsaCredentials } from "../core/quic/certificate.ts";
import type { QuicheCredentials } from "../core/quic/quiche.ts";
import { readTlsMaterial } from "../core/tls-material.ts";
import type { QuicCertificateFact } from "../platform/doctor/quic-facts.ts";
import {
  ensurePrivateFile,
  privateFileRefused,
  readPrivateFile,
} from "../platform/solana/private-file.ts";

const fileName = "quic-certificate.pem";
const what = "certificate file";
const fileBytesMax = 64 * 1024;
const serverName = "shredway";
const keyPattern = /-----BEGIN PRIVATE KEY-----[^-]*-----END PRIVATE KEY-----\n?/;
const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n?/;

/** SHA-256 of a certificate in hex with colons, which clients may pin. */
export function fingerprintOf({
  certificatePem,
}: Pick<QuicheCredentials, "certificatePem">): string {
  return new X509Certificate(certificatePem).fingerprint256;
}

/** For the doctor. null: no section `quic`, or its files cannot be used, which another check reports. */
export function inspectQuicCertificate({ quic, data }: Config): QuicCertificateFact | null {
  if (!quic) return null;
  const path = quic.tls?.certificate ?? join(data.directory, fileName);
  if (!quic.tls && !existsSync(path)) return { path, fingerprint: null, error: null };
  try {
    const found = quic.tls ? readTlsMaterial(quic.tls) : read({ path, what });
    return { path, fingerprint: fingerprintOf(found), error: null };
  } catch (error) {
    return quic.tls ? null : { path, fingerprint: null, error: messageOf(error) };
  }
}

/** Throws ShredwayError "config_invalid", which names the file and quotes none of it. */
export function ensureQuicCertificate(folder: string): QuicheCredentials {
  const file = { path: join(folder, fileName), what };
  ensurePrivateFile(file, () => {
    const { keyPem, certificatePem } = newEcdsaCredentials(serverName, { dnsName: serverName });
    return `${keyPem}${certificatePem}`;
  });
  return read(file);
}

function read(file: { readonly path: string; readonly what: string }): QuicheCredentials {
  const text = readPrivateFile(file, fileBytesMax).toString("latin1");
  const [keyPem] = keyPattern.exec(text) ?? [];
  const [certificatePem] = certificatePattern.exec(text) ?? [];
  const remedy = `another content; delete the file to get a new certificate`;
  if (keyPem !== undefined && certificatePem !== undefined && isPair(keyPem, certificatePem)) {
    return { keyPem, certificatePem };
  }
  throw privateFileRefused(file, "a private key and its certificate in PEM", remedy);
}

function isPair(keyPem: string, certificatePem: string): boolean {
  try {
    return new X509Certificate(certificatePem).checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    return false;
  }
}
