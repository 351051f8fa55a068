// connectQuic against a real ingress: signatures, errors, identity of the service, new connections.

import { X509Certificate } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { base58 } from "@scure/base";
import { expect, it } from "vitest";
import { openQuicClient } from "../../../src/client/quic/connect.ts";
import {
  connectQuic,
  type QuicClient,
  type QuicClientOptions,
  type QuicEnd,
} from "../../../src/client/quic/index.ts";
import { fingerprintOf } from "../../../src/client/quic/server-check.ts";
import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import type { QuicIngressOptions } from "../../../src/gateway/quic/quic-ingress.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { apiKey, tipAddress } from "../../support/gateway/gateway.ts";
import { hasOpenssl, makeCertificate } from "../../support/network/test-certificate.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { sessionsOf } from "../../support/quic/ingress-clients.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { describeQuic, QuicServer } from "../../support/quic/quic-server.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { tipping, tippingV0 } from "../../support/transactions/tipping.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

const timeoutMs = 60_000; // the machine may be busy

async function connect(
  run: IngressRun,
  options: Partial<QuicClientOptions> = {},
): Promise<QuicClient> {
  const address = run.address();
  return closing(await connectQuic({ address, apiKey: "good", timeoutMs, ...options }));
}

function signatureOf(wire: Uint8Array): string {
  return base58.encode(wire.subarray(1, 65));
}

/** An ingress with a certificate, its fingerprint, and everything that its certificate shows. */
async function withCertificate(options: Partial<QuicIngressOptions> = {}) {
  const credentials = newEcdsaCredentials("shredway");
  const { raw, fingerprint256 } = new X509Certificate(credentials.certificatePem);
  const run = await IngressRun.open({ credentials, ...options });
  return { run, raw, fingerprint: fingerprint256, pem: credentials.certificatePem };
}

