// Requests of clients that send too many, or that never read, over real sockets.

import { type ClientHttp2Session, connect } from "node:http2";
import { describe, expect, it } from "vitest";
import { FrameReader } from "../../../src/core/grpc/frame-reader.ts";
import { GrpcChannel } from "../../../src/core/grpc/grpc-channel.ts";
import { MessageReader, MessageWriter } from "../../../src/core/grpc/protobuf.ts";
import { frameMessage } from "../../../src/core/grpc/status.ts";
import { streamPaths } from "../../../src/tools/stream/stream-messages.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { type RunningStreams, runningStreams } from "../../support/streams/stream-clients.ts";
import { batchOf, slotOf, transactionOf } from "../../support/streams/stream-relay.ts";

function openSession(address: string, initialWindowSize = 1 << 20): ClientHttp2Session {
  const session = connect(`http://${address}`, { settings: { initialWindowSize } });
  session.on("error", () => undefined);
  return closing(Object.assign(session, { close: () => session.destroy() }));
}

/** A stream of SubscribeDeshred, and the number of pongs that it has received. */
function openCall(session: ClientHttp2Session, token = "alice") {
  const stream = session.request({
    ":method": "POST",
    ":path": streamPaths.deshred,
    "content-type": "application/grpc",
    te: "trailers",
    "x-token": token,
  });
  const received = { pongs: 0 };
  const frames = new FrameReader(1 << 20);
  stream.on("error", () => undefined);
  stream.on("data", (chunk: Buffer) => {
    for (const message of frames.add(chunk)) {
      if (new MessageReader(message).message(4)) received.pongs++;
    }
  });
  return { stream, received };
}

/** A request with a ping, and a field that the server skips. */
function pingRequest(paddingBytes = 0): Buffer {
  const id = new MessageWriter().uint(1, 1).finish();
  const request = new MessageWriter().message(2, id);
  if (paddingBytes > 0) request.bytes(99, new Uint8Array(paddingBytes));
  return frameMessage(request.finish());
}

function sums({ service }: RunningStreams): { sent: number; delayed: number } {
  const { accounts } = service.status();
  return {
    sent: accounts.reduce((sum, { sent }) => sum + sent, 0),
    delayed: accounts.reduce((sum, { delayedRequests }) => sum + delayedRequests, 0),
  };
}

describe("requests on open gRPC streams", () => {
  it("wait beyond 50 a second of a stream, and are counted", async () => {
    const running = await runningStreams();
    const session = openSession(running.service.address);
    const { stream, received } = openCall(session);
    const count = 5000;
    stream.write(Buffer.concat(Array.from({ length: count }, () => pingRequest())));
    await until(() => sums(running).delayed > 0, "the limit");
    expect(sums(running).sent).toBeLessThan(count);
    await until(() => {
      running.clock.move(1000);
      return received.pongs === count;
    }, "all pongs");
    const { account, dialect } = running.service.status().accounts[0] ?? {};
    expect([account, dialect]).toEqual(["alice", "deshred"]);
  });

  it("share 1 MiB a second with all streams of the account", async () => {
    const running = await runningStreams();
    const { service, keys, tiers } = running;
    keys.set("bob", { id: "bob", accountId: "b", accountName: "bob", scopes: ["stream"] });
    tiers.set("b", "tier-1");
    const calls = Array.from({ length: 8 }, () => openCall(openSession(service.address)));
    for (const { stream } of calls) stream.write(pingRequest((4 << 20) - 64));
    await until(() => sums(running).delayed > 0, "the limit");
    const other = openCall(openSession(service.address), "bob");
    other.stream.write(pingRequest((4 << 20) - 64));
    await until(() => other.received.pongs === 1, "the pong of another account");
    expect(calls.some(({ received }) => received.pongs === 0)).toBe(true);
    await until(() => {
      running.clock.move(1000);
      return calls.every(({ received }) => received.pongs === 1);
    }, "all pongs");
  });
});

describe("calls without a stream", () => {
  it("are refused beyond 50 a second of the account, before they reach a node", async () => {
    const { service, clock } = await runningStreams();
    const channel = closing(new GrpcChannel({ url: `http://${service.address}`, clock }));
    const call = () =>
      channel.call({
        path: "/geyser.Geyser/GetVersion",
        request: new Uint8Array(),
        metadata: { "x-token": "alice" },
        timeoutMs: 60_000,
      });
    const refused: unknown[] = [];
    for (let round = 0; round < 100 && refused.length === 0; round++) {
      const results = await Promise.allSettled(Array.from({ length: 100 }, () => call()));
      refused.push(...results.flatMap((one) => (one.status === "rejected" ? [one.reason] : [])));
    }
    expect(refused[0]).toMatchObject({
      status: "RESOURCE_EXHAUSTED",
      detail:
        "rate limit exceeded: expected at most 50 calls a second of the account (burst: 250); retry in 1 s",
    });
    expect(service.status().refusals.get("RESOURCE_EXHAUSTED")).toBe(refused.length);
    clock.move(1000);
    expect((await call()).length).toBeGreaterThan(0);
  });
});

describe("a client that pings and never reads", () => {
  it("has one pong in the queue, and gets the others when it reads", async () => {
    const running = await runningStreams();
    const session = openSession(running.service.address, 0);
    const { stream, received } = openCall(session);
    const count = 200;
    for (let i = 0; i < count; i++) stream.write(pingRequest());
    await until(() => sums(running).sent > 0, "the first pong");
    const other = openCall(session);
    await until(() => running.service.status().accounts[0]?.open === 2, "the other stream");
    expect(sums(running).sent).toBeLessThanOrEqual(2);
    other.stream.close();
    session.settings({ initialWindowSize: 1 << 20 });
    await until(() => received.pongs === count, "all pongs");
  });

  it("gets no pings of the server beside messages that wait", async () => {
    const running = await runningStreams();
    openCall(openSession(running.service.address, 0)).stream.write(pingRequest());
    await until(() => sums(running).sent === 1, "the pong");
    for (let i = 0; i < 10; i++) {
      running.clock.move(10_000);
      running.send(slotOf(BigInt(120 + i), [batchOf([transactionOf()])]));
    }
    await until(() => sums(running).sent === 2, "the first ping");
    running.clock.move(10_000);
    expect(sums(running).sent).toBe(2);
  });
});
