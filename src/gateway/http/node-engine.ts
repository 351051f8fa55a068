// The engine "node": TCP sockets of Node.js with an HTTP/1.1 reader of our own, and ws for WebSockets,
// behind the operations of engine.ts.
//
// node:http builds streams and events for every request, which costs three times as much as the rest of
// it. Rejected here, like by the other engine: HTTP/1.0 (505), a head above 20 kB (431), invalid heads
// and contradicting lengths (400). Pipelined requests are answered in order, one at a time. A PROXY
// protocol header (version 2) at the start of a connection is skipped; no address is read from it. A
// client that sends neither a request nor the rest of one for 10 s is cut, or whose body takes longer than
// 60 s; between two requests it has `keepAliveSeconds`. A TLS handshake and the first byte of the first
// request must end within 10 s.

import { IncomingMessage } from "node:http";
import { Socket as TcpSocket } from "node:net";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { WebSocketServer } from "ws";
import type { Timer } from "../../core/clock.ts";
import type { TlsMaterial } from "../../core/tls-material.ts";
import type { FastPathConnections } from "../fast-path/caller-connection.ts";
import { errorAnswer, type Refusal } from "./answer.ts";
import {
  type CallerListener,
  type CallerNetwork,
  type CallerSocket,
  kernelCallers,
} from "./caller-network.ts";
import { ConnectionShares } from "./connection-shares.ts";
import type {
  Engine,
  EngineApp,
  EngineOptions,
  EngineResponse,
  EngineWebSocketRoute,
} from "./engine.ts";
import { type ConnectionHost, Http1Connection } from "./http1-connection.ts";
import { DateLine, type Http1Request, stalledMs } from "./http1-request.ts";
import { NodeWebSocket } from "./node-web-socket.ts";
import type { HttpHead } from "./types.ts";
import type { Socket } from "./web-socket-peers.ts";

/** The response announces `keepAliveSeconds`; a request of the last moment still arrives. */
const keepAliveReserveMs = 1000;
/** Time between two checks of all time-outs. */
const checkMs = 500;
/** After a close frame, a peer has this long to read it and to close its side. */
const closingOptions = { closeTimeout: 2000 }; // ms; the type declarations of ws lack it
const proxySignature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const proxyHeadBytes = 16;
/** Addresses and options of a PROXY header. */
const proxyBytesMax = 2048;

function nothing(): void {}

interface WebSocketPath {
  readonly route: EngineWebSocketRoute;
  readonly server: WebSocketServer;
}

class NodeApp implements EngineApp, ConnectionHost {
  readonly refusal: Refusal;
  readonly keepAliveMs: number;
  readonly fastPath: FastPathConnections | null;
  readonly #network: CallerNetwork;
  readonly #date: DateLine;
  readonly #connections = new Set<Http1Connection>();
  readonly #shares = new ConnectionShares<Http1Connection>();
  readonly #listeners = new Set<CallerListener>();
  readonly #webSocketPaths = new Map<string, WebSocketPath>();
  readonly #webSockets = new Map<Http1Connection, NodeWebSocket>();
  #timer: Timer | undefined;
  #secureContext: SecureContext | undefined;
  #filter: (response: Pick<EngineResponse, "close">, change: number) => void = nothing;
  #handle: (response: EngineResponse, head: HttpHead) => void = nothing;

  constructor({
    keepAliveSeconds,
    tls,
    fastPath,
    refusal = errorAnswer,
    network = kernelCallers,
  }: EngineOptions) {
    this.#network = network;
    this.#date = new DateLine(network);
    this.fastPath = fastPath ?? null;
    this.refusal = refusal;
    this.keepAliveMs = keepAliveSeconds * 1000 + keepAliveReserveMs;
    if (tls) this.replaceCertificate(tls);
  }

  nowMs(): number {
    return this.#network.nowMs();
  }

  dateLine(): string {
    return this.#date.text();
  }

  filter(call: (response: Pick<EngineResponse, "close">, change: number) => void): void {
    this.#filter = call;
  }

  any(call: (response: EngineResponse, head: HttpHead) => void): void {
    this.#handle = call;
  }

  ws(path: string, route: EngineWebSocketRoute): void {
    const server = new WebSocketServer({
      noServer: true,
      maxPayload: route.maxPayloadLength,
      perMessageDeflate: false,
      clientTracking: false,
      ...closingOptions,
    });
    this.#webSocketPaths.set(path, { route, server });
  }

