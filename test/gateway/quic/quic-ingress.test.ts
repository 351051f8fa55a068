// Submissions over QUIC by the rules of the gateway: keys, limits, options, responses, close codes.

import { base58 } from "@scure/base";
import { expect, it } from "vitest";
import {
  buildTransaction,
  transferInstruction,
} from "../../../src/core/transactions/build-legacy.ts";
import type { ApiKey } from "../../../src/gateway/accounts/types.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { apiKey, GatewayRun, tipAddress } from "../../support/gateway/gateway.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { ask, begin, connect, framed, sessionsOf } from "../../support/quic/ingress-clients.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { tipping, tippingV0 } from "../../support/transactions/tipping.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

const plain = { isProtected: false, isSwqosOnly: false } as const;

function rejectedKey(run: IngressRun, text: string, fields: Partial<ApiKey>): void {
  run.gateway.keys.set(text, apiKey(text, fields));
}

/** The store does not settle before the returned function is called. */
function holdSubmissions({ gateway }: IngressRun): () => void {
  let settle: () => void = () => undefined;
  gateway.submit = () =>
    new Promise((resolve) => {
      settle = resolve;
    });
  return () => settle();
}

describeQuic("a client with a key", () => {
  it("submits on unidirectional streams, and gets signatures on bidirectional ones", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const response = await ask(client, tipping());
    const [request] = run.gateway.submitted;
    const signature = request?.transactions[0]?.signature;
    expect(response).toEqual({ version: 1, flags: 0, status: 200, body: signature });
    expect(request).toMatchObject({
      accountId: "a_1",
      method: "sendTransaction",
      isBundle: false,
      ingress: "quic",
      options: { mevProtect: false, swqosOnly: false, revertProtection: false, resendsMax: null },
    });
    client.send(tippingV0({ amount: 2n }));
    await until(() => run.gateway.submitted.length === 2, "the second transaction");
    expect(run.ingress.snapshot().submissions.get("accepted")).toBe(2);
  });

  it("is answered only when the submission is durable", async () => {
    const run = await IngressRun.open();
    const persist = holdSubmissions(run);
    const client = await connect(run);
    let isAnswered = false;
    const response = ask(client, tipping()).finally(() => {
      isAnswered = true;
    });
    await until(() => run.gateway.submitted.length === 1, "the submission");
    expect(isAnswered).toBe(false);
    persist();
    expect((await response).status).toBe(200);
  });

  it("submits a transaction of version 1 with the maximum size", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const payer = SandboxKeyPair.named(1, "payer");
    const tip = base58.decode(tipAddress);
    const wire = v1Transfer(payer, tip, 10_000n, { blockhash: new Uint8Array(32).fill(7) });
    expect((await ask(client, wire)).status).toBe(200);
    const longest = Buffer.concat([Buffer.from([0x81]), Buffer.alloc(4095, 1)]);
    expect((await ask(client, longest)).body).toMatch(/^transaction_invalid: /);
    expect(run.ingress.snapshot().counts?.drops.too_long ?? 0).toBe(0);
  });

  it("submits frames as a bundle, and gets all signatures", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const { status, body } = await ask(client, framed(tipping(), tippingV0({ amount: 2n })));
    const [request] = run.gateway.submitted;
    expect(request).toMatchObject({ method: "sendBundle", isBundle: true });
    const signatures = request?.transactions.map(({ signature }) => signature);
    expect({ status, signatures: body.split(",") }).toEqual({ status: 200, signatures });
    for (const count of [5, 6, 20]) {
      const wires = Array.from({ length: count }, (_, i) => tipping({ amount: BigInt(i + 1) }));
      expect((await ask(client, framed(...wires))).body).toBe(
        `value_invalid: body: expected 1 to 4 transactions, got ${count}`,
      );
    }
  });

  it("learns where the frames of a bundle are wrong, and which dialect takes bundles", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const wires = [tipping(), tippingV0({ amount: 2n })] as const;
    const bundle = framed(...wires);
    const second = wires[0].length + 2;
    const wrong: [Uint8Array, string][] = [
      [
        bundle.subarray(0, -3),
        `body at ${second + 2}: expected a frame of ${wires[1].length} bytes`,
      ],
      [Buffer.concat([bundle, Buffer.alloc(1)]), `body at ${bundle.length}: expected a length`],
      [
        Buffer.concat([bundle, Buffer.alloc(2)]),
        "body: expected frames with a transaction, got an",
      ],
    ];
    for (const [body, message] of wrong) {
      const response = await ask(client, body);
      expect({ status: response.status, body: response.body }).toEqual({
        status: 400,
        body: expect.stringContaining(`value_invalid: ${message}`),
      });
    }
    const other = await connect(run, { protocol: "lunar-lander-tpu" });
    for (const body of [bundle, bundle.subarray(0, -3)]) {
      expect((await ask(other, body)).body).toBe(
        "value_invalid: body: expected one transaction, got frames of a bundle; " +
          'only the dialect "shredway-tpu" takes bundles',
      );
    }
    expect((await ask(client, Buffer.from("garbage"))).body).toMatch(/^transaction_\w+: /);
    expect(run.gateway.submitted).toEqual([]);
  });

  it("never treats a transaction as frames", async () => {
    const payer = SandboxKeyPair.named(1, "payer");
    const to = SandboxKeyPair.named(1, "receiver").publicKey;
    const tip = transferInstruction(payer.publicKey, base58.decode(tipAddress), 10_000n);
    const wireOf = (lamports: bigint): Buffer => {
      const transfer = transferInstruction(payer.publicKey, to, lamports);
      return Buffer.from(buildTransaction([payer], [transfer, tip], new Uint8Array(32).fill(7)));
    };
    // The first two bytes of this one are the length of the rest.
    let lamports = 1n;
    while (wireOf(lamports).readUInt16BE(0) !== wireOf(lamports).length - 2) lamports++;
    const run = await IngressRun.open();
    const client = await connect(run);
    expect((await ask(client, wireOf(lamports))).status).toBe(200);
    expect(run.gateway.submitted).toMatchObject([{ method: "sendTransaction" }]);
  });

  it("gets the reason and the status of each rejection", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const low = await ask(client, tipping({ tip: 1n }));
    expect(low.status).toBe(400);
    expect(low.body).toMatch(/^tip_too_low: body: tip 1 lamports, minimum 10000 lamports/);
    const forged = tipping();
    forged[1] = (forged[1] ?? 0) ^ 1;
    expect((await ask(client, forged)).body).toMatch(/^signature_invalid: /);
    run.gateway.verifierIsFull = true;
    expect(await ask(client, tipping())).toMatchObject({
      status: 503,
      body: expect.stringMatching(/^overloaded: /),
    });
    run.gateway.verifierIsFull = false;
    const limited = { allowed: false, limit: 3, remaining: 0, retryAfterSeconds: 2 } as const;
    run.gateway.verdict = () => ({ ...limited, resetSeconds: 3 });
    expect(await ask(client, tipping())).toMatchObject({
      status: 429,
      body: "rate_limited: rate limit exceeded: 3 calls per burst with this key; retry in 2 s",
    });
    expect(Object.fromEntries(run.ingress.snapshot().submissions)).toEqual({
      tip_too_low: 1,
      signature_invalid: 1,
      overloaded: 1,
      rate_limited: 1,
    });
    expect(run.gateway.submitted).toEqual([]);
  });

  it("uses the key with every submission, not only when it connects", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const lastUseNs = () => run.gateway.gateway.callers.lastUseNs(IngressRun.key("good").id);
    const connectedNs = lastUseNs();
    await run.gateway.clock.advance(60_000);
    client.send(tipping());
    await until(() => run.gateway.submitted.length === 1, "a submission");
    expect(lastUseNs()).toBe((connectedNs ?? 0n) + 60_000_000_000n);
  });

  it("may leave responses unread", async () => {
    const run = await IngressRun.open();
    const client = await connect(run, { responseBytesMax: 0 });
    void client.request(tipping());
    await until(() => run.gateway.submitted.length === 1, "the first transaction");
    client.send(tipping({ amount: 2n }));
    await until(() => run.gateway.submitted.length === 2, "the second transaction");
  });
});

