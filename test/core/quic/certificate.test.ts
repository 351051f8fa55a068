// Certificates parsed by node:crypto, which is strict.

import { createHash, createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  credentialsOf,
  newCredentials,
  newEcdsaCredentials,
} from "../../../src/core/quic/certificate.ts";

/** SHA-256 of the certificate that Agave's `new_dummy_x509_certificate` makes, with zeros instead of the key. */
const agaveForm = "bc8287acf505a3324725618971fa0426eaf0319c945e4c8714a2dc7417dc57cb";
const agaveKeyOffset = 100;

function publicKeyOf(pem: string): string {
  return new X509Certificate(pem).publicKey.export({ format: "der", type: "spki" }).toString("hex");
}

describe("credentialsOf", () => {
  it("has the public key of any seed in the form of Agave's certificates", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (seed) => {
        const { keyPem, certificatePem } = credentialsOf(seed);
        const certificate = new X509Certificate(certificatePem);
        expect(certificate.checkPrivateKey(createPrivateKey(keyPem))).toBe(true);
        expect(certificate.publicKey.asymmetricKeyType).toBe("ed25519");
        const { x } = certificate.publicKey.export({ format: "jwk" });
        const raw = Buffer.from(certificate.raw);
        const key = raw.subarray(agaveKeyOffset, agaveKeyOffset + 32);
        expect(key.toString("base64url")).toBe(x);
        key.fill(0);
        expect(createHash("sha256").update(raw).digest("hex")).toBe(agaveForm);
        const { d } = createPrivateKey(keyPem).export({ format: "jwk" });
        expect(Buffer.from(d ?? "", "base64url")).toEqual(Buffer.from(seed));
      }),
      { numRuns: 50 },
    );
  });

  it("has the key that node:crypto derives from the seed, and is deterministic", () => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const { d } = privateKey.export({ format: "jwk" });
    const seed = Buffer.from(d ?? "", "base64url");
    const { certificatePem } = credentialsOf(seed);
    expect(publicKeyOf(certificatePem)).toBe(
      publicKey.export({ format: "der", type: "spki" }).toString("hex"),
    );
    expect(credentialsOf(seed).certificatePem).toBe(certificatePem);
  });

  it("rejects a seed of another length", () => {
    expect(() => credentialsOf(new Uint8Array(31))).toThrow(/expected 32 bytes, got 31/);
    expect(() => credentialsOf(new Uint8Array(64))).toThrow(/expected 32 bytes, got 64/);
  });
});

describe("newEcdsaCredentials", () => {
  it("is signed by itself and never expires", () => {
    const { keyPem, certificatePem } = newEcdsaCredentials("key");
    const certificate = new X509Certificate(certificatePem);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.checkPrivateKey(createPrivateKey(keyPem))).toBe(true);
    expect([certificate.subject, certificate.issuer]).toEqual(["CN=key", "CN=key"]);
    expect(Date.parse(certificate.validFrom)).toBe(0);
    expect(new Date(certificate.validTo).getUTCFullYear()).toBe(9999);
  });

  it("has the server's name only if one is given", () => {
    const server = newEcdsaCredentials("shredway", { dnsName: "shredway", isProtected: true });
    expect(new X509Certificate(server.certificatePem).checkHost("shredway")).toBe("shredway");
    const client = newEcdsaCredentials("key");
    expect(new X509Certificate(client.certificatePem).subjectAltName).toBeUndefined();
  });
});

// Body of the extension: critical, and an empty sequence, which means "no authority".
const basicConstraints = "0603551d130101ff04023000";

it.each([
  ["an identity", newCredentials()],
  ["a P-256 key", newEcdsaCredentials("name")],
])("is never without extensions, which rustls 0.20 rejects: %s", (_, { certificatePem }) => {
  const certificate = new X509Certificate(certificatePem);
  expect(certificate.raw.toString("hex")).toContain(basicConstraints);
  expect(certificate.ca).toBe(false);
});
