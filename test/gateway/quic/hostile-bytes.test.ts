// Seeded mutations of valid bytes against every reader of the QUIC ingress: certificates, first packets, and the
// messages and frames between its processes.

import { randomBytes, X509Certificate } from "node:crypto";
import { expect, it } from "vitest";
import { newCredentials, newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { readCertificateFacts } from "../../../src/gateway/quic/certificate-facts.ts";
import {
  answerBytesMax,
  decodeAnswer,
  encodeAnswer,
} from "../../../src/gateway/quic/ingress-messages.ts";
import { readLongHeader } from "../../../src/gateway/quic/long-header.ts";
import type { IngressProcessAnswer } from "../../../src/gateway/quic/types.ts";
import { FrameReader } from "../../../src/gateway/tpu/frames.ts";
import { certificateBombs } from "../../support/quic/attacks.ts";
import { selfSignedCertificate } from "../../support/quic/self-signed.ts";
import { seedsOfRun } from "../../support/vitest/test-scope.ts";

const seeds = seedsOfRun([1, 2, 3, 4]);
const rounds = 5000;

/** One to four changes: a byte, an extreme byte, an insertion, a deletion, or a repeated part. */
function mutated(valid: Uint8Array, random: SeededRandom): Buffer {
  let bytes = Buffer.from(valid);
  for (let i = 0; i <= random.below(4); i++) {
    const at = random.below(Math.max(1, bytes.length));
    const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
    const length = 1 + random.below(16);
    const kind = random.below(5);
    if (kind === 0 && bytes.length > 0) bytes[at] = random.below(256);
    else if (kind === 1 && bytes.length > 0) {
      bytes[at] = [0x00, 0x1f, 0x7f, 0x80, 0x82, 0x83, 0x84, 0xff][random.below(8)] ?? 0;
    } else if (kind === 2) {
      const added = Buffer.from(Array.from({ length }, () => random.below(256)));
      bytes = Buffer.concat([before, added, after]);
    } else if (kind === 3) bytes = Buffer.concat([before, after.subarray(length)]);
    else bytes = Buffer.concat([bytes, after.subarray(0, length * 8)]);
  }
  return bytes;
}

function derOf(pem: string): Buffer {
  return Buffer.from(new X509Certificate(pem).raw);
}

it.each(seeds)("certificates: seed %i", (seed) => {
  const random = new SeededRandom(seed);
  const valid = [
    derOf(newEcdsaCredentials("key", { isProtected: true }).certificatePem),
    derOf(newCredentials().certificatePem),
    derOf(selfSignedCertificate),
  ];
  let readable = 0;
  for (let i = 0; i < rounds; i++) {
    const facts = readCertificateFacts(mutated(valid[i % valid.length] ?? Buffer.alloc(0), random));
    if (!facts) continue;
    readable++;
    expect([0, 32]).toContain(facts.ed25519Key?.length ?? 0);
    expect(facts.commonName ?? "x").toMatch(/^[\x21-\x7e]{1,256}$/);
    expect([true, false, "invalid"]).toContain(facts.protection);
  }
  expect(readable).toBeGreaterThan(0);
  expect(readable).toBeLessThan(rounds);
});

it("certificates that are huge or deeply nested are read or refused, without recursion", () => {
  const names = certificateBombs("key").map(({ certificatePem }) => {
    const [first = ""] = certificatePem.split("-----END CERTIFICATE-----");
    const der = Buffer.from(first.replaceAll(/-----[A-Z ]+-----|\s/g, ""), "base64");
    return readCertificateFacts(der)?.commonName ?? null;
  });
  expect(names).toEqual(["key", null, null, "key", null, "key", "key"]);
});

it.each(seeds)("first packets: seed %i", (seed) => {
  const random = new SeededRandom(seed);
  const version = Buffer.from("c000000001", "hex");
  const ids = Buffer.concat([Buffer.of(8), randomBytes(8), Buffer.of(20), randomBytes(20)]);
  const valid = Buffer.concat([version, ids, Buffer.from("401e", "hex"), randomBytes(1200)]);
  let readable = 0;
  for (let i = 0; i < rounds; i++) {
    const packet = mutated(valid.subarray(0, 20 + random.below(100)), random);
    const header = readLongHeader(packet);
    if (!header) continue;
    readable++;
    const parts = [header.dcid, header.scid, header.token];
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    expect(length).toBeLessThan(packet.length);
    if (header.version === 1) expect(header.dcid.length).toBeLessThanOrEqual(20);
  }
  expect(readable).toBeGreaterThan(0);
});

it.each(seeds)("messages of the process: seed %i", (seed) => {
  const random = new SeededRandom(seed);
  const bytes = Buffer.from("a transaction");
  const connection = {
    id: 7,
    listener: 0,
    protocol: "shredway-tpu",
    host: "127.0.0.1",
    commonName: "key",
    ed25519Key: null,
    protection: false,
  };
  const answers: IngressProcessAnswer[] = [
    { kind: "connected", connection },
    {
      kind: "streams",
      streams: [{ connection: 7, stream: 2, receivedNs: 3n, sequence: 1, bytes }],
    },
    { kind: "ended", connection: 7, end: "closed" },
    { kind: "listening", addresses: ["127.0.0.1:7000"] },
  ];
  const valid = answers.map((answer) => encodeAnswer(answer));
  const names = new Set<string>();
  for (let i = 0; i < rounds; i++) {
    const frame = mutated(
      Buffer.concat([valid[i % 4] ?? bytes, valid[(i + 1) % 4] ?? bytes]),
      random,
    );
    const reader = new FrameReader(answerBytesMax, (kind, body) => decodeAnswer(kind, body));
    try {
      reader.push(frame);
    } catch (error) {
      names.add(error instanceof Error ? error.constructor.name : String(error));
    }
  }
  // The gateway ends a process that sends such a message.
  expect([...names].toSorted()).toEqual(["RangeError", "SyntaxError"]);
});
