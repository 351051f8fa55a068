// A TLS certificate and its key from PEM files, checked before use.
//
// Used by every server with TLS from files (HTTP, QUIC, ShredStream), and by the doctor.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { messageOf, ShredwayError } from "./errors.ts";
import { readTextFile } from "./files.ts";

/** Paths of PEM files. */
export interface TlsFiles {
  /** The server's certificate first, then the intermediate ones. */
  readonly certificate: string;
  /** A private key without a password. */
  readonly key: string;
}

/** A checked certificate chain with its key. */
export interface TlsMaterial {
  readonly files: TlsFiles;
  readonly certificatePem: string;
  readonly keyPem: string;
  /** End of the server certificate's validity. */
  readonly expiresMs: number;
}

const fileBytesMax = 256 * 1024;

/**
 * Throws ShredwayError "config_invalid", with the file and what is wrong with it. An expired certificate
 * is not an error here: clients report it, and so does the doctor.
 */
export function readTlsMaterial(files: TlsFiles): TlsMaterial {
  const certificatePem = readTextFile(files.certificate, fileBytesMax, "config_invalid");
  const keyPem = readTextFile(files.key, fileBytesMax, "config_invalid");
  const certificate = parsed(files.certificate, "a certificate in PEM form", () => {
    return new X509Certificate(certificatePem);
  });
  const key = parsed(files.key, "a private key in PEM form, without a password", () => {
    return createPrivateKey(keyPem);
  });
  if (!certificate.checkPrivateKey(key)) {
    throw invalid(`${files.key}: this is not the key of the certificate in ${files.certificate}`);
  }
  parsed(files.certificate, "a certificate chain that TLS 1.2 and 1.3 accept", () => {
    return createSecureContext({ cert: certificatePem, key: keyPem });
  });
  return { files, certificatePem, keyPem, expiresMs: Date.parse(certificate.validTo) };
}

function invalid(message: string): ShredwayError {
  return new ShredwayError("config_invalid", message);
}

function parsed<T>(path: string, expected: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw invalid(`${path}: expected ${expected}: ${messageOf(error)}`);
  }
}
