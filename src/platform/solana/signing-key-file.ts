// The file of the key that signs receipts and tip statistics: a PKCS #8 private key in PEM, mode 0600.
//
// Created at the first start and kept in the data folder; `shredway signing-keys rotate` replaces it. The
// database contains the public keys only.

import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { ShredwayError } from "../../core/errors.ts";
import { type SigningKey, signingKeyOf } from "../../core/signing-key.ts";
import {
  ensurePrivateFile,
  privateFileRefused,
  readPrivateFile,
  replacePrivateFile,
} from "./private-file.ts";

const fileName = "signing-key.pem";
const what = "signing key file";
const fileBytesMax = 16 * 1024;

export function signingKeyPath(folder: string): string {
  return join(folder, fileName);
}

function newPem(): string {
  const { privateKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  return privateKey;
}

/** Throws ShredwayError "config_invalid", which names the file and quotes none of it. */
export function readSigningKey(folder: string): SigningKey {
  const file = { path: signingKeyPath(folder), what };
  const bytes = readPrivateFile(file, fileBytesMax);
  const key = signingKeyOf(bytes.toString("latin1"));
  bytes.fill(0);
  if (key) return key;
  const remedy = "another content; restore it from a backup, or delete it to get a new key";
  throw privateFileRefused(file, "an Ed25519 private key in PEM (PKCS #8)", remedy);
}

/** Reads the key, or creates the file with a new one. Throws like readSigningKey. */
export function ensureSigningKey(folder: string): SigningKey {
  ensurePrivateFile({ path: signingKeyPath(folder), what }, newPem);
  return readSigningKey(folder);
}

/** A key that is not in the file yet; `install` replaces the file with it. */
interface NextSigningKey {
  readonly key: SigningKey;
  /** Throws ShredwayError "config_invalid"; the previous file then stays. */
  install(): void;
}

export function nextSigningKey(folder: string): NextSigningKey {
  const pem = newPem();
  const key = signingKeyOf(pem);
  if (!key) throw new ShredwayError("internal", "a new signing key could not be read");
  return {
    key,
    install: () => replacePrivateFile({ path: signingKeyPath(folder), what }, pem),
  };
}
