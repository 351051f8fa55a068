// HTTP server: the one place that knows uWebSockets.js.
//
// Opened by main and the sandbox with handlers of plain requests and answers (types.ts). Answers
// every request exactly once, whatever a handler does, and never lets an exception reach the web
// server: one that does ends the process, and so does a second use of an answered response.
// What uWebSockets.js decides itself: HTTP/1.0 is refused with 505, a head above 4 kB a line or
// 20 kB with 431, contradicting lengths with 400, a request without Host by closing; a connection
// that is silent for 10 s is closed. Requests that are pipelined behind one that is not answered
// yet close the connection: answers that take time cannot be queued. A PROXY protocol header
// (version 2) is skipped, whoever sends it and before whichever request: any caller behind a proxy
// could send one more, and the library tells the last one only, so no address is taken from it.

import type {
  TemplatedApp,
  HttpRequest as UwsRequest,
  HttpResponse as UwsResponse,
  us_listen_socket,
} from "uWebSockets.js";
import { createServer } from "node:net";
import { getSystemErrorMap } from "node:util";
import {
  type Endpoint,
  formatAddress,
  formatEndpoint,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { supportedNode } from "../../core/node-version.mjs";
import {
  checkedAnswer,
  closingAnswer,
  errorAnswer,
  faultAnswer,
  newReference,
  type Refusal,
  statusLine,
  tooLargeAnswer,
} from "./answer.ts";
import { BodyBuffer } from "./body-buffer.ts";
import type { HttpHead, HttpRequest, HttpResponse, HttpServerOptions } from "./types.ts";
import { type Socket, WebSocketPeers } from "./web-socket-peers.ts";

/**
 * LIBUS_LISTEN_DEFAULT. The exclusive kind would refuse a port for a minute after a server with open
 * connections left it; this one would share a port in silence, so it is tried by other means before.
 */
const sharedPort = 0;
const connectionsMaxDefault = 10_000;
/**
 * A body that is too large by up to this is read to its end and thrown away: a client that is
 * still sending when the connection closes may never see the answer.
 */
const discardBytesMax = 1024 * 1024;
/** Beside messageBytesMax: what is inside gets a close frame with 1009, what is beyond is cut. */
const messageSlackBytes = 64 * 1024;

/** One request from its first byte to the last of its answer. */
interface PendingRequest {
  readonly response: UwsResponse;
  readonly head: HttpHead;
  /** Answered in full, or the caller is gone: the response must not be touched any more. */
  over: boolean;
  /** An answer was begun; a second one is impossible. */
  answered: boolean;
}

type WebServer = Pick<
  typeof import("uWebSockets.js"),
  "App" | "us_listen_socket_close" | "us_socket_local_port"
>;

/** Its binaries are for certain versions of Node and processors; loaded here, so that a missing one is told plainly. */
async function loadWebServer(): Promise<WebServer> {
  try {
    return await import("uWebSockets.js");
  } catch (cause) {
    throw new ShredwayError(
      "http_open",
      `uWebSockets.js could not be loaded: it has no binary for Node ${process.versions.node} on ` +
        `${process.platform}-${process.arch}; expected ${supportedNode()} on Linux with glibc`,
      { cause },
    );
  }
}

export class HttpServer {
  readonly #web: WebServer;
  readonly #app: TemplatedApp;
  readonly #options: HttpServerOptions;
  readonly #refusal: Refusal;
  readonly #log: Logger | undefined;
  readonly #listenSockets: us_listen_socket[] = [];
  readonly #addresses: string[] = [];
  readonly #underWay = new Set<PendingRequest>();
  readonly #peers: WebSocketPeers;
  readonly #webSockets = new Map<string, number>();
  #connections = 0;
  #state: "open" | "draining" | "closed" = "open";
  #whenIdle: (() => void) | undefined;

  private constructor(web: WebServer, options: HttpServerOptions, log: Logger | undefined) {
    this.#web = web;
    this.#app = web.App();
    this.#options = options;
    this.#refusal = (...facts) =>
      options.refusal ? options.refusal(...facts) : errorAnswer(...facts);
    this.#log = log;
    this.#peers = new WebSocketPeers(options.clock ?? systemClock, (thrown) =>
      this.#fault("a WebSocket", thrown),
    );
    this.#route();
  }

  /** Throws ShredwayError "http_open" or "address_invalid"; nothing stays open then. */
  static async open(options: HttpServerOptions, log?: Logger): Promise<HttpServer> {
    const endpoints = options.listen.map((text) => parseEndpoint(text, { allowPortZero: true }));
    const server = new HttpServer(await loadWebServer(), options, log);
    try {
      for (const endpoint of endpoints) {
        const obstacle = await listenError(endpoint);
        if (obstacle === null && server.#listen(endpoint)) continue;
        const address = formatEndpoint(endpoint);
        throw new ShredwayError(
          "http_open",
          `cannot listen on ${address}: ${obstacle ?? "refused by the system"}`,
          { details: { address } },
        );
      }
    } catch (error) {
      server.close();
      throw error;
    }
    return server;
  }

  /** In the order of `listen`, with the real ports: "127.0.0.1:8080", "[::1]:8080". */
  get addresses(): readonly string[] {
    return this.#addresses;
  }

  /** HTTP and WebSocket together. */
  get connections(): number {
    return this.#connections;
  }

  /** Open ones, by path. */
  get webSockets(): ReadonlyMap<string, number> {
    return this.#webSockets;
  }

  /** Closed because their peer sent too much, by path, since the start. */
  get webSocketsOverLimit(): ReadonlyMap<string, number> {
    return this.#peers.overLimit;
  }

  /**
   * Takes no new connections, closes WebSockets with 1001, answers new requests on old connections
   * with 503, and closes when the requests under way are answered or after `graceMs`.
   */
  async drain(graceMs: number, clock: Clock): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "draining";
    this.#stopListening();
    this.#peers.closeAll(1001, "the server is going away");
    if (this.#underWay.size > 0) {
      const late = new AbortController();
      const idle = new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
      await Promise.race([idle, clock.sleep(graceMs, late.signal)]);
      late.abort();
    }
    this.close();
  }

  /** At once: every connection is cut, and what handlers answer later goes nowhere. Idempotent. */
  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#stopListening();
    this.#app.close();
    this.#whenIdle?.();
  }

  #listen(endpoint: Endpoint): boolean {
    let opened = false;
    const host = formatAddress(endpoint.bytes);
    const done = (socket: us_listen_socket | false): void => {
      if (socket === false) return;
      opened = true;
      this.#listenSockets.push(socket);
      this.#addresses.push(
        formatEndpoint({ ...endpoint, port: this.#web.us_socket_local_port(socket) }),
      );
    };
    // The typings know no listen() with host, port and options; the library does.
    const app: { listen(...parameters: unknown[]): unknown } = this.#app;
    app.listen(host, endpoint.port, sharedPort, done);
    return opened;
  }

  #stopListening(): void {
    for (const socket of this.#listenSockets.splice(0)) {
      this.#web.us_listen_socket_close(socket);
    }
  }

  #route(): void {
    const connectionsMax = this.#options.connectionsMax ?? connectionsMaxDefault;
    const onConnection = (response: UwsResponse, change: number): void => {
      this.#connections += change;
      if (change > 0 && this.#connections > connectionsMax) response.close();
    };
    this.#app.filter(onConnection);
    for (const path of Object.keys(this.#options.webSockets ?? {})) this.#routeWebSocket(path);
    this.#app.any("/*", (response, request) => this.#begin(response, request));
  }

  #begin(response: UwsResponse, request: UwsRequest): void {
    const pending = this.#pendingOf(response, request);
    try {
      if (this.#state !== "open") {
        this.#refuse(pending, closingAnswer(this.#refusal));
      } else if (/^(GET|HEAD|OPTIONS)$/.test(pending.head.method)) {
        this.#handle(pending, new Uint8Array(0));
      } else {
        this.#readBody(pending);
      }
    } catch (thrown) {
      this.#failed(pending, thrown);
    }
  }

  #pendingOf(response: UwsResponse, request: UwsRequest): PendingRequest {
    const pending: PendingRequest = {
      response,
      head: headOf(response, request),
      over: false,
      answered: false,
    };
    this.#underWay.add(pending);
    response.onAborted(() => this.#end(pending));
    return pending;
  }

  #end(pending: PendingRequest): void {
    pending.over = true;
    this.#underWay.delete(pending);
    if (this.#underWay.size === 0) this.#whenIdle?.();
  }

  #readBody(pending: PendingRequest): void {
    const bytesMax = this.#options.bodyBytesMax(pending.head);
    const announced = pending.head.header("content-length") ?? "0";
    if (!/^\d{1,15}$/.test(announced)) {
      // Two lengths: a proxy before this server might have gone by the other one.
      this.#refuse(pending, this.#refusal(400, "request_invalid", "expected one Content-Length"));
      return;
    }
    const announcedBytes = Number(announced);
    if (announcedBytes > bytesMax) {
      if (announcedBytes - bytesMax > discardBytesMax) {
        this.#refuse(pending, tooLargeAnswer(bytesMax, this.#refusal));
      } else {
        this.#answer(pending, tooLargeAnswer(bytesMax, this.#refusal));
      }
      return;
    }
    const body = new BodyBuffer(bytesMax);
    pending.response.onData((piece, isLast) => {
      // Pieces still come when the answer is given already.
      if (pending.answered || pending.over) return;
      try {
        if (!body.add(piece)) this.#refuse(pending, tooLargeAnswer(bytesMax, this.#refusal));
        else if (isLast) this.#handle(pending, body.take());
      } catch (thrown) {
        this.#failed(pending, thrown);
      }
    });
  }

  #handle(pending: PendingRequest, body: Uint8Array): void {
    const request: HttpRequest = { ...pending.head, body };
    const returned = this.#options.handle(request);
    if (!(returned instanceof Promise)) {
      this.#answer(pending, returned);
      return;
    }
    returned
      .then((answer) => this.#answer(pending, answer))
      .catch((thrown: unknown) => this.#failed(pending, thrown));
  }

  #failed(pending: PendingRequest, thrown: unknown): void {
    const reference = this.#fault(`${pending.head.method} ${pending.head.path}`, thrown);
    try {
      this.#answer(pending, faultAnswer(reference));
    } catch (second) {
      // Nothing that came from outside is in that answer, so this is the web server's.
      this.#fault("the answer to a fault", second);
    }
  }

  /** Writes a fault to the log under a new number, which it returns. */
  #fault(where: string, thrown: unknown): string {
    const reference = newReference();
    const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : messageOf(thrown);
    this.#log?.error({ reference, where: where.slice(0, 200), error: text }, "a handler failed");
    return reference;
  }

  /** Answers and closes the connection: for callers whose further bytes nobody wants to read. */
  #refuse(pending: PendingRequest, refusal: HttpResponse): void {
    if (pending.answered || pending.over) return;
    pending.answered = true;
    pending.response.cork(() => {
      this.#writeHead(pending, refusal);
      pending.response.end(refusal.body, true);
    });
    this.#end(pending);
  }

  #answer(pending: PendingRequest, returned: HttpResponse): void {
    if (pending.answered || pending.over) return;
    const answer = checkedAnswer(returned);
    pending.answered = true;
    const { response, head } = pending;
    const body = answer.body ?? "";
    const bytesCount = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
    response.cork(() => {
      this.#writeHead(pending, answer);
      if (this.#state !== "open") response.writeHeader("Connection", "close");
      if (head.method === "HEAD" || answer.status === 204 || answer.status === 304) {
        if (head.method === "HEAD") response.writeHeader("Content-Length", String(bytesCount));
        response.endWithoutBody();
        this.#end(pending);
      } else {
        this.#send(pending, body, bytesCount);
      }
    });
  }

  /**
   * By tryEnd and not end: what the kernel does not take stays with us, so the request counts as
   * under way until its last byte, and a caller that does not read cannot pile up answers.
   */
  #send(pending: PendingRequest, body: string | Uint8Array, bytesCount: number): void {
    const { response } = pending;
    const [, isDone] = response.tryEnd(body, bytesCount);
    if (isDone) {
      this.#end(pending);
      return;
    }
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    response.onWritable((offset) => {
      const [isTaken, isDoneNow] = response.tryEnd(bytes.subarray(offset), bytesCount);
      if (isDoneNow) this.#end(pending);
      return isTaken;
    });
  }

  #writeHead({ response }: PendingRequest, answer: HttpResponse): void {
    response.writeStatus(statusLine(answer.status));
    response.writeHeader("Keep-Alive", "timeout=10");
    for (const [name, value] of Object.entries(answer.headers ?? {})) {
      response.writeHeader(name, value);
    }
  }

  #routeWebSocket(path: string): void {
    const route = this.#options.webSockets?.[path];
    if (!route) return;
    this.#countWebSocket(path, 0);
    this.#app.ws<Socket>(path === "*" ? "/*" : path, {
      maxPayloadLength: route.messageBytesMax + messageSlackBytes,
      maxBackpressure: route.backpressureBytesMax,
      // The library ends the process on any other value.
      idleTimeout: Math.min(Math.max(Math.round(route.idleSeconds), 8), 960),
      sendPingsAutomatically: true,
      compression: 0,
      upgrade: (response, request, context) => {
        const pending = this.#pendingOf(response, request);
        try {
          if (this.#state !== "open") {
            this.#refuse(pending, closingAnswer(this.#refusal));
            return;
          }
          const refusal = route.accept?.(pending.head);
          if (refusal) {
            this.#answer(pending, refusal);
            return;
          }
          const key = request.getHeader("sec-websocket-key");
          const protocol = request.getHeader("sec-websocket-protocol");
          this.#end(pending);
          const socket = this.#peers.newSocket(path, route, pending.head);
          response.upgrade(socket, key, protocol, "", context);
        } catch (thrown) {
          this.#failed(pending, thrown);
        }
      },
      open: (ws) => {
        this.#countWebSocket(path, 1);
        this.#peers.opened(ws);
      },
      message: (ws, message, isBinary) => this.#peers.message(ws, message, isBinary),
      ping: (ws, message) => this.#peers.control(ws, message),
      pong: (ws, message) => this.#peers.control(ws, message),
      close: (ws) => {
        // The filter hears of a socket that becomes a WebSocket, not of its end.
        this.#connections -= 1;
        this.#countWebSocket(path, -1);
        this.#peers.closed(ws);
      },
    });
  }

  #countWebSocket(path: string, change: number): void {
    this.#webSockets.set(path, (this.#webSockets.get(path) ?? 0) + change);
  }
}

function headOf(response: UwsResponse, request: UwsRequest): HttpHead {
  // The request is gone when the handler returns, so everything is copied here.
  const headers = new Map<string, string>();
  request.forEach((name, value) => {
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  });
  return {
    method: request.getMethod().toUpperCase(),
    path: request.getUrl(),
    query: request.getQuery() ?? "",
    header: (name) => headers.get(name),
    remoteAddress: addressOf(new Uint8Array(response.getRemoteAddress())),
  };
}

function addressOf(bytes: Uint8Array): string {
  if (bytes.length === 16) return formatAddress(bytes);
  return bytes.length === 4 ? bytes.join(".") : "";
}

/** Why the kernel refuses to listen there, in its words; null: it does not. */
function listenError({ bytes, port }: Endpoint): Promise<string | null> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => {
      resolve(getSystemErrorMap().get(error.errno ?? 0)?.[1] ?? error.message);
    });
    probe.listen({ host: formatAddress(bytes), port, exclusive: true }, () => {
      probe.close(() => resolve(null));
    });
  });
}
