// Submissions beyond a key's rate over QUIC: messages on /status, and counts of the connection.

import { expect, it } from "vitest";
import { WebSocket } from "ws";
import { ShredwayClient, type StatusUpdate } from "../../../src/client/index.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { connect } from "../../support/quic/ingress-clients.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { tipping } from "../../support/transactions/tipping.ts";

const limited = { allowed: false, limit: 3, remaining: 0, retryAfterSeconds: 2 } as const;
const message = "rate_limited: rate limit exceeded: 3 calls per burst with this key; retry in 2 s";

describeQuic("submissions beyond the rate of a key", () => {
  it("are pushed on /status with their number, also to a client with a filter", async () => {
    const run = await IngressRun.open();
    const feed = new WebSocket(run.gateway.url("/status?api-key=good").replace("http", "ws"));
    const pushed: { rateLimited?: { submissions: number } }[] = [];
    feed.on("message", (data: Buffer) => pushed.push(JSON.parse(data.toString())));
    await new Promise((resolve) => feed.once("open", resolve));
    feed.send(JSON.stringify({ signatures: ["1".repeat(64)] }));
    await until(() => pushed.length === 1, "the filter");
    const client = await connect(run);
    run.gateway.verdict = () => ({ ...limited, resetSeconds: 3 });
    // Unidirectional streams have no responses.
    for (let i = 1; i <= 3; i++) client.send(tipping({ amount: BigInt(i) }));
    const reported = () =>
      pushed.reduce((sum, { rateLimited }) => sum + (rateLimited?.submissions ?? 0), 0);
    await until(() => reported() === 3, "the reports of three submissions");
    expect(pushed[1]).toEqual({
      rateLimited: {
        at: expect.stringMatching(/^2\d{3}-.*Z$/),
        ingress: "quic",
        protocol: "shredway-tpu",
        address: "127.0.0.1",
        apiKey: "k_good",
        submissions: expect.any(Number),
        message,
      },
    });
    expect(run.ingress.connections).toMatchObject([
      { keyId: "k_good", accepted: 0, rejected: 0, rateLimited: 3 },
    ]);
    feed.terminate();
  });

  it("are reported by the typed client beside the events", async () => {
    const run = await IngressRun.open();
    const typed = new ShredwayClient({ url: run.gateway.url(), WebSocket });
    const messages: string[] = [];
    const events: StatusUpdate[] = [];
    const abort = new AbortController();
    const watching = (async () => {
      const onRateLimited = (limit: { message: string }) => messages.push(limit.message);
      for await (const update of typed.watchStatuses({ signal: abort.signal, onRateLimited })) {
        events.push(update);
      }
    })().catch((error: unknown) => error);
    await until(() => run.gateway.listeners.get("a_1")?.size === 1, "the stream of statuses");
    const client = await connect(run);
    run.gateway.verdict = () => ({ ...limited, resetSeconds: 3 });
    client.send(tipping());
    await until(() => messages.length === 1, "the message");
    expect(messages).toEqual([message]);
    run.gateway.notify("a_1", "1".repeat(64), { kind: "seen", atNs: 0n, slot: 5n });
    await until(() => events.length === 1, "an event after the message");
    abort.abort(new Error("the test is over"));
    expect(await watching).toMatchObject({ message: "the test is over" });
  });
});
