// Certificates for tests of TLS, made by openssl.

import { spawnSync } from "node:child_process";
import { join } from "node:path";

export const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

/** Paths of PEM files. */
export interface CertificateFiles {
  readonly key: string;
  readonly certificate: string;
}

/**
 * A key and a self-signed certificate in `folder`.
 *
 * @param options.names subject alternative names as openssl writes them
 * @param options.days its validity
 * @param options.algorithm of the key, as openssl names it
 * @param options.curve of a key with the algorithm "ec"
 */
export function makeCertificate(
  folder: string,
  name: string,
  {
    names = "DNS:localhost,IP:127.0.0.1",
    days = 2,
    algorithm = "rsa:2048",
    curve = undefined as string | undefined,
  } = {},
): CertificateFiles {
  const key = join(folder, `${name}.key`);
  const certificate = join(folder, `${name}.crt`);
  const words = `req -x509 -newkey ${algorithm} -nodes -subj /CN=localhost`.split(" ");
  if (curve !== undefined) words.push("-pkeyopt", `ec_paramgen_curve:${curve}`);
  const extension = ["-addext", `subjectAltName=${names}`];
  const output = ["-days", String(days), "-keyout", key, "-out", certificate];
  const created = spawnSync("openssl", [...words, ...extension, ...output]);
  if (created.status !== 0) throw new Error(created.stderr.toString());
  return { key, certificate };
}
