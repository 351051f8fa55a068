// The reader of HTTP/1.1 requests: the same requests however the bytes are cut, strict about everything
// that two programs could read differently, and in agreement with node:http.

import { createServer } from "node:http";
import { connect } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RequestProblem } from "../../../src/gateway/http/request-head.ts";
import { headBytesMax, RequestReader } from "../../../src/gateway/http/request-reader.ts";

interface Read {
  readonly requests: { line: string; fields: string; body: string; isEnded: boolean }[];
  problem: RequestProblem | null;
}

/** The reader's results for the text, cut into pieces of these sizes in turn. */
function read(text: string, sizes: readonly number[] = [text.length]): Read {
  const found: Read = { requests: [], problem: null };
  const bytes = Buffer.from(text, "latin1");
  let end = 0;
  const reader = new RequestReader({
    head: ({ method, path, query, fields }, _, begin) => {
      // Only empty lines between the end of a request and the next one.
      expect(text.slice(end, begin)).toMatch(/^(\r\n)*$/);
      expect(text.startsWith(`${method} `, begin)).toBe(true);
      const line = `${method} ${path}?${query}`;
      found.requests.push({ line, fields: fields.join("|"), body: "", isEnded: false });
    },
    body: (piece, isLast) => {
      const request = found.requests.at(-1);
      if (!request || request.isEnded) throw new Error("a piece of a body without its request");
      request.body += Buffer.from(piece).toString("latin1");
      request.isEnded = isLast;
      if (isLast) end = reader.readBytes;
    },
  });
  for (let at = 0, i = 0; at < bytes.length && found.problem === null; i++) {
    const size = Math.max(1, sizes[i % sizes.length] ?? 1);
    found.problem = reader.read(Buffer.from(bytes.subarray(at, at + size)));
    at += size;
  }
  return found;
}

const token = fc.stringMatching(/^[A-Za-z!#$%&'*+.^_`|~-]{1,12}$/);
const value = fc.stringMatching(/^[!-~]([ -~]{0,20}[!-~])?$/);
const fields = fc.array(fc.tuple(token, value), { maxLength: 5 }).map((list) =>
  list
    .filter(([name]) => !/^(content-length|transfer-encoding|host|connection|upgrade)$/i.test(name))
    .map(([name, text]) => `${name}: ${text}\r\n`)
    .join(""),
);
const bodyText = fc.stringMatching(/^[\x20-\x7e\r\n]{0,60}$/);
const request = fc
  .record({
    method: fc.constantFrom("GET", "POST", "PUT", "OPTIONS"),
    target: fc.stringMatching(/^\/[a-z0-9%./-]{0,12}(\?[a-z0-9=&]{0,12})?$/),
    fields,
    body: bodyText,
    chunks: fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 4 }),
  })
  .map((parts) => {
    const { method, target, body, chunks } = parts;
    const head = `${method} ${target} HTTP/1.1\r\nHost: a\r\n${parts.fields}`;
    if (chunks.length === 0) return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
    let text = "";
    for (let at = 0, i = 0; at < body.length; i++) {
      const piece = body.slice(at, at + (chunks[i % chunks.length] ?? 1));
      text += `${piece.length.toString(16)}${i % 2 ? ";x=1" : ""}\r\n${piece}\r\n`;
      at += piece.length;
    }
    return `${head}Transfer-Encoding: chunked\r\n\r\n${text}0\r\n\r\n`;
  });

