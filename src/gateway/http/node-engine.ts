// The engine "node": node:http for requests and ws for WebSockets, behind the operations of
// engine.ts.
//
// Rejected here, like by the other engine: HTTP/1.0 (505), a head above 20 kB (431), invalid heads
// and contradicting lengths (400). Pipelined requests are answered in order, one at a time. A PROXY
// protocol header (version 2) at the start of a connection is skipped; no address is read from it. A
// client that sends neither a request nor the rest of one for 10 s is cut; between two requests it
// has `keepAliveSeconds`. A TLS handshake and the first byte of the first request must end within
// 10 s.

import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  ServerResponse,
  STATUS_CODES,
} from "node:http";
import {
  createServer as createTcpServer,
  type Server as TcpServer,
  Socket as TcpSocket,
} from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { WebSocketServer } from "ws";
import { parseAddress } from "../../core/addresses/addresses.ts";
import type { TlsMaterial } from "../../core/tls-material.ts";
import { errorAnswer, type Refusal } from "./answer.ts";
import type {
  Engine,
  EngineApp,
  EngineListener,
  EngineOptions,
  EngineRequest,
  EngineResponse,
  EngineWebSocketRoute,
} from "./engine.ts";
import { type Connection, NodeRequest, NodeResponse, stalledMs } from "./node-exchange.ts";
import { NodeWebSocket } from "./node-web-socket.ts";
import type { Socket } from "./web-socket-peers.ts";

const headBytesMax = 20_480;
/** Unsent responses of one connection; a client that pipelines more requests is cut. */
const unsentBytesMax = 1024 * 1024;
/** Pipelined requests behind an unanswered one; a client that sends more is cut. */
const waitingMax = 64;
/** After a close frame, a peer has this long to read it and to close its side. */
const closingOptions = { closeTimeout: 2000 }; // ms; the type declarations of ws lack it
const proxySignature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const proxyHeadBytes = 16;
/** Addresses and options of a PROXY header. */
const proxyBytesMax = 2048;

function nothing(): void {}

/** Requests with an Upgrade header. The constructor of IncomingMessage already sets `upgrade`. */
const upgradeRequests = new WeakSet<IncomingMessage>();

/** node:http marks every request with an Upgrade header; only WebSockets are upgraded. */
class Incoming extends IncomingMessage {
  get upgrade(): boolean {
    return upgradeRequests.has(this) && /^websocket$/i.test(this.headers.upgrade ?? "");
  }

  set upgrade(value: boolean | null) {
    if (value === true) upgradeRequests.add(this);
  }
}

interface WebSocketPath {
  readonly route: EngineWebSocketRoute;
  readonly server: WebSocketServer;
}

class NodeApp implements EngineApp {
  readonly #http: Server;
  readonly #refusal: Refusal;
  readonly #connections = new WeakMap<TcpSocket, Connection>();
  readonly #sockets = new Set<TcpSocket>();
  readonly #listeners = new Set<TcpServer>();
  readonly #webSocketPaths = new Map<string, WebSocketPath>();
  readonly #webSockets = new Set<NodeWebSocket>();
  #idleTimer: NodeJS.Timeout | undefined;
  #secureContext: SecureContext | undefined;
  #filter: (response: Pick<EngineResponse, "close">, change: number) => void = nothing;
  #handle: (response: EngineResponse, request: EngineRequest, isTls: boolean) => void = nothing;

