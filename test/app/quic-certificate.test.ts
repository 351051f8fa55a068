// The certificate of the QUIC ingress in the data folder: created once, private, checked.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ensureQuicCertificate, inspectQuicCertificate } from "../../src/app/quic-certificate.ts";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { newEcdsaCredentials } from "../../src/core/quic/certificate.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

it("is created at the first start with mode 0600, and kept", () => {
  const folder = join(temporaryFolder(), "data");
  const first = ensureQuicCertificate(folder);
  const file = join(folder, "quic-certificate.pem");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(ensureQuicCertificate(folder)).toEqual(first);
  const certificate = new X509Certificate(first.certificatePem);
  expect(certificate.checkPrivateKey(createPrivateKey(first.keyPem))).toBe(true);
  expect(certificate.subject).toBe("CN=shredway");
  expect(certificate.checkHost("shredway")).toBe("shredway");
  expect(certificate.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
  expect(new Date(certificate.validTo).getUTCFullYear()).toBe(9999);
});

it("is refused if others can read it, or if it is not a key with its certificate", () => {
  const folder = temporaryFolder();
  ensureQuicCertificate(folder);
  const file = join(folder, "quic-certificate.pem");
  chmodSync(file, 0o644);
  expect(() => ensureQuicCertificate(folder)).toThrow(
    `certificate file ${file}: expected mode 0600 or stricter, got 0644; run: chmod 600 ${file}`,
  );
  chmodSync(file, 0o600);
  const { keyPem } = newEcdsaCredentials("one");
  const { certificatePem } = newEcdsaCredentials("other");
  for (const text of ["", keyPem, `${keyPem}${certificatePem}`]) {
    writeFileSync(file, text);
    expect(() => ensureQuicCertificate(folder)).toThrow(
      `certificate file ${file}: expected a private key and its certificate in PEM, got another content`,
    );
  }
});

it("is shown to the doctor by its fingerprint, and a bad file by its error", () => {
  const directory = join(temporaryFolder(), "data");
  const least = "relay: { shredVersion: 1, authentication: off }\n";
  const text = `${least}http: {}\ntips: { addresses: [3aKEXLHoBesEJYX3vk47KZmsW46BKFremFmaRDTh9cBG] }\nquic: {}\ndata: { directory: "${directory}" }\n`;
  const config = parseConfig(text, "test");
  const path = join(directory, "quic-certificate.pem");
  expect(inspectQuicCertificate(parseConfig(least, "test"))).toBe(null);
  expect(inspectQuicCertificate(config)).toEqual({ path, fingerprint: null, error: null });
  const { certificatePem } = ensureQuicCertificate(directory);
  const { fingerprint256 } = new X509Certificate(certificatePem);
  expect(inspectQuicCertificate(config)).toEqual({
    path,
    fingerprint: fingerprint256,
    error: null,
  });
  writeFileSync(path, "nothing");
  expect(inspectQuicCertificate(config)).toMatchObject({
    fingerprint: null,
    error: expect.stringContaining("expected a private key and its certificate in PEM"),
  });
});