/** The results of node:http for the same bytes. */
async function readByNode(text: string): Promise<{ line: string; body: string }[]> {
  const found: { line: string; body: string }[] = [];
  const server = createServer((message, response) => {
    let body = "";
    message.setEncoding("latin1").on("data", (piece: string) => {
      body += piece;
    });
    message.on("end", () => {
      const [path = "", query = ""] = (message.url ?? "").split("?");
      found.push({ line: `${message.method} ${path}?${query}`, body });
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const socket = connect(port, "127.0.0.1");
  socket.resume().write(text, "latin1");
  socket.write("GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  await new Promise((resolve) => socket.once("close", resolve).on("error", () => undefined));
  await new Promise((resolve) => server.close(resolve));
  return found.slice(0, -1);
}

describe("the reader of requests", () => {
  it("reads the same requests however the bytes are cut", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 4 }), sizes, (requests, cut) => {
        const text = requests.join("");
        const whole = read(text);
        expect(whole.problem).toBeNull();
        expect(whole.requests.map(({ isEnded }) => isEnded)).toEqual(requests.map(() => true));
        expect(read(text, cut)).toEqual(whole);
        expect(read(text, [1])).toEqual(whole);
      }),
      { numRuns: 300 },
    );
  });

  it("agrees with node:http", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 3 }), async (requests) => {
        const text = requests.join("");
        const own = read(text).requests.map(({ line, body }) => ({ line, body }));
        expect(own).toEqual(await readByNode(text));
      }),
      { numRuns: 40 },
    );
  });

  it("never throws, and never delivers a body without a head", () => {
    const bytes = fc
      .uint8Array({ maxLength: 400 })
      .map((all) => Buffer.from(all).toString("latin1"));
    const text = fc.oneof(
      bytes,
      fc.tuple(request, bytes).map((both) => both.join("")),
    );
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 50 }), (sent, size) => {
        read(sent, [size]);
      }),
      { numRuns: 500 },
    );
  });

  const host = "Host: a\r\n";
  it.each([
    ["two lengths", `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 1\r\n\r\na`],
    ["a length with a sign", `POST / HTTP/1.1\r\n${host}Content-Length: +1\r\n\r\na`],
    ["a length in another base", `POST / HTTP/1.1\r\n${host}Content-Length: 0x1\r\n\r\na`],
    [
      "a length of 16 digits",
      `POST / HTTP/1.1\r\n${host}Content-Length: 1${"0".repeat(15)}\r\n\r\n`,
    ],
    [
      "a length beside chunks",
      `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      "a no-break space behind a length",
      `POST / HTTP/1.1\r\n${host}Content-Length: 1\xa0\r\n\r\na`,
    ],
    [
      "a no-break space before chunks",
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: \xa0chunked\r\n\r\n0\r\n\r\n`,
    ],
    ["chunks that are not last", `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, x\r\n\r\n`],
    ["a space before a colon", `GET / HTTP/1.1\r\n${host}X : 1\r\n\r\n`],
    ["a folded header", `GET / HTTP/1.1\r\n${host}X: 1\r\n 2\r\n\r\n`],
    ["a bare line feed", `GET / HTTP/1.1\r\n${host}X: 1\nY: 2\r\n\r\n`],
    ["a bare carriage return", `GET / HTTP/1.1\r\n${host}X: 1\rY: 2\r\n\r\n`],
    ["a NUL in a value", `GET / HTTP/1.1\r\n${host}X: 1\u0000\r\n\r\n`],
    ["a header without a name", `GET / HTTP/1.1\r\n${host}: 1\r\n\r\n`],
    ["a space in the target", `GET /a b HTTP/1.1\r\n${host}\r\n`],
    ["no Host", "GET / HTTP/1.1\r\n\r\n"],
    ["a chunk of no size", `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n;a\r\n`],
    [
      "a chunk of 9 digits",
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n000000001\r\n`,
    ],
    [
      "a chunk line that ends in a line feed",
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1\na`,
    ],
    [
      "no line break behind a chunk",
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n`,
    ],
    [
      "an endless chunk extension",
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1;${"a".repeat(5000)}`,
    ],
    [
      "endless trailers",
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n0\r\n${"X: 1\r\n".repeat(5000)}`,
    ],
  ])("refuses %s", (_, text) => {
    for (const sizes of [[text.length], [1], [7]]) {
      expect(read(text, sizes).problem).toMatchObject({ status: 400 });
    }
  });

  it("limits a head, complete or not, in any pieces", () => {
    const line = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    const fits = line + "a".repeat(headBytesMax - line.length);
    for (const sizes of [[100_000], [1000], [1]]) {
      expect(read(`${fits}\r\n\r\n`, sizes)).toMatchObject({ problem: null, requests: [{}] });
      expect(read(`${fits}a\r\n\r\n`, sizes).problem).toMatchObject({ status: 431 });
      expect(read(fits + "a".repeat(5000), sizes).problem).toMatchObject({ status: 431 });
    }
  });

  it("names an old version", () => {
    expect(read("GET / HTTP/1.0\r\nHost: a\r\n\r\n").problem).toEqual({
      status: 505,
      expected: "HTTP/1.1, got HTTP/1.0",
    });
  });
});