  constructor({ keepAliveSeconds, tls, refusal = errorAnswer }: EngineOptions) {
    this.#refusal = refusal;
    if (tls) this.replaceCertificate(tls);
    this.#http = createServer({
      IncomingMessage: Incoming,
      maxHeaderSize: headBytesMax,
      keepAliveTimeout: keepAliveSeconds * 1000,
      headersTimeout: stalledMs,
      connectionsCheckingInterval: 1000, // ms between two checks of headersTimeout
      requestTimeout: 0, // every piece of a body must arrive within `stalledMs` of the last one
      noDelay: true,
    });
    const request: RequestListener = (message, response) => this.#request(message, response);
    this.#http.on("request", request);
    this.#http.on("checkExpectation", request);
    this.#http.on("upgrade", (message, _, head) => {
      const connection = this.#connections.get(message.socket);
      if (connection) this.#upgrade(connection, message, head);
      else message.socket.destroy();
    });
    this.#http.on("timeout", (socket) => socket.destroy());
    this.#http.on("clientError", (error, socket) => this.#invalid(error, socket));
    // The listeners are not its own, and node:http checks headersTimeout only after this event.
    this.#http.emit("listening");
  }

  filter(call: (response: Pick<EngineResponse, "close">, change: number) => void): void {
    this.#filter = call;
  }

  any(call: (response: EngineResponse, request: EngineRequest, isTls: boolean) => void): void {
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

  listen(host: string, port: number, isTls: boolean): Promise<EngineListener | null> {
    const server = createTcpServer({ allowHalfOpen: !isTls, noDelay: true });
    server.on("connection", (socket) =>
      this.#connected(isTls ? this.#tlsSocketOf(socket) : socket),
    );
    return new Promise((resolve) => {
      server.once("error", () => resolve(null));
      server.listen({ host, port }, () => {
        const address = server.address();
        if (address === null || typeof address === "string") return resolve(null);
        this.#listeners.add(server);
        return resolve({ port: address.port, close: () => void server.close() });
      });
    });
  }

  close(): void {
    clearInterval(this.#idleTimer);
    for (const server of this.#listeners) server.close();
    for (const socket of this.#webSockets) socket.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#http.close();
  }

  #tlsSocketOf(socket: TcpSocket): TLSSocket {
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

  #connected(socket: TcpSocket): void {
    const connection: Connection = {
      socket,
      remoteAddress: socket.remoteAddress ? parseAddress(socket.remoteAddress) : new Uint8Array(0),
      open: undefined,
      waiting: [],
      next: () => this.#next(connection),
      unsentBytes: 0,
    };
    const response = { close: () => socket.destroy() };
    this.#connections.set(socket, connection);
    this.#sockets.add(socket);
    socket.on("error", nothing); // "close" follows
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#filter(response, -1);
    });
    socket.setTimeout(stalledMs, () => socket.destroy());
    this.#filter(response, 1);
    if (!socket.destroyed) this.#readFirst(socket, Buffer.alloc(0));
  }

  /** Passes the connection to node:http, without a PROXY header at its start. */
  #readFirst(socket: TcpSocket, before: Buffer): void {
    socket.once("readable", () => {
      const piece: Buffer | null = socket.read();
      const bytes = piece === null ? before : Buffer.concat([before, piece]);
      const skip = proxyHeaderBytes(bytes);
      if (skip === undefined && piece !== null) {
        this.#readFirst(socket, bytes);
        return;
      }
      if (skip === "invalid") {
        socket.destroy();
        return;
      }
      const rest = bytes.subarray(skip ?? 0);
      if (rest.length > 0) socket.unshift(rest);
      socket.setTimeout(0);
      this.#http.emit("connection", socket);
    });
  }

  #request(message: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(message.socket);
    if (!connection || message.socket.destroyed) return;
    if (message.httpVersion !== "1.1") {
      const { status, headers, body } = this.#refusal(
        505,
        "request_invalid",
        `expected HTTP/1.1, got HTTP/${message.httpVersion}`,
      );
      response.shouldKeepAlive = false;
      response.writeHead(status, headers).end(body);
      return;
    }
    const isFull = connection.waiting.length >= waitingMax;
    if (isFull || connection.unsentBytes > unsentBytesMax) connection.socket.destroy();
    else if (connection.open) connection.waiting.push([message, response]);
    else this.#begin(connection, message, new NodeResponse(connection, message, response));
  }

  /** After a response, the next pipelined request. */
  #next(connection: Connection): void {
    if (connection.open || connection.socket.destroyed) return;
    const [message, response] = connection.waiting.shift() ?? [];
    if (message && response)
      this.#begin(connection, message, new NodeResponse(connection, message, response));
  }

  /** A request that node:http cannot read. The connection ends. */
  #invalid(error: Error & { readonly code?: string }, socket: Duplex): void {
    const connection = socket instanceof TcpSocket ? this.#connections.get(socket) : undefined;
    const isAnswering = connection && (connection.open || connection.unsentBytes > 0);
    if (!socket.writable || isAnswering) {
      socket.destroy();
      return;
    }
    const isLong = error.code === "HPE_HEADER_OVERFLOW";
    const [status, expected] = isLong
      ? [431, `a head of at most ${headBytesMax} bytes`]
      : [400, "a request of HTTP/1.1"];
    const { body = "", headers } = this.#refusal(status, "request_invalid", `expected ${expected}`);
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      ...Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`),
      `Content-Length: ${Buffer.byteLength(body)}`,
      "Connection: close",
    ].join("\r\n");
    socket.end(`${head}\r\n\r\n${String(body)}`, () => socket.destroy());
  }

  #begin(connection: Connection, message: IncomingMessage, answer: NodeResponse): void {
    connection.open = answer;
    connection.socket.setTimeout(0);
    this.#handle(answer, new NodeRequest(message), connection.socket instanceof TLSSocket);
  }

  #upgrade(connection: Connection, message: IncomingMessage, head: Buffer): void {
    const { socket } = connection;
    const request = new NodeRequest(message);
    const path = this.#webSocketPaths.get(request.getUrl()) ?? this.#webSocketPaths.get("*");
    // node:http no longer reads from the socket; a refusal is written by hand and ends it.
    const response = new ServerResponse(message);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once("finish", () => socket.end());
    socket.on("timeout", () => socket.destroy());
    if (!path) {
      this.#begin(connection, message, new NodeResponse(connection, message, response));
      return;
    }
    const answer = new NodeResponse(connection, message, response);
    connection.open = answer;
    const accept = (userData: Socket): void => {
      answer.discard();
      response.detachSocket(socket);
      socket.setTimeout(0);
      this.#accept(path, message, head, userData);
    };
    path.route.upgrade(answer, request, accept, socket instanceof TLSSocket);
  }

  /** If the handshake is invalid, ws answers it and ends the connection. */
  #accept(
    { route, server }: WebSocketPath,
    message: IncomingMessage,
    head: Buffer,
    userData: Socket,
  ): void {
    const { socket: tcp } = message;
    server.handleUpgrade(message, tcp, head, (socket) => {
      const peer = new NodeWebSocket({ socket, tcp }, userData, route, () => {
        this.#webSockets.delete(peer);
      });
      this.#webSockets.add(peer);
      this.#idleTimer ??= setInterval(() => {
        for (const each of this.#webSockets) each.checkIdle();
      }, 1000).unref();
      route.open(peer);
    });
  }
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
