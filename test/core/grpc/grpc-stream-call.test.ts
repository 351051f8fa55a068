// The client of a stream against servers that are silent, speak something else, or stop to answer, over real
// sockets.

import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createSecureServer } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { GrpcServer } from "../../../src/core/grpc/grpc-server.ts";
import { type GrpcEnd, GrpcStreamCall } from "../../../src/core/grpc/grpc-stream-call.ts";
import { frameMessage, GrpcError } from "../../../src/core/grpc/status.ts";
import type { TlsMaterial } from "../../../src/core/tls-material.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { freeUdpPort } from "../../support/network/free-ports.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { selfSignedCertificate, selfSignedKey } from "../../support/quic/self-signed.ts";

const path = "/test.Service/Echo";
const tls: TlsMaterial = {
  certificatePem: selfSignedCertificate,
  keyPem: selfSignedKey,
  files: { certificate: "", key: "" },
  expiresMs: Number.POSITIVE_INFINITY,
};

function open(url: string, certificateAuthorities?: string) {
  const clock = ManualClock.running();
  const seen = {
    opened: 0,
    messages: Array.of<string>(),
    end: Array.of<GrpcEnd>(),
  };
  const call = closing(
    new GrpcStreamCall({
      url,
      path,
      metadata: { "x-token": "alice" },
      certificateAuthorities,
      messageBytesMax: 1000,
      clock,
      onOpen: () => seen.opened++,
      onMessage: (message) => seen.messages.push(Buffer.from(message).toString()),
      onEnd: (end) => seen.end.push(end),
    }),
  );
  return { call, clock, seen };
}

async function ended({ seen }: ReturnType<typeof open>): Promise<GrpcEnd | undefined> {
  await until(() => seen.end.length > 0, "the end");
  return seen.end[0];
}

async function portOf(server: Server): Promise<number> {
  if (!server.listening) await once(server, "listening");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  return (server.address() as AddressInfo).port;
}

function listening(server: Server): Server {
  closing({ close: () => void server.close() });
  return server.listen(0, "127.0.0.1");
}

/** Returns its port. */
function tcpServer(onSocket: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    onSocket(socket);
  }).listen(0, "127.0.0.1");
  closing({
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  return portOf(server);
}

/** Echoes each message; "end" ends the call with a status. */
async function echoServer(isTls = false): Promise<GrpcServer> {
  return closing(
    await GrpcServer.open({
      listen: parseEndpoint("127.0.0.1:0", { allowPortZero: true }),
      methods: {},
      streams: {
        [path]: (stream) => {
          if (stream.headers["x-token"] !== "alice") throw new GrpcError("UNAUTHENTICATED", "no");
          stream.accept(
            (message) => {
              const text = Buffer.from(message).toString();
              if (text === "end") stream.end("DATA_LOSS", "lost: 3 messages – ä");
              stream.send(frameMessage(message));
              stream.flush();
            },
            () => stream.end("OK"),
          );
        },
      },
      ...(isTls && { tls }),
      clock: ManualClock.running(),
      report: () => {},
    }),
  );
}

describe("GrpcStreamCall", () => {
  it("exchanges messages, and ends with the status and text of the server", async () => {
    const { address } = await echoServer();
    const running = open(`http://${address}`);
    running.call.send(Buffer.from("one"));
    running.call.send(Buffer.from("two"));
    await until(() => running.seen.messages.length === 2, "two messages");
    expect(running.seen).toMatchObject({ opened: 1, messages: ["one", "two"] });
    running.call.send(Buffer.from("end"));
    expect(await ended(running)).toEqual({
      status: "DATA_LOSS",
      detail: "lost: 3 messages – ä",
      isFromServer: true,
    });
    const other = open(`http://${address}`);
    other.call.finish();
    expect(await ended(other)).toEqual({ status: "OK", detail: "", isFromServer: true });
  });

  it("uses TLS with the given authority, and names what is wrong without it", async () => {
    const { address } = await echoServer(true);
    const running = open(`https://${address}`, selfSignedCertificate);
    running.call.send(Buffer.from("one"));
    await until(() => running.seen.messages.length === 1, "the message");
    expect(await ended(open(`https://${address}`))).toEqual({
      status: "UNAVAILABLE",
      // Newer versions of Node.js add advice of their own between the two.
      detail: expect.stringMatching(
        `^connection to ${address}: self-signed certificate; .*expected a certificate that this client trusts$`,
      ),
      isFromServer: false,
    });
  });

  it("names the other scheme if the endpoint has TLS, or has none", async () => {
    const secure = createSecureServer({ cert: selfSignedCertificate, key: selfSignedKey });
    const port = await portOf(listening(secure));
    expect((await ended(open(`http://127.0.0.1:${port}`)))?.detail).toContain(
      `; expected HTTP/2 without TLS; if the endpoint uses TLS, write https://127.0.0.1:${port}`,
    );
    const { address } = await echoServer();
    expect((await ended(open(`https://${address}`)))?.detail).toBe(
      `connection to ${address}: wrong version number; expected HTTP/2 with TLS; ` +
        `if the endpoint has no TLS, write http://${address}`,
    );
    const http = await portOf(listening(createHttpServer()));
    expect((await ended(open(`http://127.0.0.1:${http}`)))?.detail).toContain("expected HTTP/2");
  });

  it("names an endpoint at which nothing listens", async () => {
    const port = await freeUdpPort();
    expect((await ended(open(`http://127.0.0.1:${port}`)))?.detail).toBe(
      `connection to 127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}`,
    );
  });

  it("ends if the endpoint is silent, or stops to answer pings", async () => {
    const silent = await tcpServer(() => {});
    const waiting = open(`http://127.0.0.1:${silent}`);
    waiting.clock.move(10_000);
    expect((await ended(waiting))?.detail).toBe(
      `connection to 127.0.0.1:${silent}: no answer within 10000 ms`,
    );
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let received = 0;
    const stuck = await tcpServer((socket) => {
      socket.write(settings);
      socket.on("data", (chunk: Buffer) => (received += chunk.length));
    });
    const running = open(`http://127.0.0.1:${stuck}`);
    await until(() => received > 0, "the request");
    // The ping is sent as soon as the settings have arrived.
    await until(() => {
      running.clock.move(10_000);
      return running.seen.end.length > 0;
    }, "the end");
    expect(running.seen.end).toEqual([
      {
        status: "UNAVAILABLE",
        detail: `connection to 127.0.0.1:${stuck}: no answer to a ping within 10000 ms`,
        isFromServer: false,
      },
    ]);
  });

  it("ends if the connection breaks, and does nothing after close", async () => {
    const { address } = await echoServer();
    const running = open(`http://${address}`);
    running.call.close();
    running.call.send(Buffer.from("one"));
    running.clock.move(30_000);
    const broken = await tcpServer((socket) => {
      socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
      socket.once("data", () => socket.destroy());
    });
    expect(await ended(open(`http://127.0.0.1:${broken}`))).toMatchObject({
      status: "UNAVAILABLE",
      isFromServer: false,
    });
    expect(running.seen.end).toEqual([]);
  });
});
