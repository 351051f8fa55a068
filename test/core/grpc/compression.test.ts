// Compressed requests over real connections: what is accepted, and how everything else is refused.

import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { GrpcServer } from "../../../src/core/grpc/grpc-server.ts";
import { frameMessage } from "../../../src/core/grpc/status.ts";
import { RateBudget } from "../../../src/core/rate-budget.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";

const echo = "/test.Service/Echo";
const stream = "/test.Service/Stream";
const text = "streams of decoded transactions";
const zstd = Buffer.from("KLUv/QRY+QAAc3RyZWFtcyBvZiBkZWNvZGVkIHRyYW5zYWN0aW9uc789/2k=", "base64");
const bytesMax = 20_000;

/** `costs`: bytes that requests of streams cost. */
async function openServer() {
  const clock = ManualClock.running();
  const budget = new RateBudget({ perSecond: 1e9, burst: 1e9 }, clock);
  const costs: number[] = [];
  const costOf = (bytes: number) => costs.push(bytes);
  const server = closing(
    await GrpcServer.open({
      listen: parseEndpoint("127.0.0.1:0", { allowPortZero: true }),
      methods: { [echo]: ({ message }) => message },
      streams: {
        [stream]: (call) =>
          call.accept(
            (message) => {
              call.send(frameMessage(message));
              call.end("OK");
            },
            () => {},
            { pace: { budgets: [{ budget, costOf }], onWait: () => {} } },
          ),
      },
      limits: { streamRequestBytes: bytesMax },
      clock,
      report: () => {},
    }),
  );
  const session = connect(`http://${server.address}`);
  closing({ close: () => session.destroy() });
  return { session, costs };
}

function compressed(content: Uint8Array): Buffer {
  const framed = frameMessage(content);
  framed.writeUInt8(1, 0);
  return framed;
}

interface Answer {
  readonly body: string;
  readonly status: unknown;
  readonly message: unknown;
  readonly accepted: unknown;
}

function send(
  session: ClientHttp2Session,
  { path, encoding, request }: { path: string; encoding?: string; request: Buffer },
): Promise<Answer> {
  const call = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    ...(encoding !== undefined && { "grpc-encoding": encoding }),
  });
  let head: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  const chunks: Buffer[] = [];
  call.on("response", (headers) => {
    head = headers;
  });
  call.on("trailers", (headers) => {
    trailers = headers;
  });
  call.on("data", (chunk: Buffer) => chunks.push(chunk));
  call.end(request);
  return new Promise((resolve, reject) => {
    call.on("error", reject);
    call.on("end", () => {
      const last = "grpc-status" in head ? head : trailers;
      resolve({
        body: Buffer.concat(chunks).subarray(5).toString(),
        status: last["grpc-status"],
        message: last["grpc-message"],
        accepted: head["grpc-accept-encoding"],
      });
    });
  });
}

describe.each([echo, stream])("a compressed request of %s", (path) => {
  it.each([
    ["gzip", gzipSync(text)],
    ["deflate", deflateSync(text)],
    ["zstd", zstd],
  ])("may be in %s", async (encoding, content) => {
    const { session } = await openServer();
    const answer = await send(session, { path, encoding, request: compressed(content) });
    expect(answer).toMatchObject({ body: text, status: "0" });
    expect(answer.accepted).toBe("identity,gzip,deflate,zstd");
  });

  it.each([
    ["snappy", "12", 'grpc-encoding: expected gzip, deflate, zstd or identity, got "snappy"'],
    [undefined, "13", "expected an uncompressed message, because the call has no grpc-encoding"],
    ["gzip", "13", "expected a message in gzip: incorrect header check"],
    ["zstd", "13", "expected a message in zstd: a frame does not begin with its magic number"],
  ])("is refused if it is not in %s", async (encoding, status, message) => {
    const { session } = await openServer();
    const request = compressed(Buffer.from("plain text"));
    const answer = await send(session, { path, ...(encoding && { encoding }), request });
    expect(answer).toMatchObject({ status, message });
    expect(answer.accepted).toBe("identity,gzip,deflate,zstd");
  });

  it("is refused if its content is too long", async () => {
    const { session } = await openServer();
    const [fits, exceeds] = [16 * 1024, bytesMax + 1].map((length) => {
      const request = compressed(gzipSync(Buffer.alloc(length, "a")));
      return send(session, { path, encoding: "gzip", request });
    });
    expect((await fits)?.status).toBe("0");
    expect(await exceeds).toMatchObject({
      status: "8",
      message: expect.stringMatching(/^expected messages of at most \d+ bytes, got a longer one/),
    });
  });
});

describe("the rate of compressed requests", () => {
  it("counts their content, and the longest one if it is invalid", async () => {
    const { session, costs } = await openServer();
    const content = gzipSync(Buffer.alloc(9000));
    const long = Buffer.concat([gzipSync(text), ...Array.from({ length: 50 }, () => gzipSync(""))]);
    for (const request of [
      compressed(content),
      compressed(long),
      compressed(content.subarray(9)),
    ]) {
      await send(session, { path: stream, encoding: "gzip", request });
    }
    await send(session, { path: stream, encoding: "snappy", request: compressed(content) });
    expect(costs).toEqual([9000, long.length, bytesMax, content.length]);
  });
});