describeQuic("options", () => {
  it("come from the listener and from the certificate", async () => {
    const run = await IngressRun.open({
      listeners: [
        { address: "127.0.0.1:0", ...plain },
        { address: "127.0.0.1:0", ...plain, isProtected: true },
        { address: "[::1]:0", ...plain, isSwqosOnly: true },
      ],
    });
    const optionsOf = async (choices: Parameters<typeof connect>[1]) => {
      const before = run.gateway.submitted.length;
      const client = await connect(run, choices);
      client.send(tipping());
      await until(() => run.gateway.submitted.length > before, "a submission");
      const { mevProtect, swqosOnly } = run.gateway.submitted.at(-1)?.options ?? {};
      return { mevProtect, swqosOnly };
    };
    expect(await optionsOf({})).toEqual({ mevProtect: false, swqosOnly: false });
    expect(await optionsOf({ listener: 1 })).toEqual({ mevProtect: true, swqosOnly: false });
    expect(await optionsOf({ isProtected: true })).toEqual({ mevProtect: true, swqosOnly: false });
    expect(run.address(2)).toMatch(/^\[::1\]:\d+$/);
  });
});

describeQuic("a key", () => {
  it("is refused with code 1 if it is unknown, expired or not allowed from the address", async () => {
    const run = await IngressRun.open();
    rejectedKey(run, "elsewhere", { allowedRanges: ["none"] });
    for (const key of ["nobody", "elsewhere"]) {
      const client = await begin(run, { key });
      expect(await client.ended).toMatchObject({
        by: "peer",
        isApp: true,
        code: 1,
        reason: expect.stringMatching(/^unauthorized: invalid API key: unknown, expired/),
      });
    }
  });

  it("is refused with code 3 without the scope submit", async () => {
    const run = await IngressRun.open();
    const client = await begin(run, { key: "reader", protocol: "astralane-tpu" });
    const { code, reason } = await client.ended;
    expect({ code, reason }).toEqual({
      code: 3,
      reason: "forbidden: the API key has the scopes read; expected submit",
    });
  });

  it("ends its open connections with code 1 when it is revoked, during traffic", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const idle = await connect(run);
    client.send(tipping());
    await until(() => run.gateway.submitted.length === 1, "a submission");
    run.gateway.keys.delete("good");
    client.send(tipping({ amount: 2n }));
    for (const one of [client, idle]) {
      expect(await one.ended).toMatchObject({
        code: 1,
        reason: "unauthorized: the API key was revoked or has expired",
      });
    }
    expect(run.gateway.submitted.length).toBe(1);
    expect(sessionsOf(run)).toBe(0);
  });

  it("ends its connections in the middle of a flood, and nothing that arrives later is accepted", async () => {
    const gateway = await GatewayRun.open();
    const run = await IngressRun.open({ clock: gateway.clock }, gateway);
    const idle = await connect(run);
    const flooding = await Promise.all([connect(run), connect(run), connect(run)]);
    let amount = 1n;
    let acceptedBefore = -1;
    gateway.submit = async () => {
      if (gateway.submitted.length < 100 || acceptedBefore >= 0) return;
      gateway.keys.delete("good");
      acceptedBefore = gateway.submitted.length;
    };
    for (const client of flooding) {
      for (let i = 0; i < 150; i++) client.send(tipping({ amount: amount++ }));
    }
    for (const client of flooding) {
      expect(await client.ended).toMatchObject({
        code: 1,
        reason: "unauthorized: the API key was revoked or has expired",
      });
    }
    expect(acceptedBefore).toBeGreaterThanOrEqual(100);
    // Submissions that were at the checks of signatures before the revocation go on.
    const underWay = 3 * IngressRun.settings.streamsMax;
    expect(gateway.submitted.length).toBeLessThanOrEqual(acceptedBefore + underWay);
    expect(sessionsOf(run)).toBe(1);
    expect(idle.quic.peerError()).toBe(null);
    await gateway.clock.advance(1000);
    expect(await idle.ended).toMatchObject({ code: 1 });
  });

  it("has a limit of connections, and an ended one makes room for the next", async () => {
    const run = await IngressRun.open({ connectionsPerKeyMax: 2 });
    const first = await connect(run);
    await connect(run);
    const third = await begin(run);
    expect(await third.ended).toMatchObject({
      code: 2,
      reason: "connection_limit: 2 connections of this key are open, at most 2",
    });
    await connect(run, { key: "submitter" });
    await first.close();
    await until(() => sessionsOf(run) === 2, "the end of the first one");
    await connect(run);
  });

  it("has room at once for a new connection after its clients have closed all others", async () => {
    const run = await IngressRun.open();
    const clients = [];
    for (let i = 0; i < 10; i++) clients.push(await connect(run));
    expect((await (await begin(run)).ended).code).toBe(2);
    for (const client of clients) await client.close();
    const next = await begin(run);
    expect((await ask(next, tipping())).status).toBe(200);
    expect(sessionsOf(run)).toBe(1);
    expect(run.ingress.snapshot().ends.get("closed")).toBe(10);
  });

  it("is guessed together with keys over HTTP", async () => {
    const gateway = await GatewayRun.open();
    const run = await IngressRun.open({}, gateway);
    const known = await connect(run);
    for (let i = 0; i < 15; i++) {
      const response = await fetch(gateway.url(`/relay?api-key=wrong${i}`), { method: "POST" });
      expect(response.status).toBe(401);
    }
    for (let i = 0; i < 15; i++) {
      const { reason } = await (await begin(run, { key: `guess${i}` })).ended;
      expect(reason).toMatch(/^unauthorized: invalid API key/);
    }
    const blocked = await begin(run, { key: "submitter" });
    expect((await blocked.ended).reason).toMatch(
      /^unauthorized: too many invalid API keys from this address; retry in \d+ s/,
    );
    const response = await fetch(gateway.url("/relay?api-key=submitter"), { method: "POST" });
    expect(response.status).toBe(429);
    // A key that was used from this address before still works.
    expect((await ask(known, tipping())).status).toBe(200);
    await connect(run);
  });
});

describeQuic("the ends of connections", () => {
  it("have one name for all codes without a name, because clients choose them", async () => {
    const run = await IngressRun.open();
    for (const code of [77, 78]) {
      const client = await connect(run);
      client.quic.close(true, code, new Uint8Array(0));
      client.work();
      await until(() => sessionsOf(run) === 0, "its end");
    }
    expect([...run.ingress.snapshot().ends]).toEqual([["other", 2]]);
  });
});

describeQuic("the end of the service", () => {
  it("refuses new submissions, answers the others and closes with code 0", async () => {
    const run = await IngressRun.open();
    const persist = holdSubmissions(run);
    const client = await connect(run);
    const first = ask(client, tipping());
    await until(() => run.gateway.submitted.length === 1, "a submission");
    const drained = run.ingress.drain();
    expect(await ask(client, tipping({ amount: 2n }))).toMatchObject({
      status: 503,
      body: "http_closing: server is shutting down",
    });
    persist();
    await drained;
    const closed = run.ingress.close();
    expect((await first).status).toBe(200);
    expect(await client.ended).toMatchObject({ by: "peer", code: 0, reason: "shutdown" });
    await closed;
  });
});
