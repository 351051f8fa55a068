// Self-signed X.509 certificates in PEM: for Ed25519 keys, as leaders expect them, and for P-256 keys.
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
const nodeName = "Solana node";

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

interface EcdsaOptions {
  /** The name of a server, for clients that verify it. */
  readonly dnsName?: string;
  /** Asks for protection of all transactions. */
  readonly isProtected?: boolean;
}

interface Subject extends EcdsaOptions {
  readonly commonName: string;
  readonly serialNumber: Uint8Array;
}

const isTrue = der(tags.boolean, Buffer.from([0xff]));

function extension(oid: Uint8Array, ...rest: readonly Uint8Array[]): Buffer {
  return der(tags.sequence, oid, ...rest);
}

/** Never empty: rustls 0.20 rejects certificates without extensions, also if it verifies nothing else. */
function extensionsOf({ dnsName, isProtected }: Subject): Buffer {
  const isNoAuthority = der(tags.octets, der(tags.sequence));
  const all = [extension(oids.basicConstraints, isTrue, isNoAuthority)];
  if (dnsName !== undefined) {
    const names = der(tags.sequence, der(dnsNameTag, Buffer.from(dnsName)));
    all.push(extension(oids.subjectAltName, der(tags.octets, names)));
  }
  if (isProtected) all.push(extension(oids.protection, der(tags.octets, isTrue)));
  return der(extensionsTag, der(tags.sequence, ...all));
}

function certificateOf(key: KeyObject, subject: Subject): Buffer {
  const { commonName, serialNumber } = subject;
  const isEd25519 = key.asymmetricKeyType === "ed25519";
  const algorithm = der(tags.sequence, isEd25519 ? oids.ed25519 : oids.ecdsaWithSha256);
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
    der(tags.integer, serialNumber),
    algorithm,
    name,
    validity,
    name,
    createPublicKey(key).export({ format: "der", type: "spki" }),
    extensionsOf(subject),
  );
  const signature = sign(isEd25519 ? null : "sha256", body, key);
  return der(tags.sequence, body, algorithm, bitString(signature));
}

function credentialsFor(key: KeyObject, subject: Subject): QuicheCredentials {
  return {
    keyPem: pemOf("PRIVATE KEY", key.export({ format: "der", type: "pkcs8" })),
    certificatePem: pemOf("CERTIFICATE", certificateOf(key, subject)),
  };
}

const nodeSubject: Subject = { commonName: nodeName, serialNumber: Buffer.from([1]) };

/**
 * Credentials of an identity. `seed`: the first 32 bytes of its 64-byte key pair. Throws a
 * TypeError.
 */
export function credentialsOf(seed: Uint8Array): QuicheCredentials {
  return credentialsFor(privateKeyOf(seed), nodeSubject);
}

/** Credentials of a new ephemeral key. */
export function newCredentials(): QuicheCredentials {
  return credentialsFor(generateKeyPairSync("ed25519").privateKey, nodeSubject);
}

/**
 * Credentials of a new P-256 key, which every TLS 1.3 library supports. A client of the QUIC ingress has its
 * API key as common name.
 */
export function newEcdsaCredentials(
  commonName: string,
  options: EcdsaOptions = {},
): QuicheCredentials {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  // As unique as the key. Positive and without leading zeros, as DER requires it.
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  const serialNumber = createHash("sha256").update(spki).digest().subarray(0, 16);
  serialNumber[0] = ((serialNumber[0] ?? 0) & 0x7f) | 0x40;
  return credentialsFor(privateKey, { ...options, commonName, serialNumber });
}
