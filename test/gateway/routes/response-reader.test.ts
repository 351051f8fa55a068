// The reader of partners' responses: the same response however the bytes are cut, within limits.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ResponseReader } from "../../../src/gateway/routes/response-reader.ts";

/** The first result of a reader for this text, cut into pieces of this size. */
function read(text: string, size = text.length): unknown {
  const reader = new ResponseReader();
  const bytes = Buffer.from(text, "latin1");
  for (let at = 0; at < bytes.length; at += size) {
    const result = reader.read(bytes.subarray(at, at + size));
    if (result !== null)
      return "body" in result ? { ...result, body: String(result.body) } : result;
  }
  const end = reader.end();
  return end && { ...end, body: String(end.body) };
}

const bodyText = fc.stringMatching(/^[\x20-\x7e\r\n]{0,80}$/);

describe("the reader of responses", () => {
  it("reads the same response however the bytes are cut", () => {
    const size = fc.integer({ min: 1, max: 50 });
    const chunk = fc.integer({ min: 1, max: 20 });
    fc.assert(
      fc.property(bodyText, size, fc.option(chunk), (body, cut, chunkSize) => {
        let text = `HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
        if (chunkSize !== null) {
          text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
          for (let at = 0; at < body.length; at += chunkSize) {
            const piece = body.slice(at, at + chunkSize);
            text += `${piece.length.toString(16)};a=b\r\n${piece}\r\n`;
          }
          text += "0\r\nX-Trailer: 1\r\n\r\n";
        }
        expect(read(text, cut)).toMatchObject({ status: 200, body, isKeptAlive: true });
      }),
      { numRuns: 300 },
    );
  });

  it("never throws", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), fc.integer({ min: 1, max: 20 }), (text, size) => {
        read(`HTTP/1.1 200 OK\r\n${text}`, size);
        read(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${text}`, size);
      }),
    );
  });

  it.each([
    ["Connection: close\r\n", false],
    ["Connection: x, Close\r\n", false],
    ["Connection: keep-alive\r\n", true],
    ["", true],
  ])("knows whether the connection can be used again: %s", (field, isKeptAlive) => {
    expect(read(`HTTP/1.1 200 OK\r\n${field}Content-Length: 0\r\n\r\n`)).toMatchObject({
      isKeptAlive,
    });
  });

  it("does not use a connection again that carries more than one response", () => {
    const one = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    expect(read(one + one)).toMatchObject({ body: "a", isKeptAlive: false });
    const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    expect(read(chunked + one)).toMatchObject({ body: "a", isKeptAlive: false });
  });

  it("reads a body that ends with the connection, and what the partner announces", () => {
    expect(read("HTTP/1.0 200 OK\r\n\r\nabc", 4)).toMatchObject({
      body: "abc",
      isKeptAlive: false,
    });
    const announced = "Keep-Alive: timeout=5, max=9\r\nRetry-After: 3\r\nContent-Length: 0\r\n";
    expect(read(`HTTP/1.1 429 Slow Down\r\n${announced}\r\n`)).toMatchObject({
      keepAliveSeconds: 5,
      retryAfter: "3",
    });
  });

  it.each([
    ["a head of more than 16 kB", `HTTP/1.1 200 OK\r\nX: ${"a".repeat(20_000)}`, "answer_invalid"],
    ["an old version", "HTTP/0.9 200 OK\r\n\r\n", "answer_invalid"],
    [
      "a length beside chunks",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "answer_invalid",
    ],
    ["a coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "answer_invalid"],
    ["a large body", "HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n", "answer_too_large"],
    [
      "a large chunk",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
      "answer_too_large",
    ],
    [
      "a chunk without a size",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
      "answer_invalid",
    ],
    ["a body without an end", `HTTP/1.1 200 OK\r\n\r\n${"a".repeat(70_000)}`, "answer_too_large"],
    ["an interim status", "HTTP/1.1 100 Continue\r\n\r\n", "connection_lost"],
  ])("refuses %s", (_, text, reason) => {
    for (const size of [text.length, 100]) expect(read(text, size)).toMatchObject({ reason });
  });
});
