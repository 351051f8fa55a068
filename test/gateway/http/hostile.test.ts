// Malformed requests: the server must still answer the next caller.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { HttpServer } from "../../../src/gateway/http/server.ts";
import { onEveryEngine, RawClient, serve, urlOf } from "./clients.ts";

async function opened(): Promise<HttpServer> {
  return serve({
    handle: ({ method, body }) => ({ status: 200, body: `${method} ${body.length}` }),
    bodyBytesMax: () => 1000,
    webSockets: {
      "*": {
        messageLimits: { messagesPerSecond: 1e6, messagesBurst: 1e6, bytesPerSecond: 1e9 },
        messageBytesMax: 1000,
        backpressureBytesMax: 1000,
        idleSeconds: 10,
        open: () => undefined,
        message: (peer, text) => void peer.send(text),
        closed: () => undefined,
      },
    },
  });
}

/** Sends, half-closes, waits until the server closes, and returns its response. */
async function sendAndReceive(server: HttpServer, bytes: string | Uint8Array): Promise<string> {
  const client = await RawClient.open(server);
  await client.write(bytes);
  client.socket.end();
  return client.closed();
}

const line = fc.constantFrom(
  "GET / HTTP/1.1",
  "POST / HTTP/1.1",
  "HEAD / HTTP/1.1",
  "BREW /pot HTTP/1.1",
  "GET / HTTP/1.0",
  "GET / HTTP/9.9",
  "GET http://other/ HTTP/1.1",
  "Host: a",
  "Host:",
  "Content-Length: 3",
  "Content-Length: 99999999999999999999",
  "Content-Length: -1",
  "Content-Length: 3, 4",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Key: short",
  "Sec-WebSocket-Version: 13",
  "Expect: 100-continue",
  "",
  "abc",
  "3\r\nabc",
  "0",
  "fffffffffffffffff",
  "\u0000",
  ": x",
  " folded",
);

onEveryEngine((_engine) => {
  describe("the HTTP server", () => {
    it("survives random bytes", async () => {
      const server = await opened();
      const bytes = fc.uint8Array({ minLength: 1, maxLength: 2000 });
      await fc.assert(
        fc.asyncProperty(bytes, async (sent) => {
          await sendAndReceive(server, sent);
        }),
        { numRuns: 60 },
      );
      expect((await fetch(urlOf(server))).status).toBe(200);
      expect(server.connections).toBeLessThanOrEqual(1);
    });

    it("survives requests of invalid lines", async () => {
      const server = await opened();
      const sent = fc.array(line, { minLength: 1, maxLength: 12 });
      await fc.assert(
        fc.asyncProperty(sent, async (lines) => {
          await sendAndReceive(server, `${lines.join("\r\n")}\r\n\r\n`);
        }),
        { numRuns: 200 },
      );
      expect((await fetch(urlOf(server))).status).toBe(200);
    });

    it("refuses heads that are too large in one or many headers", async () => {
      const server = await opened();
      const head = "GET / HTTP/1.1\r\nHost: a\r\n";
      const random = new SeededRandom(1);
      const many = Array.from({ length: 10_000 }, () => `x-${random.u32()}: 1\r\n`).join("");
      for (const bomb of [`X: ${"a".repeat(100_000)}\r\n`, many]) {
        expect(await sendAndReceive(server, `${head}${bomb}\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
      }
      // A head without an end must not be buffered without limit.
      const client = await RawClient.open(server);
      await client.write(`${head}X: ${"a".repeat(100_000)}`);
      expect(await client.closed()).toMatch(/^HTTP\/1\.1 431 /);
      expect((await fetch(urlOf(server))).status).toBe(200);
    });

    it("rejects contradicting lengths, HTTP/1.0 and a missing Host", async () => {
      const server = await opened();
      const both =
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n";
      expect(await sendAndReceive(server, `${both}\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
      expect(await sendAndReceive(server, "GET / HTTP/1.0\r\nHost: a\r\n\r\n")).toMatch(
        /^HTTP\/1\.1 505 /,
      );
      expect(await sendAndReceive(server, "GET / HTTP/1.1\r\n\r\n")).not.toMatch(/ 200 /);
    });

    it("does not accumulate responses for a caller that never reads", async () => {
      const large = "x".repeat(100_000);
      let answered = 0;
      const server = await serve({
        handle: () => {
          answered += 1;
          return { status: 200, body: large };
        },
      });
      const client = await RawClient.open(server);
      client.socket.pause();
      const burst = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2_000);
      for (let i = 0; i < 20 && !client.isClosed; i++) await client.write(burst);
      client.socket.resume();
      await client.closed();
      // 40,000 responses of 100 kB were requested; only what the kernel accepts is created.
      expect(answered).toBeLessThan(2_000);
      expect((await fetch(urlOf(server))).status).toBe(200);
    });
  });
});
