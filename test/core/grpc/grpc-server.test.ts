// The gRPC server against callers that break off, with unusual addresses and without a handshake, over real
// sockets.

import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect, Server } from "node:net";
import { describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { GrpcChannel } from "../../../src/core/grpc/grpc-channel.ts";
import { GrpcServer } from "../../../src/core/grpc/grpc-server.ts";
import { GrpcError } from "../../../src/core/grpc/status.ts";
import type { TlsMaterial } from "../../../src/core/tls-material.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { hasLinkLocal, linkLocalAddress } from "../../support/network/link-local.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { selfSignedCertificate, selfSignedKey } from "../../support/quic/self-signed.ts";

const path = "/test.Service/Echo";
const refusedPath = "/test.Service/Refuse";

async function openServer(
  listen = "127.0.0.1:0",
  tls?: TlsMaterial,
  limits: Parameters<typeof GrpcServer.open>[0]["limits"] = {},
) {
  const reported: unknown[] = [];
  const peers: string[] = [];
  const clock = ManualClock.running();
  const server = closing(
    await GrpcServer.open({
      listen: parseEndpoint(listen, { allowPortZero: true }),
      methods: {
        [path]: ({ message, peer }) => {
          peers.push(peer);
          return message;
        },
        [refusedPath]: () => {
          throw new GrpcError("NOT_FOUND", "refused");
        },
      },
      tls,
      limits,
      clock,
      report: (error) => void reported.push(error),
    }),
  );
  return { server, reported, peers, clock };
}

function call(address: string): Promise<Uint8Array> {
  const channel = new GrpcChannel({ url: `http://${address}`, clock: ManualClock.running() });
  closing(channel);
  return channel.call({ path, request: Uint8Array.of(1, 2, 3), timeoutMs: 10_000 });
}

/** "address%interface"; undefined: no interface has one. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const frameTypes = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6 } as const;
const endStream = 1;
const endHeaders = 4;

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Header fields without an index and without Huffman coding; each text has at most 126 bytes. */
function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.of(value.length), Buffer.from(value)]);
  const encoded = Object.entries(fields).map(([name, value]) =>
    Buffer.concat([Buffer.of(0), text(name), text(value)]),
  );
  return Buffer.concat(encoded);
}

function headersOf(requestPath: string, contentType = "application/grpc"): Buffer {
  return headerBlock({
    ":method": "POST",
    ":scheme": "http",
    ":path": requestPath,
    ":authority": "test",
    "content-type": contentType,
  });
}

const noError = frame(frameTypes.rstStream, 0, 1, Buffer.alloc(4, constants.NGHTTP2_NO_ERROR));
const ping = frame(frameTypes.ping, 0, 0, Buffer.from("answered"));

