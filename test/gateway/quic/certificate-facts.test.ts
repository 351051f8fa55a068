// Facts of client certificates: real ones, those of other tools, and bytes of attackers.

import { createPublicKey, X509Certificate } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newCredentials, newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { readCertificateFacts } from "../../../src/gateway/quic/certificate-facts.ts";
import { selfSignedCertificate } from "../../support/quic/self-signed.ts";

function derOf(pem: string): Buffer {
  return Buffer.from(new X509Certificate(pem).raw);
}

/** An element in DER with a short or a long length. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const head = length < 0x80 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), body]);
}

const hex = (text: string) => Buffer.from(text, "hex");
const commonName = (text: string, tag = 0x0c) =>
  der(0x31, der(0x30, hex("0603550403"), der(tag, Buffer.from(text))));
const keyInfo = der(
  0x30,
  der(0x30, hex("06032b6570")),
  der(0x03, Buffer.alloc(33, 1).fill(0, 0, 1)),
);

/** A certificate whose signature is wrong, which does not matter here. */
function certificate(subject: Buffer, ...rest: readonly Uint8Array[]): Buffer {
  const algorithm = der(0x30, hex("06032b6570"));
  const body = der(
    0x30,
    hex("a003020102"),
    hex("020101"),
    algorithm,
    der(0x30),
    der(0x30),
    der(0x30, subject),
    keyInfo,
    ...rest,
  );
  return der(0x30, body, algorithm, der(0x03, Buffer.alloc(65)));
}

function extensions(...values: readonly Buffer[]): Buffer {
  const all = values.map((value) => der(0x30, hex("060488370101"), der(0x04, value)));
  return der(0xa3, der(0x30, ...all));
}

describe("readCertificateFacts", () => {
  it("finds the common name of any key, and the request for protection", () => {
    const printable = fc.string({
      unit: fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code)),
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(printable, fc.boolean(), (name, isProtected) => {
        const { certificatePem } = newEcdsaCredentials(name, { isProtected });
        const facts = readCertificateFacts(derOf(certificatePem));
        expect(facts).toEqual({ commonName: name, ed25519Key: null, protection: isProtected });
        expect(new X509Certificate(certificatePem).verify(createPublicKey(certificatePem))).toBe(
          true,
        );
      }),
      { numRuns: 30 },
    );
  });

  it("finds the Ed25519 key that node:crypto finds", () => {
    const { certificatePem } = newCredentials();
    const { x } = createPublicKey(certificatePem).export({ format: "jwk" });
    const facts = readCertificateFacts(derOf(certificatePem));
    expect(Buffer.from(facts?.ed25519Key ?? [])).toEqual(Buffer.from(x ?? "", "base64url"));
    expect(facts?.commonName).toBe(null); // "Solana node" contains a space
  });

  it("reads a certificate of OpenSSL", () => {
    const facts = readCertificateFacts(derOf(selfSignedCertificate));
    expect(facts).toMatchObject({ ed25519Key: null, protection: false });
  });

  it.each([
    ["PrintableString", commonName("key", 0x13), "key"],
    ["an empty subject", Buffer.alloc(0), null],
    ["two names", Buffer.concat([commonName("one"), commonName("two")]), null],
    ["a space", commonName("a key"), null],
    ["a BMPString", commonName("\0k\0e\0y", 0x1e), null],
    ["a name of 257 characters", commonName("k".repeat(257)), null],
  ])("takes one printable common name: %s", (_what, subject, expected) => {
    expect(readCertificateFacts(certificate(subject))?.commonName).toBe(expected);
  });

  it.each([
    ["true", [hex("0101ff")], true],
    ["false", [hex("010100")], false],
    ["another type", [hex("020101")], "invalid"],
    ["a longer value", [hex("0102ffff")], "invalid"],
    ["nothing", [Buffer.alloc(0)], "invalid"],
    ["true, then false", [hex("0101ff"), hex("010100")], true],
    ["invalid, then true", [hex("0500"), hex("0101ff")], "invalid"],
  ] as const)("never weakens a request for protection: %s", (_what, values, expected) => {
    const facts = readCertificateFacts(certificate(commonName("key"), extensions(...values)));
    expect(facts?.protection).toBe(expected);
  });

  it("refuses more than 16 kB and more than 64 names", () => {
    const long = certificate(commonName("key"), der(0xa1, Buffer.alloc(17_000)));
    expect(readCertificateFacts(long)).toBe(null);
    const many = Buffer.concat(Array.from({ length: 65 }, () => commonName("key")));
    expect(readCertificateFacts(certificate(many))).toBe(null);
  });

  it("never throws, and never reads beyond the end", () => {
    const valid = certificate(commonName("key"), extensions(hex("0101ff")));
    for (let length = 0; length < valid.length; length++) {
      expect(readCertificateFacts(valid.subarray(0, length))).toBe(null);
    }
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(valid.length - 1), fc.integer({ min: 0, max: 255 })), {
          minLength: 1,
          maxLength: 4,
        }),
        (changes) => {
          const changed = Buffer.from(valid);
          for (const [at, byte] of changes) changed[at] = byte;
          const facts = readCertificateFacts(changed);
          if (facts) expect(facts.ed25519Key?.length ?? 32).toBe(32);
        },
      ),
      { numRuns: 3000 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        readCertificateFacts(bytes);
      }),
      { numRuns: 2000 },
    );
  });
});
