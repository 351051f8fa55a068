// Self-signed X.509 certificates for Ed25519 keys, in PEM, as leaders expect them.
//
// A leader uses only the public key (the identity) of the certificate; TLS 1.3's CertificateVerify
// proves its ownership. The DER (ITU-T X.690, RFC 5280, RFC 8410) is written here because
// node:crypto does not create certificates. Used by the TPU route and by the sandbox's leaders.

import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { privateKeyOf } from "../../core/key-pair.ts";
import type { QuicheCredentials } from "./quiche.ts";

const tags = { integer: 0x02, bits: 0x03, octets: 0x04, utf8: 0x0c, sequence: 0x30, set: 0x31 };
const utcTimeTag = 0x17;
const generalizedTimeTag = 0x18;
const versionTag = 0xa0;
const oids = {
  ed25519: Buffer.from("06032b6570", "hex"),
  commonName: Buffer.from("0603550403", "hex"),
} as const;
const publicKeyBytes = 32;
const commonName = "Solana node";

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const head =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), body]);
}

function bitString(bytes: Uint8Array): Buffer {
  return der(tags.bits, Buffer.from([0]), bytes);
}

function pemOf(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

function certificateOf(key: KeyObject): Buffer {
  // The JWK contains the raw public key for SubjectPublicKeyInfo.
  const { x } = key.export({ format: "jwk" });
  const publicKey = Buffer.from(x ?? "", "base64url");
  if (publicKey.length !== publicKeyBytes) {
    throw new TypeError(`Ed25519 key: expected ${publicKeyBytes} bytes, got ${publicKey.length}`);
  }
  const algorithm = der(tags.sequence, oids.ed25519);
  const name = der(
    tags.sequence,
    der(tags.set, der(tags.sequence, oids.commonName, der(tags.utf8, Buffer.from(commonName)))),
  );
  // From 1970 to the date that RFC 5280 (4.1.2.5) defines as no expiry.
  const validity = der(
    tags.sequence,
    der(utcTimeTag, Buffer.from("700101000000Z")),
    der(generalizedTimeTag, Buffer.from("99991231235959Z")),
  );
  const body = der(
    tags.sequence,
    der(versionTag, der(tags.integer, Buffer.from([2]))), // X.509 v3
    der(tags.integer, Buffer.from([1])), // serial number
    algorithm,
    name,
    validity,
    name,
    der(tags.sequence, algorithm, bitString(publicKey)),
  );
  return der(tags.sequence, body, algorithm, bitString(sign(null, body, key)));
}

function credentialsFor(key: KeyObject): QuicheCredentials {
  return {
    keyPem: pemOf("PRIVATE KEY", key.export({ format: "der", type: "pkcs8" })),
    certificatePem: pemOf("CERTIFICATE", certificateOf(key)),
  };
}

/**
 * Credentials of an identity. `seed`: the first 32 bytes of its 64-byte key pair. Throws a
 * TypeError.
 */
export function credentialsOf(seed: Uint8Array): QuicheCredentials {
  return credentialsFor(privateKeyOf(seed));
}

/** Credentials of a new ephemeral key. */
export function newCredentials(): QuicheCredentials {
  return credentialsFor(generateKeyPairSync("ed25519").privateKey);
}
