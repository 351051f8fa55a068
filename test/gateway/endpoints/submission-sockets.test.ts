// The WebSocket on /relayb, with real sockets on every engine: submissions, responses, limits, end of the key.

import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import { apiKey, GatewayRun } from "../../support/gateway/gateway.ts";
import { refusedHandshake } from "../../support/gateway/refused-handshake.ts";
import { SubmissionClient } from "../../support/gateway/submission-client.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { framed } from "../../support/quic/ingress-clients.ts";
import { tipping, tippingV0 } from "../../support/transactions/tipping.ts";
import { onEveryEngine } from "../http/clients.ts";

const limited = { allowed: false, limit: 3, remaining: 0, retryAfterSeconds: 2 } as const;

function refusal(run: GatewayRun, query: string) {
  return refusedHandshake(run.url(`/relayb?${query}`));
}

function signatureOf(wire: Uint8Array): string {
  return base58.encode(wire.subarray(1, 65));
}

onEveryEngine((engine) =>
  describe("binary messages on /relayb", () => {
    it("are submitted by the rules of every other submission", async () => {
      const run = await GatewayRun.open({}, {}, engine);
      const socket = await SubmissionClient.open(run);
      const wires = [tipping(), tippingV0({ amount: 2n })];
      expect(await socket.ask(wires[0] ?? new Uint8Array())).toEqual({
        version: 1,
        flags: 0,
        status: 200,
        body: signatureOf(wires[0] ?? new Uint8Array()),
      });
      const bundle = await socket.ask(framed(...wires));
      expect(bundle?.body.split(",")).toEqual(wires.map(signatureOf));
      expect(run.submitted).toMatchObject([
        { accountId: "a_1", method: "sendTransaction", ingress: "websocket" },
        { method: "sendBundle", isBundle: true, ingress: "websocket" },
      ]);
      const low = await socket.ask(tipping({ tip: 1n }));
      expect(low).toMatchObject({ status: 400, body: expect.stringMatching(/^tip_too_low: /) });
      const forged = tipping();
      forged[1] = (forged[1] ?? 0) ^ 1;
      expect((await socket.ask(forged))?.body).toMatch(/^signature_invalid: /);
      const cut = framed(...wires).subarray(0, -3);
      expect((await socket.ask(cut))?.body).toMatch(
        /^value_invalid: body at \d+: expected a frame/,
      );
      expect((await socket.ask(new Uint8Array(0)))?.body).toMatch(/^transaction_invalid: /);
    });

    it("have no responses unless they are requested", async () => {
      const run = await GatewayRun.open({}, {}, engine);
      const silent = await SubmissionClient.open(run, "api-key=good");
      silent.send(tipping());
      await until(() => run.submitted.length === 1, "the submission");
      const other = await SubmissionClient.open(run);
      await other.ask(tippingV0({ amount: 2n }));
      expect(silent.frames).toEqual([]);
    });

    it("are refused as text, and JSON stays on /relay", async () => {
      const run = await GatewayRun.open({}, {}, engine);
      const socket = await SubmissionClient.open(run);
      socket.send("{}");
      expect(await socket.closed).toEqual({
        code: 1003,
        reason: "expected binary messages, got a text; JSON is accepted on /relay",
      });
      const json = await SubmissionClient.open(run, "api-key=good", "/relay");
      json.send(tipping());
      expect(await json.closed).toEqual({ code: 1003, reason: "expected text messages" });
    });

    it("close the connection if they are larger than a bundle", async () => {
      const run = await GatewayRun.open({}, {}, engine);
      const socket = await SubmissionClient.open(run);
      socket.send(new Uint8Array(16_393));
      expect((await socket.closed).code).toBe(1009);
      expect(run.submitted).toEqual([]);
    });
  }),
);

