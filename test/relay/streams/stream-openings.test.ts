// Clients that open and cancel streams without end, over real sockets.

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { expect, it } from "vitest";
import { streamPaths } from "../../../src/tools/stream/stream-messages.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { type RunningStreams, runningStreams } from "../../support/streams/stream-clients.ts";

function openSession({ service }: RunningStreams): ClientHttp2Session {
  const session = connect(`http://${service.address}`);
  session.on("error", () => undefined);
  return closing(Object.assign(session, { close: () => session.destroy() }));
}

/** `end`: status and message of the response's headers; empty: the stream is open. */
interface Opened {
  readonly stream: ClientHttp2Stream;
  readonly end: string;
}

function open(session: ClientHttp2Session, token: string): Promise<Opened> {
  const stream = session.request({
    ":method": "POST",
    ":path": streamPaths.deshred,
    "content-type": "application/grpc",
    te: "trailers",
    "x-token": token,
  });
  stream.resume();
  return new Promise((resolve, reject) => {
    stream.on("error", reject);
    stream.once("response", (headers) => {
      const { "grpc-status": status, "grpc-message": message } = headers;
      resolve({ stream, end: status === undefined ? "" : `${String(status)} ${String(message)}` });
    });
  });
}

/** Cancels the stream when it is open. */
async function openAndCancel(session: ClientHttp2Session, token: string): Promise<string> {
  const { stream, end } = await open(session, token);
  const isClosed = new Promise((resolve) => stream.once("close", resolve));
  if (end === "") stream.close(constants.NGHTTP2_CANCEL);
  await isClosed;
  return end;
}

it("new streams of an account have a rate: 10 a second, burst 250", async () => {
  const running = await runningStreams("subscriptionsPerAccountMax: 100");
  const { service, clock, keys, tiers } = running;
  keys.set("bob", { id: "bob", accountId: "b", accountName: "bob", scopes: ["stream"] });
  tiers.set("b", "tier-1");
  const session = openSession(running);
  const rate = "expected at most 10 new streams a second of the account (burst: 250)";
  const refusal = `8 rate limit exceeded: ${rate}; keep streams open, and retry in 1 s`;
  const ends: string[] = [];
  for (let round = 0; round < 100 && !ends.includes(refusal); round++) {
    await until(() => (service.status().accounts[0]?.open ?? 0) === 0, "the ends of streams");
    const openings = Array.from({ length: 90 }, () => openAndCancel(session, "alice"));
    ends.push(...(await Promise.all(openings)));
  }
  const refused = ends.filter((end) => end !== "");
  expect(new Set(refused)).toEqual(new Set([refusal]));
  expect(ends.length - refused.length).toBeGreaterThanOrEqual(250);
  expect(service.status().refusedOpenings).toEqual({ account: refused.length, address: 0 });
  expect(await openAndCancel(session, "bob")).toBe("");
  clock.move(1000);
  expect(await openAndCancel(session, "alice")).toBe("");
}, 60_000);

it("all streams that an account can have are opened at once, twice", async () => {
  const running = await runningStreams("subscriptionsPerAccountMax: 300");
  const openCount = () => running.service.status().accounts[0]?.open;
  for (let round = 0; round < 2; round++) {
    const sessions = Array.from({ length: 3 }, () => openSession(running));
    const streams = Array.from({ length: 300 }, (_, i) => {
      const session = sessions[i % 3];
      if (!session) throw new Error("expected a session");
      return open(session, "alice");
    });
    expect((await Promise.all(streams)).filter(({ end }) => end !== "")).toEqual([]);
    for (const session of sessions) session.destroy();
    await until(() => openCount() === 0, "the ends");
  }
  expect(running.service.status().refusedOpenings).toEqual({ account: 0, address: 0 });
}, 60_000);