describe("GrpcServer", () => {
  const head = (flags: number, requestPath: string, contentType?: string) =>
    frame(frameTypes.headers, flags, 1, headersOf(requestPath, contentType));
  const complete = endStream | endHeaders;
  it.each([
    ["a complete request", head(complete, path)],
    ["an incomplete request", head(endHeaders, path)],
    ["an incomplete request to a method that refuses", head(endHeaders, refusedPath)],
    ["a request to an unknown method", head(endHeaders, "/test.Service/None")],
    ["a request without gRPC", head(endHeaders, path, "text/html")],
    [
      "an incomplete message",
      Buffer.concat([head(endHeaders, path), frame(frameTypes.data, 0, 1, Buffer.alloc(5))]),
    ],
  ])("survives %s that is reset without an error in the same write", async (_, request) => {
    const { server, reported } = await openServer();
    const { port } = parseEndpoint(server.address);
    const socket = connect(port, "127.0.0.1");
    closing({ close: () => void socket.destroy() });
    socket.on("error", () => {});
    const settings = frame(frameTypes.settings, 0, 0, Buffer.alloc(0));
    socket.write(Buffer.concat([preface, settings, request, noError, ping]));
    const received: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    while (!Buffer.concat(received).includes("answered")) await once(socket, "data");
    expect(await call(server.address)).toEqual(Uint8Array.of(1, 2, 3));
    expect(reported).toEqual([]);
  });

  it.skipIf(!hasLinkLocal)("serves a caller with a link-local address", async () => {
    const local = await linkLocalAddress();
    const { server, peers } = await openServer("[::]:0");
    const { port } = parseEndpoint(server.address);
    const session = connectHttp2("http://link-local", {
      createConnection: () => connect(port, local),
    });
    closing({ close: () => session.destroy() });
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
    });
    stream.end(Buffer.alloc(5));
    stream.resume();
    await once(stream, "close");
    expect(peers).toEqual(local.split("%", 1));
    expect(await call(`[::1]:${port}`)).toEqual(Uint8Array.of(1, 2, 3));
  });

  it("refuses an address in use, and names it", async () => {
    const { server } = await openServer();
    await expect(openServer(server.address)).rejects.toMatchObject({
      reason: "http_open",
      message: `cannot listen on ${server.address}: address already in use`,
      details: { address: server.address },
    });
  });

  it("reports an error of the listening socket, and goes on", async () => {
    const { server, reported } = await openServer();
    const { port } = parseEndpoint(server.address);
    const handles: unknown = Reflect.apply(Reflect.get(process, "_getActiveHandles"), process, []);
    const listening = (Array.isArray(handles) ? handles : []).find(
      (handle): handle is Server =>
        handle instanceof Server && JSON.stringify(handle.address()).includes(`"port":${port}`),
    );
    const error = new Error("accept EMFILE");
    listening?.emit("error", error);
    expect(reported).toEqual([error]);
    expect(await call(server.address)).toEqual(Uint8Array.of(1, 2, 3));
  });

  it("ends calls whose caller does not read the response, and then its connection", async () => {
    const { server, clock } = await openServer();
    const session = connectHttp2(`http://${server.address}`, {
      settings: { initialWindowSize: 0 },
    });
    closing({ close: () => session.destroy() });
    session.on("error", () => {});
    const streams = Array.from({ length: 4 }, () => {
      const stream = session.request({
        ":method": "POST",
        ":path": path,
        "content-type": "application/grpc",
      });
      stream.on("error", () => {});
      stream.end(Buffer.alloc(5));
      return stream;
    });
    await Promise.all(streams.map((stream) => once(stream, "response")));
    await until(() => {
      clock.move(1000);
      return streams.every(({ closed }) => closed);
    }, "the ends of the calls");
    expect(streams.map(({ rstCode }) => rstCode)).toEqual(
      streams.map(() => constants.NGHTTP2_CANCEL),
    );
    expect(server.connections).toBe(1);
    await until(() => {
      clock.move(60_000);
      return server.connections === 0;
    }, "the end of the connection");
  });

  it("ends an idle connection whose caller does not close it", async () => {
    const { server, clock } = await openServer();
    const { port } = parseEndpoint(server.address);
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    closing({ close: () => void socket.destroy() });
    socket.on("error", () => {}).resume();
    socket.write(Buffer.concat([preface, frame(frameTypes.settings, 0, 0, Buffer.alloc(0))]));
    await until(() => server.connections === 1, "the connection");
    await until(() => {
      clock.move(60_000);
      return server.connections === 0;
    }, "its end");
  });

  it("bounds the connections of an address before the TLS handshake, and closes them", async () => {
    const tls: TlsMaterial = {
      files: { certificate: "", key: "" },
      certificatePem: selfSignedCertificate,
      keyPem: selfSignedKey,
      expiresMs: 0,
    };
    const { server } = await openServer("127.0.0.1:0", tls);
    const { port } = parseEndpoint(server.address);
    const sockets = Array.from({ length: 20 }, () => connect(port, "127.0.0.1"));
    for (const socket of sockets) socket.on("error", () => {}).resume();
    const open = () => sockets.filter(({ destroyed }) => !destroyed).length;
    await until(() => open() === 16, "refusals");
    server.close();
    await until(() => open() === 0, "the ends");
  });

  it("sends no ping on a connection that is being closed", async () => {
    const beats: (() => void)[] = [];
    const clock = Object.assign(ManualClock.running(), {
      every: (_: number, action: () => void) => {
        beats.push(action);
        return { cancel: () => {} };
      },
    });
    const server = closing(
      await GrpcServer.open({
        listen: parseEndpoint("127.0.0.1:0", { allowPortZero: true }),
        methods: {},
        keepAliveMs: 20_000,
        clock,
        report: () => {},
      }),
    );
    const client = connectHttp2(`http://${server.address}`).on("error", () => {});
    await until(() => beats.length === 1, "the connection");
    server.close();
    for (const beat of beats) expect(beat).not.toThrow();
    client.destroy();
  });
});

