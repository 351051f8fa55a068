// X.509 certificates in PEM: for Ed25519 keys, as leaders expect them, and self-signed ones for P-256 keys.
//
// A leader uses only the public key (the identity) of the certificate; TLS 1.3's CertificateVerify
// proves its ownership. The QUIC ingress reads the API key from the common name. The DER (ITU-T X.690,
// RFC 5280, RFC 5758, RFC 8410) is written here because node:crypto does not create certificates. Used by
// the TPU route, the QUIC ingress, its clients, and the sandbox's leaders.

import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";
import { privateKeyOf } from "../key-pair.ts";
import type { QuicheCredentials } from "./quiche.ts";

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
};
const utcTimeTag = 0x17;
const generalizedTimeTag = 0x18;
const dnsNameTag = 0x82;
const versionTag = 0xa0;
const extensionsTag = 0xa3;
const oids = {
  ed25519: Buffer.from("06032b6570", "hex"),
  ecdsaWithSha256: Buffer.from("06082a8648ce3d040302", "hex"),
  commonName: Buffer.from("0603550403", "hex"),
  subjectAltName: Buffer.from("0603551d11", "hex"),
  basicConstraints: Buffer.from("0603551d13", "hex"),
  /** 2.999.1.1: the request for protection, as of Lunar Lander's clients. */
  protection: Buffer.from("060488370101", "hex"),
} as const;

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

const isTrue = der(tags.boolean, Buffer.from([0xff]));
const notCritical = Buffer.alloc(0);
const notAuthority = extension(oids.basicConstraints, isTrue, der(tags.sequence));

/** `critical`: the flag, or nothing. */
function extension(oid: Uint8Array, critical: Uint8Array, value: Uint8Array): Buffer {
  return der(tags.sequence, oid, critical, der(tags.octets, value));
}

function dnsNames(name: string): Buffer {
  return der(tags.sequence, der(dnsNameTag, Buffer.from(name)));
}

function commonNameOf(name: string): Buffer {
  const attribute = der(tags.sequence, oids.commonName, der(tags.utf8, Buffer.from(name)));
  return der(tags.sequence, der(tags.set, attribute));
}

interface CertificateContent {
  readonly key: KeyObject;
  readonly algorithm: Uint8Array;
  readonly serialNumber: Uint8Array;
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  /** GeneralizedTime. */
  readonly notAfter: string;
  /** Never empty: rustls 0.20 rejects certificates without extensions, also if it verifies nothing else. */
  readonly extensions: readonly Uint8Array[];
  readonly sign: (body: Uint8Array) => Uint8Array;
}

function certificateOf(content: CertificateContent): Buffer {
  const algorithm = der(tags.sequence, content.algorithm);
  const body = der(
    tags.sequence,
    der(versionTag, der(tags.integer, Buffer.from([2]))), // X.509 v3
    der(tags.integer, content.serialNumber),
    algorithm,
    content.issuer,
    der(
      tags.sequence,
      der(utcTimeTag, Buffer.from("700101000000Z")),
      der(generalizedTimeTag, Buffer.from(content.notAfter)),
    ),
    content.subject,
    createPublicKey(content.key).export({ format: "der", type: "spki" }),
    der(extensionsTag, der(tags.sequence, ...content.extensions)),
  );
  return der(tags.sequence, body, algorithm, bitString(content.sign(body)));
}

function credentialsFor(content: CertificateContent): QuicheCredentials {
  return {
    keyPem: pemOf("PRIVATE KEY", content.key.export({ format: "der", type: "pkcs8" })),
    certificatePem: pemOf("CERTIFICATE", certificateOf(content)),
  };
}

/** The same bytes around the key as from Agave. Firedancer reads the key of no other X.509 certificate. */
function identityOf(key: KeyObject): QuicheCredentials {
  return credentialsFor({
    key,
    algorithm: oids.ed25519,
    serialNumber: Buffer.alloc(8, 1),
    issuer: commonNameOf("Solana node"),
    subject: der(tags.sequence),
    notAfter: "40960101000000Z",
    extensions: [extension(oids.subjectAltName, isTrue, dnsNames("localhost")), notAuthority],
    sign: () => Buffer.alloc(64, 0xff), // deliberately invalid
  });
}

/**
 * Credentials of an identity. `seed`: the first 32 bytes of its 64-byte key pair. Throws a
 * TypeError.
 */
export function credentialsOf(seed: Uint8Array): QuicheCredentials {
  return identityOf(privateKeyOf(seed));
}

/** Credentials of a new ephemeral key. */
export function newCredentials(): QuicheCredentials {
  return identityOf(generateKeyPairSync("ed25519").privateKey);
}

interface EcdsaOptions {
  /** The name of a server, for clients that verify it. */
  readonly dnsName?: string;
  /** Asks for protection of all transactions. */
  readonly isProtected?: boolean;
}

/**
 * Credentials of a new P-256 key, which every TLS 1.3 library supports. A client of the QUIC ingress has its
 * API key as common name.
 */
export function newEcdsaCredentials(
  commonName: string,
  { dnsName, isProtected = false }: EcdsaOptions = {},
): QuicheCredentials {
  const { privateKey: key } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  // As unique as the key. Positive and without leading zeros, as DER requires it.
  const spki = createPublicKey(key).export({ format: "der", type: "spki" });
  const serialNumber = createHash("sha256").update(spki).digest().subarray(0, 16);
  serialNumber[0] = ((serialNumber[0] ?? 0) & 0x7f) | 0x40;
  const name = commonNameOf(commonName);
  const extensions = [notAuthority];
  if (dnsName !== undefined)
    extensions.push(extension(oids.subjectAltName, notCritical, dnsNames(dnsName)));
  if (isProtected) extensions.push(extension(oids.protection, notCritical, isTrue));
  return credentialsFor({
    key,
    algorithm: oids.ecdsaWithSha256,
    serialNumber,
    issuer: name,
    subject: name,
    notAfter: "99991231235959Z", // no expiry: RFC 5280, 4.1.2.5
    extensions,
    sign: (body) => sign("sha256", body, key),
  });
}