  replaceCertificate({ certificatePem, keyPem }: TlsMaterial): void {
    this.#secureContext = createSecureContext({
      cert: certificatePem,
      key: keyPem,
      minVersion: "TLSv1.2",
    });
  }

  async listen(host: string, port: number, isTls: boolean): Promise<CallerListener | null> {
    this.#timer ??= this.#network.every(checkMs, () => this.#checkTime());
    const listener = await this.#network.listen({ host, port, isTls }, (socket) =>
      this.#connected(isTls ? this.#tlsSocketOf(socket) : socket),
    );
    if (listener) this.#listeners.add(listener);
    return listener;
  }

  close(): void {
    this.#timer?.cancel();
    for (const listener of this.#listeners) listener.close();
    for (const webSocket of this.#webSockets.values()) webSocket.close();
    for (const { socket } of this.#connections) socket.destroy();
  }

  handle(request: Http1Request): void {
    this.#handle(request, request.head);
  }

  upgrade(connection: Http1Connection, request: Http1Request, rest: Buffer): void {
    const { head } = request;
    const path = this.#webSocketPaths.get(head.path) ?? this.#webSocketPaths.get("*");
    if (!path) {
      this.#handle(request, head);
      return;
    }
    path.route.upgrade(request, head, (userData) => {
      request.discard();
      connection.release();
      this.#accept(path, { connection, request, rest, userData });
    });
  }

  closed(connection: Http1Connection): void {
    this.#connections.delete(connection);
    this.#shares.delete(connection);
    this.#webSockets.delete(connection);
    this.#filter({ close: nothing }, -1);
  }

  #checkTime(): void {
    const nowMs = this.nowMs();
    for (const connection of this.#connections) connection.checkTime(nowMs);
    for (const webSocket of this.#webSockets.values()) webSocket.checkIdle();
  }

  #tlsSocketOf(socket: CallerSocket): TLSSocket {
    if (!(socket instanceof TcpSocket)) throw new TypeError("expected a TCP socket for TLS");
    const secureContext = this.#secureContext;
    const secure = new TLSSocket(socket, {
      isServer: true,
      ALPNProtocols: ["http/1.1"],
      ...(secureContext && { secureContext }),
    });
    // A time-out of its own: bytes of a slow handshake count as activity.
    const timer = setTimeout(() => secure.destroy(), stalledMs).unref();
    const stop = (): void => clearTimeout(timer);
    secure.once("readable", stop).once("close", stop);
    return secure;
  }

  #connected(socket: CallerSocket): void {
    const connection = new Http1Connection(socket, this);
    this.#connections.add(connection);
    this.#shares.add(connection);
    this.#filter({ close: () => this.#shares.surplus(connection).socket.destroy() }, 1);
    if (!socket.destroyed) this.#readFirst(connection, Buffer.alloc(0));
  }

  /** Starts the connection, without a PROXY header at its start. */
  #readFirst(connection: Http1Connection, before: Buffer): void {
    const { socket } = connection;
    socket.once("readable", () => {
      const piece: Buffer | null = socket.read();
      const bytes = piece === null ? before : Buffer.concat([before, piece]);
      const skip = proxyHeaderBytes(bytes);
      if (skip === undefined && piece !== null) {
        this.#readFirst(connection, bytes);
        return;
      }
      if (skip === "invalid") {
        socket.destroy();
        return;
      }
      const rest = bytes.subarray(skip ?? 0);
      if (rest.length > 0) socket.unshift(rest);
      connection.start();
    });
  }

  #accept({ route, server }: WebSocketPath, handshake: Handshake): void {
    const { connection, request, rest, userData } = handshake;
    const { socket: tcp } = connection;
    server.handleUpgrade(messageOf(connection, request), tcp, rest, (socket) => {
      const peer = new NodeWebSocket({ socket, tcp }, userData, route);
      this.#webSockets.set(connection, peer);
      route.open(peer);
    });
  }
}

/** A WebSocket handshake that the server accepted. */
interface Handshake {
  readonly connection: Http1Connection;
  readonly request: Http1Request;
  /** The bytes behind it. */
  readonly rest: Buffer;
  readonly userData: Socket;
}

/** The handshake as ws reads it. */
function messageOf({ socket }: Http1Connection, { head, fields }: Http1Request): IncomingMessage {
  const message = new IncomingMessage(socket instanceof TcpSocket ? socket : new TcpSocket());
  message.method = head.method;
  message.url = head.path;
  const headers: Record<string, string> = {};
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? "";
    headers[name] = head.header(name) ?? "";
  }
  message.headers = headers;
  return message;
}

/**
 * The length of the PROXY header at the start of `bytes`; 0: they do not start with one; undefined:
 * more bytes are needed.
 */
function proxyHeaderBytes(bytes: Buffer): number | "invalid" | undefined {
  const compared = Math.min(bytes.length, proxySignature.length);
  if (bytes.compare(proxySignature, 0, compared, 0, compared) !== 0) return 0;
  if (bytes.length < proxyHeadBytes) return undefined;
  const length = proxyHeadBytes + bytes.readUInt16BE(14);
  if (length > proxyBytesMax) return "invalid";
  return bytes.length < length ? undefined : length;
}

export function openNodeEngine(options: EngineOptions): Engine {
  return { keepAliveSeconds: options.keepAliveSeconds, app: new NodeApp(options) };
}
