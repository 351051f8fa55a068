// The QUIC ingress with a client of another stack: ngtcp2 and GnuTLS.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../../src/core/addresses/addresses.ts";
import { newCredentials, newEcdsaCredentials } from "../../../../src/core/quic/certificate.ts";
import { closing } from "../../../support/closing.ts";
import { LossyLink } from "../../../support/network/lossy-link.ts";
import { until } from "../../../support/network/udp-receiver.ts";
import { framed, sessionsOf } from "../../../support/quic/ingress-clients.ts";
import { IngressRun } from "../../../support/quic/ingress-run.ts";
import {
  Ngtcp2Client,
  type Ngtcp2ClientOptions,
} from "../../../support/quic/interop/ngtcp2-client.ts";
import {
  buildNgtcp2,
  buildTimeoutMs,
  ngtcp2Problem,
} from "../../../support/quic/interop/ngtcp2-leader.ts";
import { describeQuic } from "../../../support/quic/quic-server.ts";
import { readResponse } from "../../../support/quic/response-frames.ts";
import { tipping, tippingV0 } from "../../../support/transactions/tipping.ts";

let folder = "";
let program = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "shredway-"));
  if (ngtcp2Problem === null) program = buildNgtcp2("ngtcp2-client", folder);
}, buildTimeoutMs);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function connect(run: IngressRun, options: Partial<Ngtcp2ClientOptions> = {}): Ngtcp2Client {
  return Ngtcp2Client.open({
    program,
    address: run.address(),
    protocol: "shredway-tpu",
    credentials: newEcdsaCredentials("good"),
    ...options,
  });
}

