// A stream whose peer is silently dead, or sends faster than the reader reads.

import { once } from "node:events";
import { expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { ShredwayClient } from "../../src/client/index.ts";
import { follow } from "../../src/client/socket.ts";
import { closing } from "../support/closing.ts";

async function serverOf(): Promise<{ server: WebSocketServer; url: string }> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  closing({
    close: () => {
      for (const socket of server.clients) socket.terminate();
      server.close();
    },
  });
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return { server, url: `ws://127.0.0.1:${port}/` };
}

const common = { WebSocket, signal: undefined, diagnose: () => Promise.resolve() };

it("reconnects if nothing answers", async () => {
  const { server, url } = await serverOf();
  const received: string[] = [];
  server.on("connection", (socket) =>
    socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") received.push(data);
    }),
  );
  const feed = follow({ ...common, url, hello: "are you there", silenceMs: 60 });
  expect((await feed.next()).value).toBe(null);
  expect((await feed.next()).value).toBe(null);
  await feed.return(undefined);
  expect(received.length).toBeGreaterThanOrEqual(3);
  expect(new Set(received)).toEqual(new Set(["are you there"]));
});

it("ends while its reader waits for a message", async () => {
  const { server, url } = await serverOf();
  const client = new ShredwayClient({ url: url.replace("ws", "http"), WebSocket });
  const over = { done: true, value: undefined };
  for (const feed of [client.watchStatuses(), client.tipStream()]) {
    const opened = new Promise<WebSocket>((resolve) => server.once("connection", resolve));
    const next = feed.next();
    const closed = once(await opened, "close");
    expect(await feed.return(undefined)).toEqual(over);
    expect(await next).toEqual(over);
    expect(await feed.next()).toEqual(over);
    await closed;
  }
});

it("delivers the messages before a disconnection, in order", async () => {
  const { server, url } = await serverOf();
  server.on("connection", (socket) => {
    for (const text of ["a", "b", "c"]) socket.send(text);
    socket.close();
  });
  const feed = follow({ ...common, url, silenceMs: 60_000 });
  const got: unknown[] = [];
  while (got.length < 8) got.push((await feed.next()).value);
  await feed.return(undefined);
  expect(got).toEqual([null, "a", "b", "c", null, "a", "b", "c"]);
});