describeQuic("a client", () => {
  it("sends transactions in every form and gets their signatures", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const wire = tipping();
    expect(await client.send(wire)).toBe(signatureOf(wire));
    const texts = [
      Buffer.from(tippingV0({ amount: 2n })).toString("base64"),
      base58.encode(tippingV0({ amount: 3n })),
    ];
    await Promise.all(texts.map((text) => client.send(text)));
    expect(run.gateway.submitted.map(({ ingress }) => ingress)).toEqual(["quic", "quic", "quic"]);
    await expect(client.send("no transaction")).rejects.toMatchObject({ reason: "value_invalid" });
    await expect(client.send(new Uint8Array(0))).rejects.toMatchObject({ reason: "value_invalid" });
  });

  it("sends more transactions at once than the service permits streams", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const wires = Array.from({ length: 150 }, (_, i) => tippingV0({ amount: BigInt(i + 1) }));
    const signatures = await Promise.all(wires.map((wire) => client.send(wire)));
    expect(signatures).toEqual(wires.map(signatureOf));
  });

  it("sends bundles", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const wires = [tipping(), tippingV0({ amount: 2n })];
    expect(await client.sendBundle(wires)).toEqual(wires.map(signatureOf));
    expect(run.gateway.submitted).toMatchObject([{ method: "sendBundle", isBundle: true }]);
    const other = await connect(run, { dialect: "lunar-lander-tpu" });
    await expect(other.sendBundle(wires)).rejects.toThrow(TypeError);
  });

  it("rejects transactions that it cannot send, and says why", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const bundle = client.sendBundle([tipping(), Buffer.alloc(70_000)]);
    await expect(bundle).rejects.toMatchObject({
      name: "ShredwayCallError",
      message: "value_invalid: transaction 1: expected 1 to 4096 bytes, got 70000",
    });
    const text = Buffer.from(tipping()).toString("base64");
    const invalid: [string, "base64" | "base58" | undefined, string][] = [
      [
        `${text.slice(0, 20)}\n${text.slice(20)}`,
        "base64",
        'invalid base64: character "\\n" at 20',
      ],
      [`AA==${text}`, undefined, 'invalid base64 or base58: character "=" at 2'],
      ["AB0C", "base58", 'invalid base58: character "0" at 2'],
      ["AAAAA", "base64", "invalid base64: 5 characters, wrong length or padding"],
      ["", undefined, "expected base64 or base58, got an empty text"],
    ];
    for (const [wrong, encoding, problem] of invalid) {
      const sent = client.send(wrong, encoding ? { encoding } : {});
      await expect(sent).rejects.toThrow(`value_invalid: transaction: ${problem}`);
    }
    expect(run.gateway.submitted).toEqual([]);
  });

  it("reports rejections with reason, codes and the time to wait", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    await expect(client.send(tipping({ tip: 1n }))).rejects.toMatchObject({
      name: "ShredwayCallError",
      reason: "tip_too_low",
      code: -32602,
      httpStatus: 400,
      message: expect.stringMatching(/^tip_too_low: body: tip 1 lamports, minimum 10000/),
    });
    const limited = { allowed: false, limit: 3, remaining: 0, retryAfterSeconds: 2 } as const;
    run.gateway.verdict = () => ({ ...limited, resetSeconds: 3 });
    await expect(client.send(tipping())).rejects.toMatchObject({
      reason: "rate_limited",
      httpStatus: 429,
      retryAfterSeconds: 2,
    });
  });

  it("gives up a submission at its timeout and by its signal, and continues", async () => {
    const run = await IngressRun.open();
    run.gateway.submit = () => new Promise(() => undefined);
    const client = await connect(run);
    const late = client.send(tipping(), { timeoutMs: 1 });
    await expect(late).rejects.toMatchObject({ reason: "timeout" });
    const controller = new AbortController();
    const aborted = client.send(tippingV0({ amount: 2n }), { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    run.gateway.submit = () => Promise.resolve();
    expect(await client.send(tippingV0({ amount: 3n }))).toMatch(/^[1-9A-Za-z]{64,}$/);
  });

  it("requests protection by its certificate", async () => {
    const run = await IngressRun.open();
    const client = await connect(run, { mevProtect: true });
    await client.send(tipping());
    expect(run.gateway.submitted).toMatchObject([{ options: { mevProtect: true } }]);
  });

  it("speaks the dialects without responses", async () => {
    const run = await IngressRun.open();
    const client = await connect(run, { dialect: "astralane-tpu" });
    const wire = tipping();
    expect(await client.send(wire)).toBe(signatureOf(wire));
    const payer = SandboxKeyPair.named(1, "payer");
    const v1 = v1Transfer(payer, base58.decode(tipAddress), 10_000n, {
      blockhash: new Uint8Array(32).fill(7),
    });
    const signature = await client.send(v1);
    await until(() => run.gateway.submitted.length === 2, "both transactions");
    expect(run.gateway.submitted[1]?.transactions[0]?.signature).toBe(signature);
    const identity = SandboxKeyPair.named(1, "validator");
    run.gateway.publicKeys.add(apiKey("good"), base58.encode(identity.publicKey), "tpu");
    const keyPair = new Uint8Array(32).fill(9);
    const stranger = connect(run, { dialect: "solana-tpu", keyPair });
    await expect(stranger.then((each) => each.send(tipping()))).rejects.toMatchObject({
      reason: "unauthorized",
    });
  });

  it("rejects options that cannot work", async () => {
    const address = "127.0.0.1:7000";
    const invalid: [Partial<QuicClientOptions>, RegExp][] = [
      [{ address: "127.0.0.1" }, /^address: expected "host:port"/],
      [{ apiKey: "" }, /^apiKey: expected an API key, got 0 characters/],
      [{ server: { fingerprint: "AB:CD" } }, /^server.fingerprint: expected SHA-256/],
      [{ keepAliveMs: 60_000 }, /^keepAliveMs: expected 1 to 25000 milliseconds, got 60000/],
      [{ dialect: "solana-tpu" }, /^keyPair: expected 32 or 64 bytes, got nothing/],
    ];
    for (const [options, message] of invalid) {
      await expect(connectQuic({ address, apiKey: "good", ...options })).rejects.toThrow(message);
    }
  });
});

describeQuic("the identity of the service", () => {
  it("is its pinned fingerprint, and another service never gets the key", async () => {
    const { run, raw, fingerprint } = await withCertificate();
    expect(fingerprintOf(raw)).toBe(fingerprint);
    const server = { fingerprint: fingerprint.replaceAll(":", "").toLowerCase() };
    const client = await connect(run, { server });
    expect(await client.send(tipping())).toMatch(/^[1-9A-Za-z]{64,}$/);
    const wrong = { fingerprint: `00${fingerprint.slice(2)}` };
    await expect(connect(run, { server: wrong })).rejects.toMatchObject({
      reason: "certificate_untrusted",
      message: expect.stringContaining(`got ${fingerprint}`),
    });
    expect(sessionsOf(run)).toBe(1);
    const impostor = closing(await QuicServer.open({ protocol: "shredway-tpu" }));
    const refused = connectQuic({
      address: `127.0.0.1:${impostor.port}`,
      apiKey: "good",
      timeoutMs,
      server,
    });
    await expect(refused).rejects.toMatchObject({ reason: "certificate_untrusted" });
    expect(impostor.identities).toEqual([]);
  });

  it("is signed by an accepted authority otherwise", async () => {
    const { run, pem } = await withCertificate();
    // The certificate contains no address.
    const named = connect(run, { server: { authorities: pem } });
    await expect(named).rejects.toMatchObject({ reason: "certificate_untrusted" });
    const { certificatePem } = newEcdsaCredentials("another");
    const other = connect(run, { server: { authorities: certificatePem } });
    await expect(other).rejects.toMatchObject({
      reason: "certificate_untrusted",
      message: expect.stringContaining("shredway doctor"),
    });
    expect(sessionsOf(run)).toBe(0);
  });
});

