// HTTP server: answers every request exactly once, even if a handler throws.
//
// The service and the sandbox open it with handlers of plain requests and responses (types.ts). An
// engine provides the connections: sockets of Node.js or uWebSockets.js (engine.ts). An exception inside
// uWebSockets.js, or a second use of an answered response, would end the process.

import {
  type Endpoint,
  formatAddress,
  formatEndpoint,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import {
  checkedAnswer,
  closingAnswer,
  encodedAnswer,
  errorAnswer,
  faultAnswer,
  newReference,
  type Refusal,
  statusLine,
  tooLargeAnswer,
} from "./answer.ts";
import { BodyBuffer } from "./body-buffer.ts";
import { type CallerListener, kernelCallers } from "./caller-network.ts";
import type { Engine, EngineResponse } from "./engine.ts";
import { openEngine } from "./open-engine.ts";
import type { HttpHead, HttpRequest, HttpResponse, HttpServerOptions } from "./types.ts";
import { handshakeAnswer } from "./web-socket-handshake.ts";
import { WebSocketPeers } from "./web-socket-peers.ts";

const connectionsMaxDefault = 10_000;
const connectionsWarningMs = 60_000;
const keepAliveSecondsDefault = 90;
const defaultEngine = "node";
/**
 * A body that exceeds the limit by at most this is read and discarded: a client that still sends
 * when the connection closes may never see the response.
 */
const discardBytesMax = 1024 * 1024;
/** While the server closes, open connections get a 503 for this long instead of a reset. */
const refuseMs = 1000;
const drainPollMs = 20;
/**
 * Tolerance above messageBytesMax: a message within it gets a close frame with 1009, a larger one
 * is cut.
 */
const messageSlackBytes = 64 * 1024;

/** One request, from its first byte to the last byte of its response. */
interface PendingRequest {
  readonly response: EngineResponse;
  readonly head: HttpHead;
  /** Answered completely, or aborted: the response must not be used any more. */
  over: boolean;
  /** A response was started; a second one is impossible. */
  answered: boolean;
}

export class HttpServer {
  readonly #engine: Engine;
  readonly #options: HttpServerOptions;
  readonly #refusal: Refusal;
  readonly #log: Logger | undefined;
  readonly #listeners: CallerListener[] = [];
  readonly #addresses: string[] = [];
  readonly #tlsAddresses: string[] = [];
  #stopFollowing: (() => void) | undefined;
  /** A number: what a set of requests leaves behind would keep each of them until the next full collection. */
  #underWay = 0;
  readonly #peers: WebSocketPeers;
  readonly #webSockets = new Map<string, number>();
  #connections = 0;
  #connectionsOverLimit = 0;
  #state: "open" | "draining" | "closed" = "open";

  private constructor(engine: Engine, options: HttpServerOptions, log: Logger | undefined) {
    this.#engine = engine;
    this.#options = options;
    this.#refusal = refusalOf(options);
    this.#log = log;
    this.#peers = new WebSocketPeers(options.clock ?? systemClock, (thrown) =>
      this.#fault("a WebSocket", thrown),
    );
    this.#route();
  }

  /** Throws ShredwayError "http_open" or "address_invalid" and then leaves nothing open. */
  static async open(options: HttpServerOptions, log?: Logger): Promise<HttpServer> {
    const { listen, tls, network = kernelCallers } = options;
    const endpoints = [
      ...listen.map((text) => ({ text, isTls: false })),
      ...(tls?.listen ?? []).map((text) => ({ text, isTls: true })),
    ].map(({ text, isTls }) => ({ isTls, ...parseEndpoint(text, { allowPortZero: true }) }));
    const engine = await openEngine(options.engine ?? defaultEngine, {
      keepAliveSeconds: options.keepAliveSeconds ?? keepAliveSecondsDefault,
      tls: tls?.certificate.material,
      fastPath: options.fastPath,
      refusal: refusalOf(options),
      network,
    });
    const server = new HttpServer(engine, options, log);
    server.#stopFollowing = tls?.certificate.onChange((material) =>
      engine.app.replaceCertificate(material),
    );
    try {
      for (const endpoint of endpoints) {
        const { bytes, port } = endpoint;
        const obstacle = await network.listenProblem(formatAddress(bytes), port);
        if (obstacle === null && (await server.#listen(endpoint))) continue;
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

  /** In the order of `listen`, with the bound ports: "127.0.0.1:8080", "[::1]:8080". */
  get addresses(): readonly string[] {
    return this.#addresses;
  }

  /** The same for `tls.listen`. */
  get tlsAddresses(): readonly string[] {
    return this.#tlsAddresses;
  }

  /** HTTP and WebSocket together, including closed WebSockets whose TCP connection still exists. */
  get connections(): number {
    return this.#connections;
  }

  /** Connections closed since the start because too many were open. */
  get connectionsOverLimit(): number {
    return this.#connectionsOverLimit;
  }

  /** Open WebSockets by path. */
  get webSockets(): ReadonlyMap<string, number> {
    return this.#webSockets;
  }

  /** WebSockets closed since the start because the peer sent too much, by path. */
  get webSocketsOverLimit(): ReadonlyMap<string, number> {
    return this.#peers.overLimit;
  }

  /**
   * Stops listening, closes WebSockets with 1001 and answers new requests on open connections with
   * 503. Closes when all requests are answered, or after `graceMs`.
   */
  async drain(graceMs: number, clock: Clock): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "draining";
    this.#stopListening();
    this.#peers.closeAll(1001, "the server is going away");
    const beganNs = clock.monotonicNs();
    const passedMs = (): number => Number((clock.monotonicNs() - beganNs) / 1_000_000n);
    const isOver = (): boolean => this.#connections === 0 || passedMs() >= refuseMs;
    while (passedMs() < graceMs && (this.#underWay > 0 || !isOver())) {
      await clock.sleep(drainPollMs);
      if (this.#state !== "draining") return;
    }
    this.close();
  }

  /** Closes every connection immediately; later responses of handlers are discarded. Idempotent. */
  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#stopListening();
    this.#stopFollowing?.();
    this.#engine.app.close();
  }

  async #listen({ bytes, port, isTls }: Endpoint & { readonly isTls: boolean }): Promise<boolean> {
    const listener = await this.#engine.app.listen(formatAddress(bytes), port, isTls);
    if (listener === null) return false;
    this.#listeners.push(listener);
    const addresses = isTls ? this.#tlsAddresses : this.#addresses;
    addresses.push(formatEndpoint({ bytes, port: listener.port }));
    return true;
  }

  #stopListening(): void {
    for (const listener of this.#listeners.splice(0)) listener.close();
  }

  #route(): void {
    const { clock = systemClock, connectionsMax = connectionsMaxDefault } = this.#options;
    const log = this.#log;
    const warning = log && new RareWarning({ clock, log }, connectionsWarningMs);
    const onConnection = (response: Pick<EngineResponse, "close">, change: number): void => {
      this.#connections += change;
      if (change < 0 || this.#connections <= connectionsMax) return;
      response.close();
      this.#connectionsOverLimit++;
      warning?.give(
        () =>
          `all ${connectionsMax} HTTP connections are in use: each new one closes another, or is closed`,
      );
    };
    this.#engine.app.filter(onConnection);
    for (const path of Object.keys(this.#options.webSockets ?? {})) this.#routeWebSocket(path);
    this.#engine.app.any((response, head) => this.#begin(response, head));
  }

  #begin(response: EngineResponse, head: HttpHead): void {
    const pending = this.#pendingOf(response, head);
    const ambiguity = ambiguityOf(pending.head);
    const coding = codingOf(pending.head);
    try {
      if (this.#state !== "open" && !this.#mustHandle(head)) {
        this.#refuse(pending, closingAnswer(this.#refusalFor(head)));
      } else if (ambiguity !== null) {
        this.#refuse(pending, this.#refusal(400, "request_invalid", ambiguity, head));
      } else if (coding !== null) {
        this.#refuse(pending, encodedAnswer(coding, this.#refusalFor(head)));
      } else if (/^(GET|HEAD|OPTIONS)$/.test(pending.head.method)) {
        this.#handle(pending, new Uint8Array(0));
      } else {
        this.#readBody(pending);
      }
    } catch (thrown) {
      this.#failed(pending, thrown);
    }
  }

  /** While the server drains: a refusal cannot undo what the fast path has sent. */
  #mustHandle({ fastPath }: HttpHead): boolean {
    return this.#state === "draining" && (fastPath?.connection.isTaken ?? false);
  }

  /** Only for requests that are refused: a function for each request would cost too much. */
  #refusalFor(head: HttpHead): Refusal {
    return (status, reason, message) => this.#refusal(status, reason, message, head);
  }

  #pendingOf(response: EngineResponse, head: HttpHead): PendingRequest {
    const pending: PendingRequest = { response, head, over: false, answered: false };
    this.#underWay++;
    response.onAborted(() => this.#end(pending));
    return pending;
  }

  #end(pending: PendingRequest): void {
    if (pending.over) return;
    pending.over = true;
    this.#underWay--;
  }

  #readBody(pending: PendingRequest): void {
    const bytesMax = this.#options.bodyBytesMax(pending.head);
    const announced = pending.head.header("content-length") ?? "0";
    if (!/^\d{1,15}$/.test(announced)) {
      // Two lengths: a proxy in front of this server may have used the other one.
      const message = `expected one Content-Length, got ${quote(announced)}`;
      this.#refuse(pending, this.#refusal(400, "request_invalid", message, pending.head));
      return;
    }
    const announcedBytes = Number(announced);
    if (announcedBytes > bytesMax) {
      // A client that waits for 100 Continue sends its next request instead of the body.
      const isAwaited = pending.head.header("expect") !== undefined;
      const answer = tooLargeAnswer(bytesMax, announcedBytes, this.#refusalFor(pending.head));
      if (isAwaited || announcedBytes - bytesMax > discardBytesMax) this.#refuse(pending, answer);
      else this.#answer(pending, answer);
      return;
    }
    const body = new BodyBuffer(bytesMax);
    pending.response.onData((piece, isLast) => {
      // Chunks still arrive after the response.
      if (pending.answered || pending.over) return;
      try {
        if (!body.add(piece)) {
          this.#refuse(pending, tooLargeAnswer(bytesMax, "more", this.#refusalFor(pending.head)));
        } else if (isLast) this.#handle(pending, body.take());
      } catch (thrown) {
        this.#failed(pending, thrown);
      }
    });
  }

  #handle(pending: PendingRequest, body: Uint8Array): void {
    const returned = this.#options.handle(requestOf(pending.head, body));
    if (!(returned instanceof Promise)) {
      this.#answer(pending, returned);
      return;
    }
    returned.then(
      (answer) => this.#answerOrFail(pending, answer),
      (thrown: unknown) => this.#failed(pending, thrown),
    );
  }

  #answerOrFail(pending: PendingRequest, answer: HttpResponse): void {
    try {
      this.#answer(pending, answer);
    } catch (thrown) {
      this.#failed(pending, thrown);
    }
  }

  #failed(pending: PendingRequest, thrown: unknown): void {
    const { method, path } = pending.head;
    // A long part of a path may be a secret of its caller.
    const reference = this.#fault(`${method} ${path.replaceAll(/[^/]{33,}/g, "…")}`, thrown);
    try {
      this.#answer(pending, faultAnswer(reference));
    } catch (second) {
      // The fault response contains no external data, so this error is uWebSockets.js's own.
      this.#fault("the answer to a fault", second);
    }
  }

  /** Logs a fault under a new reference and returns the reference. */
  #fault(where: string, thrown: unknown): string {
    const reference = newReference();
    const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : messageOf(thrown);
    this.#log?.error(
      { reference, where: where.slice(0, 200), error: text },
      "http: a handler failed",
    );
    return reference;
  }

  /** Answers and closes the connection, without reading the rest of the request. */
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
   * Uses tryEnd instead of end: bytes that the kernel does not accept stay here. The request counts
   * as under way until its last byte, and a caller that does not read cannot accumulate responses.
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
      const [isSent, isDoneNow] = response.tryEnd(bytes.subarray(offset), bytesCount);
      if (isDoneNow) this.#end(pending);
      return isSent;
    });
  }

  #writeHead({ response }: PendingRequest, answer: HttpResponse): void {
    response.writeStatus(statusLine(answer.status));
    response.writeHeader("Keep-Alive", `timeout=${this.#engine.keepAliveSeconds}`);
    const headers = answer.headers ?? {};
    for (const name of Object.keys(headers)) response.writeHeader(name, headers[name] ?? "");
  }

  #routeWebSocket(path: string): void {
    const route = this.#options.webSockets?.[path];
    if (!route) return;
    this.#countWebSocket(path, 0);
    this.#engine.app.ws(path, {
      maxPayloadLength: route.messageBytesMax + messageSlackBytes,
      maxBackpressure: route.backpressureBytesMax,
      // uWebSockets.js ends the process on any other value.
      idleTimeout: Math.min(Math.max(Math.round(route.idleSeconds), 8), 960),
      sendPingsAutomatically: true,
      compression: 0,
      upgrade: (response, head, accept) => {
        const pending = this.#pendingOf(response, head);
        try {
          if (this.#state !== "open") {
            this.#refuse(pending, closingAnswer(this.#refusalFor(head)));
            return;
          }
          const refusal =
            route.accept?.(pending.head) ?? handshakeAnswer(head, this.#refusalFor(head));
          if (refusal) {
            this.#answer(pending, refusal);
            return;
          }
          this.#end(pending);
          accept(this.#peers.newSocket(path, route, pending.head));
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
      drain: (ws) => this.#peers.drained(ws),
      close: (ws) => {
        this.#countWebSocket(path, -1);
        this.#peers.closed(ws);
      },
      gone: (socket) => this.#peers.gone(socket),
    });
  }

  #countWebSocket(path: string, change: number): void {
    this.#webSockets.set(path, (this.#webSockets.get(path) ?? 0) + change);
  }
}

/** A literal: copying the head by a spread creates another hidden class for every request. */
function requestOf(head: HttpHead, body: Uint8Array): HttpRequest {
  const { method, path, query, header, remoteAddress, isTls, fastPath } = head;
  return { method, path, query, header, remoteAddress, isTls, fastPath, body };
}

function refusalOf(options: Pick<HttpServerOptions, "refusal">): Refusal {
  return (status, reason, message, head) =>
    options.refusal?.(status, reason, message, head) ?? errorAnswer(status, reason, message);
}

/** A head that a proxy in front of this server may understand in another way; null: none. */
function ambiguityOf({ header }: HttpHead): string | null {
  const host = header("host");
  if (host?.includes(",")) return `expected one Host, got ${quote(host)}`;
  const coding = header("transfer-encoding");
  if (coding === undefined || /^\s*chunked\s*$/i.test(coding)) return null;
  return `expected no Transfer-Encoding but chunked, got ${quote(coding)}`;
}

/** The coding of a body that is compressed or otherwise encoded; null: none. */
function codingOf({ header }: HttpHead): string | null {
  const coding = header("content-encoding");
  return coding === undefined || /^\s*(identity)?\s*$/i.test(coding) ? null : coding;
}
