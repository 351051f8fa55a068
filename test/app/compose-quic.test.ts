// The QUIC ingress from its configuration: certificates that the QUIC library takes, and others.

import { X509Certificate } from "node:crypto";
import { copyFileSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { openQuic, type QuicService } from "../../src/app/compose-quic.ts";
import { systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { newEcdsaCredentials } from "../../src/core/quic/certificate.ts";
import { KeyRing } from "../../src/gateway/accounts/key-ring.ts";
import { closing } from "../support/closing.ts";
import { GatewayRun } from "../support/gateway/gateway.ts";
import {
  type CertificateFiles,
  hasOpenssl,
  makeCertificate,
} from "../support/network/test-certificate.ts";
import { until } from "../support/network/udp-receiver.ts";
import { QuicClient } from "../support/quic/quic-client.ts";
import { describeQuic } from "../support/quic/quic-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

async function open(tls: CertificateFiles): Promise<{ quic: QuicService; lines: string[] }> {
  const lines: string[] = [];
  const { gateway } = await GatewayRun.open();
  const quic = openQuic({
    config: completeConfig({
      relay: { shredVersion: 1, authentication: "off" },
      http: { listen: "127.0.0.1:0" },
      tips: { addresses: [pubkeyOf(new Uint8Array(32).fill(5))] },
      data: { directory: temporaryFolder() },
      quic: { listen: "127.0.0.1:0", protectedListen: [], tls: { ...tls } },
    }),
    gateway: () => gateway,
    keyRing: new KeyRing(),
    publicKeys: { find: () => null },
    fastPath: null,
    clock: systemClock,
    log: createLogger({ stream: { write: (line: string) => lines.push(line) } }),
  });
  if (!quic) throw new Error("expected the QUIC ingress");
  return { quic: closing(quic), lines };
}

function made(name: string, algorithm: string, curve?: string): CertificateFiles {
  return makeCertificate(temporaryFolder(), name, { algorithm, curve });
}

async function presented({ ingress }: QuicService): Promise<Buffer> {
  const client = await QuicClient.open(ingress.addresses[0] ?? "", {
    credentials: newEcdsaCredentials("good"),
    protocol: "shredway-tpu",
  });
  await client.established;
  return Buffer.from(client.quic.peerCertChain()?.[0] ?? []);
}

function derOf({ certificate }: CertificateFiles): Buffer {
  return new X509Certificate(readFileSync(certificate)).raw;
}

describeQuic("a certificate of the operator", () => {
  it.skipIf(!hasOpenssl).each([
    ["ec", "secp256k1", "secp256k1"],
    ["ec", "secp521r1", "secp521r1"],
    ["ed448", undefined, "ed448"],
  ])("of the type %s %s is refused at the start", async (algorithm, curve, type) => {
    const files = made("server", algorithm, curve);
    await expect(open(files)).rejects.toThrow(
      `quic.tls: ${files.key} and ${files.certificate}: the key has the type ${type}; ` +
        "expected a key of the type P-256, P-384, Ed25519 or RSA; make one with: openssl req",
    );
  });

  it.skipIf(!hasOpenssl)("that clients cannot use does not replace the one in force", async () => {
    const files = made("server", "rsa:2048");
    const first = derOf(files);
    const { quic, lines } = await open(files);
    await quic.ingress.start();
    expect(await presented(quic)).toEqual(first);
    const replace = ({ certificate, key }: CertificateFiles): void => {
      copyFileSync(certificate, files.certificate);
      copyFileSync(key, files.key);
    };
    replace(made("other", "ec", "secp256k1"));
    await until(() => quic.certificate?.problem !== null, "the check of the files");
    expect(
      lines.filter((line) => line.includes("certificate") && !line.includes("is in force")),
    ).toEqual([
      expect.stringContaining("quic: the new TLS certificate cannot be used; the previous one"),
    ]);
    expect(await presented(quic)).toEqual(first);
    const good = made("good", "ec", "P-384");
    replace(good);
    await until(() => quic.certificate?.problem === null, "the next check of the files");
    expect(await presented(quic)).toEqual(derOf(good));
    expect(quic.ingress.snapshot().process.ends.exited).toBe(0);
    expect(quic.ingress.snapshot().process.ends.not_started).toBe(0);
  });
});
