// The secret of the QUIC ingress: created at the first start and kept in the data folder.
//
// Called by compose-quic.ts. Stateless resets and connection ids derive from it, so clients learn of a
// restart at once, also if the certificate is a new one.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import {
  ensurePrivateFile,
  privateFileRefused,
  readPrivateFile,
} from "../platform/solana/private-file.ts";

const fileName = "quic-secret";
const what = "secret file";
const secretBytes = 32;
const pattern = /^[0-9a-f]{64}$/;

/** Throws ShredwayError "config_invalid", which names the file and quotes none of it. */
export function ensureQuicSecret(folder: string): string {
  const file = { path: join(folder, fileName), what };
  ensurePrivateFile(file, () => `${randomBytes(secretBytes).toString("hex")}\n`);
  const secret = readPrivateFile(file, 2 * secretBytes + 1)
    .toString("latin1")
    .trimEnd();
  if (pattern.test(secret)) return secret;
  const remedy = "another content; delete the file to get a new secret";
  throw privateFileRefused(file, `${2 * secretBytes} hexadecimal digits`, remedy);
}
