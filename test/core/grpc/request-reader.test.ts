// Requests on open streams at a bounded rate, over real sockets.

import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { GrpcServer } from "../../../src/core/grpc/grpc-server.ts";
import type { GrpcStream } from "../../../src/core/grpc/grpc-stream.ts";
import { frameMessage, GrpcError } from "../../../src/core/grpc/status.ts";
import { RateBudget } from "../../../src/core/rate-budget.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";

const path = "/test.Service/Stream";
const tenPerSecond = { perSecond: 10, burst: 20 } as const;

/** Streams of one budget on a stopped clock. `handled`: texts of the requests. */
async function openServer(
  onRequest: (call: GrpcStream, text: string) => void = () => {},
  onEnd: (call: GrpcStream) => void = () => {},
) {
  const clock = new ManualClock();
  const budget = new RateBudget(tenPerSecond, clock);
  const handled: string[] = [];
  const counts = { waits: 0, ends: 0 };
  const server = closing(
    await GrpcServer.open({
      listen: parseEndpoint("127.0.0.1:0", { allowPortZero: true }),
      methods: { "/test.Service/Echo": ({ message }) => message },
      streams: {
        [path]: (call) =>
          call.accept(
            (message) => {
              const text = Buffer.from(message).toString();
              handled.push(text);
              onRequest(call, text);
            },
            () => {
              counts.ends++;
              onEnd(call);
            },
            {
              pace: {
                budgets: [{ budget, costOf: () => 1 }],
                onWait: () => void counts.waits++,
              },
            },
          ),
      },
      clock,
      report: () => {},
    }),
  );
  const session = connect(`http://${server.address}`, { settings: { initialWindowSize: 65_535 } });
  closing({ close: () => session.destroy() });
  session.on("error", () => {});
  return { clock, handled, counts, session };
}

function openCall(session: ClientHttp2Session) {
  const call = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
  });
  call.on("error", () => {});
  return call;
}

/** Another call of the connection: the server has read everything before it. */
async function roundTrip(session: ClientHttp2Session): Promise<void> {
  const call = session.request({
    ":method": "POST",
    ":path": "/test.Service/Echo",
    "content-type": "application/grpc",
  });
  call.end(frameMessage(Buffer.from("echo")));
  let isOver = false;
  call.on("close", () => (isOver = true)).resume();
  await until(() => isOver, "the other call");
}

const requests = (name: string, count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, i) => frameMessage(Buffer.from(`${name}${i}`))));

describe("a client that sends no more", () => {
  it.each([
    ["between two requests", requests("a", 2), "0", ""],
    [
      "inside a request",
      requests("a", 2).subarray(0, -1),
      "13",
      "expected whole messages, got 6 bytes of the last one",
    ],
    [
      "inside the head of one",
      requests("a", 1).subarray(0, 3),
      "13",
      "expected whole messages, got 3 bytes of the last one",
    ],
  ])("%s gets a status", async (_, sent, status, detail) => {
    const { session } = await openServer(undefined, (call) => call.end("OK"));
    const call = openCall(session);
    let trailers: IncomingHttpHeaders = {};
    call.on("trailers", (received: IncomingHttpHeaders) => (trailers = received)).resume();
    call.end(sent);
    await until(() => trailers["grpc-status"] !== undefined, "the status");
    const text = decodeURIComponent(String(trailers["grpc-message"] ?? ""));
    expect({ status: trailers["grpc-status"], text }).toEqual({ status, text: detail });
  });
});

describe("requests that come faster than their rate", () => {
  it("wait, keep their order, and delay no other call of the connection", async () => {
    const { clock, handled, counts, session } = await openServer();
    const call = openCall(session);
    call.end(requests("a", 45));
    call.resume();
    await until(() => handled.length === 20, "the burst");
    await roundTrip(session);
    expect(handled).toHaveLength(20);
    expect(counts).toEqual({ waits: 1, ends: 0 });
    await clock.advance(1100);
    await until(() => handled.length > 20, "more");
    await roundTrip(session);
    expect(handled.length).toBeLessThan(35);
    await clock.advance(5000);
    await until(() => counts.ends === 1, "the end of the requests");
    expect(handled).toEqual(Array.from({ length: 45 }, (_, i) => `a${i}`));
  });

  it("take turns with those of other streams", async () => {
    const { clock, handled, session } = await openServer();
    const calls = [openCall(session), openCall(session)];
    calls[0]?.write(requests("a", 60));
    await until(() => handled.length === 20, "the burst");
    calls[1]?.write(requests("b", 10));
    await roundTrip(session);
    await clock.advance(2100);
    const second = handled.slice(20).filter((text) => text.startsWith("b"));
    expect(second.length).toBeGreaterThanOrEqual(9);
    expect(handled.length).toBeLessThanOrEqual(42);
  });

  it("are not read any further: HTTP/2 stops their client", async () => {
    const { handled, session } = await openServer();
    const call = openCall(session);
    const large = frameMessage(Buffer.alloc(16 * 1024));
    for (let i = 0; i < 200; i++) call.write(large);
    await until(() => handled.length === 20, "the burst");
    await roundTrip(session);
    expect(handled).toHaveLength(20);
    expect(call.writableLength).toBeGreaterThan(150 * large.length);
  });

  it("leave nothing behind when their stream ends", async () => {
    const { clock, handled, counts, session } = await openServer((call, text) => {
      if (text === "b0") throw new GrpcError("INVALID_ARGUMENT", "refused");
      if (text === "c0") call.end("OK");
    });
    const before = clock.pending;
    const first = openCall(session);
    first.write(requests("a", 30));
    await until(() => counts.waits === 1, "the limit");
    first.close();
    await roundTrip(session);
    await clock.advance(10_000);
    expect(handled).toHaveLength(20);
    for (const name of ["b", "c"]) {
      const call = openCall(session);
      let isOver = false;
      call.on("close", () => (isOver = true)).resume();
      call.end(requests(name, 30));
      await until(() => isOver, "the end");
    }
    expect(handled.slice(20)).toEqual(["b0", "c0"]);
    await until(() => clock.pending <= before + 1, "the timers");
  });
});