describe("GrpcServer with few connections", () => {
  it("leaves connections to other addresses", async () => {
    const { server } = await openServer("127.0.0.1:0", undefined, {
      connections: 8,
      connectionsPerPeer: 256,
    });
    const { port } = parseEndpoint(server.address);
    const holders = Array.from({ length: 8 }, () => {
      const socket = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.9" });
      closing({ close: () => void socket.destroy() });
      return socket.on("error", () => {}).resume();
    });
    await until(() => server.refusedConnections === 6, "the refusal of the others");
    await until(() => holders.filter(({ closed }) => closed).length === 6, "their ends");
    expect(server.connections).toBe(2);
    await expect(call(server.address)).resolves.toEqual(Uint8Array.of(1, 2, 3));
  });
});

describe("calls of one address", () => {
  it("are refused beyond their rate on all its connections, also if they are cancelled at once", async () => {
    const callsPerPeer = { perSecond: 0.001, burst: 5 };
    const { server, peers, clock } = await openServer("127.0.0.1:0", undefined, { callsPerPeer });
    const socket = connect(parseEndpoint(server.address).port, "127.0.0.1");
    closing({ close: () => void socket.destroy() });
    socket.on("error", () => {});
    const cancelled = Array.from({ length: 12 }, (_, i) => [
      frame(frameTypes.headers, endHeaders, 2 * i + 1, headersOf(path)),
      frame(frameTypes.rstStream, 0, 2 * i + 1, Buffer.of(0, 0, 0, constants.NGHTTP2_CANCEL)),
    ]);
    const settings = frame(frameTypes.settings, 0, 0, Buffer.alloc(0));
    socket.write(Buffer.concat([preface, settings, ...cancelled.flat(), ping]));
    await until(() => server.refusedCalls >= 6, "the refusals");
    await expect(call(server.address)).rejects.toMatchObject({
      status: "RESOURCE_EXHAUSTED",
      detail:
        "rate limit exceeded: expected at most 0.001 new calls a second of one address (burst: 5); retry in 1 s",
    });
    expect(peers).toEqual([]);
    clock.move(1_000_000);
    expect(await call(server.address)).toEqual(Uint8Array.of(1, 2, 3));
  });

  it("end the connection of a caller that goes on after 100 refusals", async () => {
    const callsPerPeer = { perSecond: 0.001, burst: 1 };
    const { server } = await openServer("127.0.0.1:0", undefined, { callsPerPeer });
    const session = connectHttp2(`http://${server.address}`);
    closing(Object.assign(session, { close: () => session.destroy() }));
    session.on("error", () => undefined);
    const codes: number[] = [];
    session.on("goaway", (code) => void codes.push(code));
    while (!session.closed && !session.destroyed) {
      const stream = session.request({ ":method": "POST", ":path": "/a.B/C" });
      stream.on("error", () => undefined);
      stream.resume();
      stream.end();
      await new Promise((resolve) => stream.once("close", resolve));
    }
    expect(codes[0]).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    expect(server.refusedCalls).toBe(101);
    await until(() => server.connections === 0, "the end of the connection");
  });
});
