// One set of requests, sent as bytes, on both engines: forms of requests that clients in other languages
// send. Where uWebSockets.js cannot be changed, the test says what it does instead.

import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { deferred, onEveryEngine } from "./clients.ts";
import { answersTo, body, echo, get, head } from "./raw-requests.ts";

onEveryEngine((engine) => {
  const isNode = engine === "node";

  describe("a request", () => {
    it("may arrive in two pieces, cut at any byte of the body or of the headers", async () => {
      const server = await echo();
      const text = head + body;
      // uWebSockets.js answers 505 if the request line is cut (C5).
      const from = isNode ? 1 : text.indexOf("\r\n") + 2;
      for (let at = from; at < text.length; at++) {
        const client = await answersTo(server, text.slice(0, at), text.slice(at));
        await client.readUntil(/<POST \/a b=c \{.*\}>/);
        expect(client.statuses).toEqual([200]);
        client.socket.destroy();
      }
    });

    it.each(["content-length", "Content-Length", "CONTENT-LENGTH"])(
      "may write its headers in any case: %s",
      async (name) => {
        const server = await echo();
        const text = `POST / HTTP/1.1\r\nhOST: a\r\n${name}: 3\r\n\r\nabc`;
        const client = await answersTo(server, text);
        await client.readUntil(/<POST {2}abc>|<POST \/ {2}abc>/);
        expect(client.statuses).toEqual([200]);
      },
    );
  });

  describe("pipelined requests", () => {
    it("are answered in order, also behind a slow response, or closed by uWebSockets.js", async () => {
      const gate = deferred<void>();
      const server = await echo(gate.promise);
      const client = await answersTo(server, get("/slow") + head + body + get("/last"));
      if (!isNode) {
        expect(await client.closed()).toBe("");
        gate.resolve();
        return;
      }
      gate.resolve();
      await client.readUntil(/<GET \/last/);
      expect(client.received.match(/<\w+ \/\w+/g)).toEqual([
        "<GET /slow",
        "<POST /a",
        "<GET /last",
      ]);
    });
  });

  describe("an ambiguous or compressed request is refused", () => {
    it.each([
      ["two hosts", "Host: b\r\n", 400, 'expected one Host, got \\"a, b\\"'],
      [
        "a coding before chunked",
        "Transfer-Encoding: gzip, chunked\r\n",
        400,
        "expected no Transfer-Encoding but chunked",
      ],
      ["a compressed body", "Content-Encoding: gzip\r\n", 415, 'uncompressed body, got \\"gzip\\"'],
    ])("with %s", async (_, header, status, message) => {
      const server = await echo();
      const isChunked = header.startsWith("Transfer");
      const length = isChunked ? "" : "Content-Length: 3\r\n";
      const client = await answersTo(
        server,
        `POST / HTTP/1.1\r\nHost: a\r\n${length}${header}\r\n${isChunked ? "0\r\n\r\n" : "abc"}`,
      );
      await client.closed();
      expect(client.statuses).toEqual([status]);
      if (isNode || !isChunked) expect(client.received).toContain(message);
    });

    it("with the accepted codings in the answer", async () => {
      const server = await echo();
      const bytes = gzipSync(body);
      const client = await answersTo(
        server,
        `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes.length}\r\nContent-Encoding: gzip\r\n\r\n`,
      );
      await client.readUntil(/accept-encoding: identity/i);
      expect(client.statuses).toEqual([415]);
    });
  });
});
