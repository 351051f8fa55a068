// Signed statements, checked by an independent verifier, by the vectors of RFC 8037, and by openssl.

import { spawnSync } from "node:child_process";
import { createPublicKey } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SigningKey, signingKeyOf } from "../../src/core/signing-key.ts";
import { verifyByReference } from "../support/signing/ed25519-reference.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// RFC 8037, A.1 to A.4.
const seed = Buffer.from("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A", "base64url");
const publicText = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const thumbprint = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
const payload = "Example of Ed25519 signing";

function partsOf(jws: string): [header: string, payload: string, signature: Uint8Array] {
  const [header = "", content = "", signature = ""] = jws.split(".");
  return [header, content, Buffer.from(signature, "base64url")];
}

it("has the public key and the thumbprint of RFC 8037", () => {
  const key = new SigningKey(seed);
  expect(Buffer.from(key.publicKey).toString("base64url")).toBe(publicText);
  expect(key.kid).toBe(thumbprint);
});

it("signs so that the formulas of RFC 8032 accept it, and no other bytes", () => {
  const key = new SigningKey(seed);
  const [header, content, signature] = partsOf(key.sign("shredway-receipt", payload));
  expect(JSON.parse(Buffer.from(header, "base64url").toString())).toEqual({
    alg: "EdDSA",
    kid: thumbprint,
    typ: "shredway-receipt",
  });
  expect(Buffer.from(content, "base64url").toString()).toBe(payload);
  const signed = Buffer.from(`${header}.${content}`);
  expect(verifyByReference(key.publicKey, signed, signature)).toBe(true);
  expect(verifyByReference(key.publicKey, Buffer.from(`${header}.x`), signature)).toBe(false);
});

it("the reference accepts the signature of RFC 8037, A.4", () => {
  const jws =
    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc." +
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
  const [header, content, signature] = partsOf(jws);
  const key = new SigningKey(seed).publicKey;
  expect(verifyByReference(key, Buffer.from(`${header}.${content}`), signature)).toBe(true);
});

it("leaves the payload out of a detached signature", () => {
  const key = new SigningKey(seed);
  const [header, content, signature] = partsOf(key.signDetached("shredway-tips", payload));
  expect(content).toBe("");
  const signed = `${header}.${Buffer.from(payload).toString("base64url")}`;
  expect(verifyByReference(key.publicKey, Buffer.from(signed), signature)).toBe(true);
});

it("is verified by the program openssl", () => {
  const key = new SigningKey(seed);
  const [header, content, signature] = partsOf(key.sign("shredway-receipt", payload));
  const folder = temporaryFolder();
  const jwk = { kty: "OKP", crv: "Ed25519", x: publicText };
  const pem = createPublicKey({ key: jwk, format: "jwk" }).export({ type: "spki", format: "pem" });
  writeFileSync(join(folder, "key.pem"), pem);
  writeFileSync(join(folder, "text"), `${header}.${content}`);
  writeFileSync(join(folder, "signature"), signature);
  const verify = ["pkeyutl", "-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", "text"];
  const options = { cwd: folder, encoding: "utf8" } as const;
  const good = spawnSync("openssl", [...verify, "-sigfile", "signature"], options);
  expect(`${good.stdout}${good.stderr}`).toContain("Signature Verified Successfully");
  writeFileSync(join(folder, "text"), `${header}.${content}x`);
  expect(spawnSync("openssl", [...verify, "-sigfile", "signature"], options).status).toBe(1);
});

it("reads Ed25519 keys in PEM only", () => {
  expect(signingKeyOf("no key")).toBe(null);
  expect(signingKeyOf("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")).toBe(null);
});
