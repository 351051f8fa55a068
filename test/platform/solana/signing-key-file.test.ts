// The file of the signing key: created once, private, checked, replaced at once.

import { generateKeyPairSync } from "node:crypto";
import { chmodSync, chownSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  ensureSigningKey,
  nextSigningKey,
  readSigningKey,
} from "../../../src/platform/solana/signing-key-file.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const isRoot = process.geteuid?.() === 0;

it("is created at the first start with mode 0600, and kept", () => {
  const folder = join(temporaryFolder(), "data");
  const { kid } = ensureSigningKey(folder);
  expect(statSync(join(folder, "signing-key.pem")).mode & 0o777).toBe(0o600);
  expect(ensureSigningKey(folder).kid).toBe(kid);
  expect(readdirSync(folder)).toEqual(["signing-key.pem"]);
});

it("is replaced at once, with the same mode and owner", () => {
  const folder = temporaryFolder();
  const file = join(folder, "signing-key.pem");
  const before = ensureSigningKey(folder);
  if (isRoot) chownSync(file, 1, 1);
  const next = nextSigningKey(folder);
  expect(readFileSync(file, "utf8")).toContain("PRIVATE KEY");
  next.install();
  const { mode, uid, gid } = statSync(file);
  expect(mode & 0o777).toBe(0o600);
  if (isRoot) {
    expect([uid, gid]).toEqual([1, 1]);
    chownSync(file, 0, 0);
  }
  expect(readSigningKey(folder).kid).toBe(next.key.kid);
  expect(next.key.kid).not.toBe(before.kid);
  expect(readdirSync(folder)).toEqual(["signing-key.pem"]);
});

it("is refused if others can read it, or if it is not an Ed25519 key; nothing of it is quoted", () => {
  const folder = temporaryFolder();
  const file = join(folder, "signing-key.pem");
  ensureSigningKey(folder);
  chmodSync(file, 0o640);
  expect(() => ensureSigningKey(folder)).toThrow(
    `signing key file ${file}: expected mode 0600 or stricter, got 0640; run: chmod 600 ${file}`,
  );
  chmodSync(file, 0o600);
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const other = ec.export({ type: "pkcs8", format: "pem" });
  for (const text of ["", "secret", other]) {
    writeFileSync(file, text);
    expect(() => ensureSigningKey(folder)).toThrow(
      `signing key file ${file}: expected an Ed25519 private key in PEM (PKCS #8), got another content; ` +
        "restore it from a backup, or delete it to get a new key",
    );
  }
});
