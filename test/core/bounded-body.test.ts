// Bodies of real responses: their limits of bytes and of time.

import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { readBounded, untilAborted } from "../../src/core/bounded-body.ts";
import { withTimeout } from "../../src/core/request-timeout.ts";
import { closing } from "../support/closing.ts";
import { until } from "../support/network/udp-receiver.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  closing({
    close() {
      server.close();
      server.closeAllConnections();
    },
  });
  await once(server, "listening");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function beBusy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

const never = new AbortController().signal;

it("is decoded as UTF-8, also if a character arrives in two parts", async () => {
  const [first, second] = [Buffer.from("a€").subarray(0, 2), Buffer.from("a€").subarray(2)];
  const url = await serve((_, response) => {
    response.write(first);
    setImmediate(() => response.end(second));
  });
  expect(await readBounded(await fetch(url), { bytesMax: 100, signal: never })).toBe("a€");
  const empty = await serve((_, response) => void response.writeHead(204).end());
  expect(await readBounded(await fetch(empty), { bytesMax: 100, signal: never })).toBe("");
});

it("is rejected above its limit of bytes, and its connection ends", async () => {
  let isOver = false;
  const url = await serve((request, response) => {
    request.socket.on("close", () => (isOver = true));
    response.write("0123456789");
  });
  const read = readBounded(await fetch(url), { bytesMax: 9, signal: never });
  await expect(read).rejects.toThrow("expected at most 9 bytes, got more");
  await until(() => isOver, "the end of the connection");
});

it("is rejected at the time limit if it stalls, on a busy machine and with garbage collections", async () => {
  const sockets = { opened: 0, closed: 0 };
  const count: RequestListener = ({ socket }) => {
    sockets.opened++;
    socket.on("close", () => sockets.closed++);
  };
  const silent = await serve(count);
  const halfway = await serve((request, response) => {
    count(request, response);
    response.write("[");
  });
  for (let i = 0; i < 60; i++) {
    const url = i % 2 === 0 ? halfway : silent;
    const read = withTimeout(1 + ((i * 7) % 23), async (signal) => {
      const response = await fetch(url, { redirect: "error", signal });
      return readBounded(response, { bytesMax: 100, signal });
    });
    setTimeout(collectGarbage, (i * 3) % 20);
    setTimeout(() => beBusy((i * 5) % 30), (i * 11) % 15);
    await expect(read).rejects.toMatchObject({ name: "TimeoutError" });
  }
  await until(() => sockets.closed === sockets.opened, "the end of each connection");
});

it("is not read if the signal has aborted, and leaves no listener behind", async () => {
  const ending = new AbortController();
  expect(await untilAborted(ending.signal, Promise.resolve(1))).toBe(1);
  const reason = new Error("over");
  ending.abort(reason);
  await expect(untilAborted(ending.signal, new Promise(() => undefined))).rejects.toBe(reason);
});