describe("responses", () => {
  it("are sent when the submission is durable, in the order of the messages", async () => {
    const run = await GatewayRun.open();
    const settles: (() => void)[] = [];
    run.submit = () => new Promise((resolve) => settles.push(resolve));
    const socket = await SubmissionClient.open(run);
    const wires = [tippingV0({ amount: 1n }), tippingV0({ amount: 2n })];
    for (const wire of wires) socket.send(wire);
    socket.send(tipping({ tip: 1n }));
    await until(() => settles.length === 2, "both submissions");
    settles[1]?.();
    const marker = await SubmissionClient.open(run);
    await marker.ask(tipping({ tip: 2n })); // the others had as much time
    expect(socket.frames).toEqual([]);
    settles[0]?.();
    await until(() => socket.frames.length === 3, "all responses");
    const [first, second, third] = socket.frames;
    expect([first?.body, second?.body]).toEqual(run.submitted.map(bodyOf));
    expect(third?.body).toMatch(/^tip_too_low: /);
  });

  it("reject submissions beyond 64 that are under way", async () => {
    const run = await GatewayRun.open();
    let settle: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      settle = resolve;
    });
    run.submit = () => held;
    const socket = await SubmissionClient.open(run);
    for (let i = 1; i <= 65; i++) socket.send(tippingV0({ amount: BigInt(i) }));
    const rejections = () =>
      [...run.gateway.counts.calls()].filter(([, why]) => why === "overloaded");
    await until(() => rejections().length === 1, "the rejection");
    expect(run.submitted.length).toBe(64);
    settle();
    await until(() => socket.frames.length === 65, "all responses");
    expect(socket.frames.filter(({ status }) => status === 200).length).toBe(64);
    expect(socket.frames[64]).toMatchObject({
      status: 503,
      body: expect.stringMatching(/^overloaded: more than 64 submissions of this WebSocket/),
    });
  });
});

function bodyOf({ transactions }: GatewayRun["submitted"][number]): string | undefined {
  return transactions[0]?.signature;
}

describe("a handshake on /relayb", () => {
  it("takes the options of the URL for every message, and refuses impossible ones", async () => {
    const run = await GatewayRun.open();
    const socket = await SubmissionClient.open(
      run,
      "api-key=good&responses=true&mev-protect=true&max-retries=0",
    );
    await socket.ask(tipping());
    expect(run.submitted).toMatchObject([{ options: { mevProtect: true, resendsMax: 0 } }]);
    const invalid: [string, RegExp][] = [
      [
        "mev-protect=yes",
        /URI parameter mev-protect: invalid value \\"yes\\"; expected true or false/,
      ],
      ["mevprotect=true", /unknown URI parameter/],
      ["max-retries=x", /URI parameter max-retries/],
      ["responses=1", /URI parameter responses/],
      ["method=sendBatch", /URI parameter method: expected none on a WebSocket/],
    ];
    for (const [query, message] of invalid) {
      const { status, body } = await refusal(run, `api-key=good&${query}`);
      expect(status).toBe(400);
      expect(body).toMatch(message);
    }
  });

  it("requires a key with the scope submit, and has a limit for each key", async () => {
    const run = await GatewayRun.open();
    for (const query of ["", "api-key=bad"]) {
      expect(await refusal(run, query)).toMatchObject({
        status: 401,
        headers: { "www-authenticate": "Bearer" },
      });
    }
    expect((await refusal(run, "api-key=reader")).body).toContain("scope_missing");
    for (let i = 0; i < 10; i++) await SubmissionClient.open(run);
    const { body } = await refusal(run, "api-key=good");
    expect(body).toContain("too many WebSockets on /relayb with this key; at most 10 are allowed");
  });
});

describe("the key of a connection", () => {
  it("closes an idle connection within a second after its end", async () => {
    const run = await GatewayRun.open();
    const socket = await SubmissionClient.open(run);
    await socket.ask(tipping());
    run.keys.delete("good");
    await run.clock.advance(1000);
    const { code, reason } = await socket.closed;
    expect({ code, reason }).toEqual({
      code: 1008,
      reason: "the API key is no longer valid, or lacks the scope submit",
    });
  });

  it("is checked before each message", async () => {
    const run = await GatewayRun.open();
    const socket = await SubmissionClient.open(run);
    run.keys.set("good", apiKey("good", { scopes: ["read"] }));
    socket.send(tipping());
    expect((await socket.closed).code).toBe(1008);
    expect(run.submitted).toEqual([]);
  });

  it("reports submissions beyond its rate on /status", async () => {
    const run = await GatewayRun.open();
    const feed = await SubmissionClient.open(run, "api-key=good", "/status");
    const socket = await SubmissionClient.open(run);
    run.verdict = () => ({ ...limited, resetSeconds: 3 });
    expect(await socket.ask(tipping())).toMatchObject({ status: 429 });
    await until(() => feed.texts.length === 1, "the report");
    expect(JSON.parse(feed.texts[0] ?? "")).toMatchObject({
      rateLimited: {
        ingress: "websocket",
        protocol: "websocket",
        address: "127.0.0.1",
        submissions: 1,
      },
    });
  });
});
