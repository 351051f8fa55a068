// Messages with many objects on several WebSockets of a key, over real sockets.

import { expect, it } from "vitest";
import { subscriptionRoute } from "../../../src/gateway/endpoints/subscriptions.ts";
import { RpcSocket } from "../../clients/rpc-socket.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { apiKey } from "../../support/gateway/gateway.ts";
import { serve, urlOf } from "../http/clients.ts";

async function openService() {
  const clock = new ManualClock();
  const route = subscriptionRoute({
    node: null,
    authorise: ({ query }) => ({ key: apiKey(query.replace("api-key=", "")) }),
    currentKey: (id) => apiKey("any", { id }),
    clock,
    countHandshake: () => undefined,
    report: () => "",
  });
  const server = await serve({ handle: () => ({ status: 404 }), webSockets: { "/": route } });
  const url = urlOf(server).replace("http", "ws");
  const connect = async (key: string) => closing(await RpcSocket.open(`${url}?api-key=${key}`));
  return { clock, connect, server };
}

/** Messages of `params` until the socket is closed; at most 200. */
async function callUntilClosed(socket: RpcSocket, params: readonly unknown[]): Promise<number> {
  let count = 0;
  const closed = socket.closed.then(() => "closed" as const);
  while (count < 200 && (await Promise.race([socket.call("unknown", params), closed])) !== "closed")
    count++;
  return count;
}

it("all WebSockets of a key share a rate, in which objects count more than their bytes", async () => {
  const { clock, connect, server } = await openService();
  const objects = Array.from({ length: 8_000 }, () => ({}));
  const [first, second] = [await connect("one"), await connect("one")];
  const others = await connect("two");
  for (let i = 0; i < 20; i++) expect((await first.call("unknown", objects)).error).toBeDefined();
  // 16 MiB of burst, and each message costs 520 kB: 24 kB, and 64 bytes for each object above 256.
  expect(await callUntilClosed(second, objects)).toBe(13);
  expect(await second.closed).toBe(1008);
  expect([...server.webSocketsOverLimit]).toEqual([["/", 1]]);
  expect((await others.call("unknown", objects)).error?.code).toBe(-32601);
  await expect(connect("one")).rejects.toThrow("429"); // the key is paused
  await clock.advance(10_000);
  expect((await (await connect("one")).call("unknown", objects)).error?.code).toBe(-32601);
});

it("a new WebSocket of the key does not begin with a new burst", async () => {
  const { connect } = await openService();
  const objects = Array.from({ length: 8_000 }, () => ({}));
  const first = await connect("one");
  for (let i = 0; i < 20; i++) await first.call("unknown", objects);
  first.close();
  await first.closed;
  expect(await callUntilClosed(await connect("one"), objects)).toBe(13);
});

it("messages with at most 256 arrays and objects cost their bytes only", async () => {
  const { connect } = await openService();
  const socket = await connect("one");
  const objects = Array.from({ length: 250 }, () => ({}));
  // Only the socket's own limit of messages ends it: 250 at once.
  expect(await callUntilClosed(socket, objects)).toBe(200);
});