describeQuic("a certificate with names", () => {
  it.skipIf(!hasOpenssl).each([
    ["DNS:localhost,IP:127.0.0.1", "127.0.0.1", true],
    ["DNS:localhost,IP:127.0.0.1", "localhost", true],
    ["DNS:gateway.example,IP:127.0.0.2", "127.0.0.1", false],
    ["DNS:gateway.example,IP:127.0.0.2", "localhost", false],
  ])("%s for %s is accepted: %s", async (names, host, isAccepted) => {
    const algorithm = { algorithm: "ec", curve: "P-256" };
    const files = makeCertificate(temporaryFolder(), "server", { names, ...algorithm });
    const authorities = readFileSync(files.certificate, "utf8");
    const keyPem = readFileSync(files.key, "utf8");
    const run = await IngressRun.open({ credentials: { keyPem, certificatePem: authorities } });
    const address = `${host}:${run.address().split(":").at(-1)}`;
    const connected = connect(run, { address, server: { authorities } });
    if (isAccepted) {
      expect(await (await connected).send(tipping())).toMatch(/^[1-9A-Za-z]{64,}$/);
      return;
    }
    await expect(connected).rejects.toMatchObject({ reason: "certificate_untrusted" });
    expect(sessionsOf(run)).toBe(0);
    expect(run.gateway.submitted).toEqual([]);
  });
});

describeQuic("a connection", () => {
  it("fails at once if nobody listens", async () => {
    const socket = createSocket("udp4").bind(0, "127.0.0.1");
    await once(socket, "listening");
    const address = `127.0.0.1:${socket.address().port}`;
    socket.close();
    await once(socket, "close");
    await expect(connectQuic({ address, apiKey: "good", timeoutMs })).rejects.toMatchObject({
      reason: "unreachable",
      message: expect.stringContaining(address),
    });
  });

  it("reports a revoked key, and answers later submissions with it", async () => {
    const run = await IngressRun.open();
    const ends: QuicEnd[] = [];
    const client = await connect(run, { onClosed: (end) => void ends.push(end) });
    await client.send(tipping());
    run.gateway.keys.delete("good");
    await until(() => ends.length > 0, "the close");
    expect(ends[0]).toMatchObject({ name: "unauthorized", code: 1 });
    expect(ends[0]?.retryMs).toBeGreaterThanOrEqual(1000);
    await expect(client.send(tipping())).rejects.toMatchObject({ reason: "unauthorized" });
  });

  it("is tried again after a refusal with growing pauses", async () => {
    const run = await IngressRun.open();
    const clock = ManualClock.running();
    const ends: QuicEnd[] = [];
    const options = { address: run.address(), apiKey: "good", timeoutMs };
    const onClosed = (end: QuicEnd): void => void ends.push(end);
    closing(await openQuicClient({ ...options, onClosed }, { clock, random: () => 0 }));
    run.gateway.keys.delete("good");
    for (const [i, pauseMs] of [2000, 4000, 8000].entries()) {
      await until(() => ends.length === i + 1, "the refusal");
      expect(ends[i]).toMatchObject({ name: "unauthorized", retryMs: pauseMs });
      clock.move(pauseMs);
    }
  });

  it("is replaced when the process of the service ends, and submissions wait for it", async () => {
    const run = await IngressRun.open();
    const connections: number[] = [];
    const ends: QuicEnd[] = [];
    const client = await connect(run, {
      onConnected: () => void connections.push(1),
      onClosed: (end) => void ends.push(end),
    });
    await client.send(tipping());
    process.kill(run.ingress.snapshot().process.pid ?? 0, "SIGKILL");
    // Either waits for the next connection, or fails because its response is missing.
    for (let amount = 2n; connections.length < 2; amount++) {
      await client.send(tippingV0({ amount })).catch((error: unknown) => {
        expect(error).toMatchObject({ reason: "unreachable" });
      });
    }
    expect(await client.send(tipping({ amount: 1000n }))).toMatch(/^[1-9A-Za-z]{64,}$/);
    expect(ends.length).toBeGreaterThan(0);
  });

  it("ends by close, and with it every submission", async () => {
    const run = await IngressRun.open();
    run.gateway.submit = () => new Promise(() => undefined);
    const ends: QuicEnd[] = [];
    const client = await connect(run, { onClosed: (end) => void ends.push(end) });
    const sent = client.send(tipping());
    const failed = expect(sent).rejects.toMatchObject({ reason: "unreachable" });
    await until(() => run.gateway.submitted.length === 1, "the submission");
    client.close();
    client.close();
    await failed;
    expect(ends).toMatchObject([{ name: "closed_here", code: null, retryMs: null }]);
    await until(() => sessionsOf(run) === 0, "the end at the service");
    await expect(client.send(tipping())).rejects.toMatchObject({ reason: "unreachable" });
  });
});