describe.skipIf(ngtcp2Problem !== null)("a client with ngtcp2", () => {
  describeQuic("and the dialect shredway-tpu", () => {
    it("submits transactions, and gets the signature on a bidirectional stream", async () => {
      const run = await IngressRun.open();
      const client = connect(run);
      const response = readResponse(await client.request(tipping()));
      const [request] = run.gateway.submitted;
      const signature = request?.transactions[0]?.signature;
      expect(response).toEqual({ version: 1, flags: 0, status: 200, body: signature });
      expect(request).toMatchObject({ method: "sendTransaction", ingress: "quic" });
      client.send(tippingV0({ amount: 2n }));
      await until(() => run.gateway.submitted.length === 2, "the second transaction");
    });

    it("submits a bundle as frames", async () => {
      const run = await IngressRun.open();
      const client = connect(run);
      const bundle = framed(tipping(), tippingV0({ amount: 2n }));
      const { status, body } = readResponse(await client.request(bundle));
      const [request] = run.gateway.submitted;
      expect(request).toMatchObject({ method: "sendBundle", isBundle: true });
      const signatures = request?.transactions.map(({ signature }) => signature);
      expect({ status, signatures: body.split(",") }).toEqual({ status: 200, signatures });
    });

    it("gets the reason of a rejection", async () => {
      const run = await IngressRun.open();
      const client = connect(run);
      const { status, body } = readResponse(await client.request(tipping({ tip: 1n })));
      expect({ status, body }).toEqual({
        status: 400,
        body: expect.stringMatching(/^tip_too_low: body: tip 1 lamports, minimum 10000 lamports/),
      });
      const garbage = readResponse(await client.request(Buffer.from("garbage")));
      expect(garbage).toMatchObject({ status: 400, body: expect.stringMatching(/^\w+: /) });
      const empty = readResponse(await client.request(Buffer.alloc(0)));
      expect(empty.body).toBe("value_invalid: stream: expected a transaction, got 0 bytes");
    });
  });

  describeQuic("and the dialect astralane-tpu", () => {
    it("submits more transactions than it may have open streams", async () => {
      const run = await IngressRun.open();
      const client = connect(run, { protocol: "astralane-tpu" });
      const count = 150;
      for (let i = 0; i < count; i++) client.send(tipping({ amount: BigInt(i + 1) }));
      await until(() => run.gateway.submitted.length === count, `${count} transactions`);
    });

    it("is closed with code 1 for an unknown key, and with 2 above the limit", async () => {
      const run = await IngressRun.open({ connectionsPerKeyMax: 1 });
      const astralane = { protocol: "astralane-tpu" };
      const unknown = connect(run, { ...astralane, credentials: newEcdsaCredentials("nobody") });
      expect(await unknown.ended()).toMatch(/^app 1 unauthorized: invalid API key: unknown/);
      const first = connect(run, astralane);
      await first.established();
      await until(() => run.ingress.snapshot().connections.size === 1, "a session");
      const second = connect(run, astralane);
      expect(await second.ended()).toMatch(/^app 2 connection_limit: 1 connections of this key/);
      expect(first.end).toBeNull();
    });
  });

  describeQuic("whose identity is not a key", () => {
    it("is refused: without a certificate, with another one, with another protocol", async () => {
      const run = await IngressRun.open();
      const none = connect(run, { credentials: null });
      expect(await none.ended()).toMatch(/^transport 372/); // 0x100 + 116: certificate_required
      const other = connect(run, { credentials: newCredentials() });
      expect(await other.ended()).toMatch(/^app 1 unauthorized/);
      const protocol = connect(run, { protocol: "h3" });
      expect(await protocol.ended()).toMatch(/^transport 376/); // no_application_protocol
    });
  });

  describeQuic("and the dialect lunar-lander-tpu", () => {
    it("gets response frames, and asks for protection by its certificate", async () => {
      const run = await IngressRun.open();
      const credentials = newEcdsaCredentials("good", { isProtected: true });
      const client = connect(run, { protocol: "lunar-lander-tpu", credentials });
      const { status, body } = readResponse(await client.request(tipping()));
      const [request] = run.gateway.submitted;
      expect({ status, body }).toEqual({
        status: 200,
        body: request?.transactions[0]?.signature,
      });
      expect(request?.options).toMatchObject({ mevProtect: true, swqosOnly: false });
      const bundle = readResponse(await client.request(framed(tipping(), tippingV0())));
      const refusal = expect.stringMatching(/^value_invalid: .* got frames of a bundle/);
      expect(bundle).toMatchObject({ status: 400, body: refusal });
    });
  });

  describeQuic("over IPv6", () => {
    it("submits", async () => {
      const listener = { address: "[::1]:0", isProtected: false, isSwqosOnly: false };
      const run = await IngressRun.open({ listeners: [listener] });
      const client = connect(run);
      expect(readResponse(await client.request(tipping())).status).toBe(200);
    });
  });

  describeQuic("on a link that loses a fifth of all packets", () => {
    it("submits everything once", async () => {
      const run = await IngressRun.open({
        settings: { ...IngressRun.settings, streamTimeoutMs: 30_000 },
      });
      const { port } = parseEndpoint(run.address());
      const link = closing(await LossyLink.open(port, { loss: 0.2, delayMs: 5 }));
      const { host, port: front } = link.address;
      const client = connect(run, { address: `${host}:${front}` });
      const count = 60;
      for (let i = 0; i < count; i++) client.send(tipping({ amount: BigInt(i + 1) }));
      await until(() => run.gateway.submitted.length === count, `${count} transactions`);
      const signatures = run.gateway.submitted.map((one) => one.transactions[0]?.signature);
      expect(new Set(signatures).size).toBe(count);
    });
  });

  describeQuic("that is killed in the middle of a flood", () => {
    it("frees its place after the idle time, and all others are served", async () => {
      const run = await IngressRun.open({
        connectionsPerKeyMax: 4,
        settings: { ...IngressRun.settings, idleTimeoutMs: 10_000, streamTimeoutMs: 30_000 },
      });
      run.gateway.keys.set("other", IngressRun.key("other"));
      const flooding = Array.from({ length: 4 }, () => connect(run));
      let amount = 1n;
      for (const client of flooding) {
        for (let i = 0; i < 100; i++) client.send(tipping({ amount: amount++ }));
        client.begin(Buffer.from([1]));
      }
      await until(() => run.gateway.submitted.length > 10, "some transactions");
      for (const client of flooding) client.kill();
      const other = connect(run, { credentials: newEcdsaCredentials("other") });
      expect(readResponse(await other.request(tipping({ amount: amount++ }))).status).toBe(200);
      await until(() => run.ingress.snapshot().ends.get("idle_timeout") === 4, "their ends");
      const next = connect(run);
      expect(readResponse(await next.request(tipping({ amount: amount++ }))).status).toBe(200);
      const signatures = run.gateway.submitted.map((one) => one.transactions[0]?.signature);
      expect(new Set(signatures).size).toBe(signatures.length);
      expect(run.ingress.snapshot().process.ends.exited).toBe(0);
    });
  });

  describeQuic("that is idle, or whose server is killed", () => {
    it("is closed after the idle time, and learns of a kill by a stateless reset", async () => {
      const run = await IngressRun.open({
        settings: { ...IngressRun.settings, idleTimeoutMs: 1000 },
      });
      const idle = connect(run);
      await idle.established();
      expect(await idle.ended()).toBe("time");
      await until(() => run.ingress.snapshot().ends.get("idle_timeout") === 1, "the end");
      const client = connect(run);
      await until(() => sessionsOf(run) === 1, "a session");
      process.kill(run.ingress.snapshot().process.pid ?? 0, "SIGKILL");
      await until(() => sessionsOf(run) === 0, "the end of the session");
      await until(() => {
        if (client.end === null) client.send(tipping());
        return client.end !== null;
      }, "the end of the connection");
      expect(["reset", "time"]).toContain(client.end);
    });
  });
});
