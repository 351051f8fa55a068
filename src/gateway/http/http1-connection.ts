// One HTTP/1.1 connection of the engine "node": requests in, responses out, in order.
//
// node-engine.ts creates one for every accepted socket and calls `checkTime` periodically. Pipelined
// requests are read at once, within limits, and passed to the handler one after the other. A client
// that sends neither a request nor the rest of one, or does not read its response, is cut.

import { TLSSocket } from "node:tls";
import { formatAddress } from "../../core/addresses/addresses.ts";
import { callerOf, peerAddress } from "../../core/addresses/caller.ts";
import { descriptorOf } from "../../core/socket-descriptor.ts";
import type { CallerConnection, FastPathConnections } from "../fast-path/caller-connection.ts";
import { type Refusal, statusLine } from "./answer.ts";
import type { CallerSocket } from "./caller-network.ts";
import { Http1Request, stalledMs } from "./http1-request.ts";
import type { RequestHead, RequestProblem } from "./request-head.ts";
import { RequestReader } from "./request-reader.ts";
import type { HttpHead } from "./types.ts";

/** Unsent responses of one connection; a client that pipelines more requests is cut. */
const unsentBytesMax = 1024 * 1024;
/** Pipelined requests behind an unanswered one; a client that sends more is cut. */
const waitingMax = 64;
/** Bodies of pipelined requests, and bytes behind a WebSocket handshake. */
const waitingBytesMax = 1024 * 1024;
/** A body comes within this time; its pieces within `stalledMs` each. */
const bodyMs = 60_000;
/** After the last response, what a client still sends is discarded for this long. */
const lingerMs = 1000;

/** The engine, as its connections use it. */
export interface ConnectionHost {
  readonly refusal: Refusal;
  readonly keepAliveMs: number;
  /** Monotonic. */
  nowMs(): number;
  /** The header Date, with its line break. */
  dateLine(): string;
  /** null: there is no fast path. */
  readonly fastPath: FastPathConnections | null;
  handle(request: Http1Request): void;
  /** A WebSocket handshake; `rest`: the bytes behind it. */
  upgrade(connection: Http1Connection, request: Http1Request, rest: Buffer): void;
  /** Called once. */
  closed(connection: Http1Connection): void;
}

function nothing(): void {}

export class Http1Connection {
  readonly socket: CallerSocket;
  /** Address of the TCP peer, without an interface; a mapped IPv4 address is written as IPv4. */
  readonly remoteAddress: string;
  readonly caller: string;
  readonly isTls: boolean;
  readonly #host: ConnectionHost;
  readonly #fastPath: CallerConnection | null;
  readonly #reader: RequestReader;
  readonly #heads = new WeakMap<RequestHead, HttpHead>();
  /** The request that is handled, and those behind it. */
  readonly #requests: Http1Request[] = [];
  /** Requests whose response the kernel has not accepted completely. */
  readonly #sending = new Set<Http1Request>();
  /** The request whose body is read. */
  #newest: Http1Request | undefined;
  #waitingBytes = 0;
  #deadlineMs: number;
  /** It has waited for bytes since then; further bytes of a head do not count. */
  #waitingSinceMs: number;
  #isHeadTimed = false;
  /** A body must have come until then; infinite: no part of it was awaited yet. */
  #bodyUntilMs = Number.POSITIVE_INFINITY;
  /** It carries a WebSocket, which has time-outs of its own. */
  #isReleased = false;
  /** The client has closed its side. */
  #isHalfClosed = false;
  /** The last response was sent: everything else is discarded. */
  #isEnding = false;

  constructor(socket: CallerSocket, host: ConnectionHost) {
    this.socket = socket;
    this.#host = host;
    this.isTls = socket instanceof TLSSocket;
    const { remoteAddress = "" } = socket;
    const address = remoteAddress === "" ? null : peerAddress(remoteAddress);
    this.remoteAddress = address ? formatAddress(address) : "";
    this.caller = address ? callerOf(address) : "";
    this.#waitingSinceMs = host.nowMs();
    this.#deadlineMs = this.#waitingSinceMs + stalledMs;
    this.#fastPath = this.isTls
      ? null
      : (host.fastPath?.connection(() => socket.descriptor ?? descriptorOf(socket)) ?? null);
    this.#reader = new RequestReader({
      head: (head, bytes, begin) => this.#head(head, bytes, begin),
      body: (piece, isLast) => this.#body(piece, isLast),
    });
    socket.on("error", nothing); // "close" follows
    socket.on("timeout", () => socket.destroy());
    socket.once("close", () => this.#closed());
  }

  /** Starts to read requests. */
  start(): void {
    this.socket.on("data", this.#received);
    this.socket.on("end", this.#ended);
  }

  /** null: a request is handled or its response is sent, or the connection carries a WebSocket. */
  get idleSinceMs(): number | null {
    const unread = this.#reader.isInBody ? 1 : 0;
    const isUsed = this.#requests.length > unread || this.#sending.size > 0;
    return isUsed || this.#isReleased || this.#isEnding ? null : this.#waitingSinceMs;
  }

  /** Cuts a client that is too late. While a response is sent, the socket's own time-out counts. */
  checkTime(nowMs: number): void {
    const isLate = nowMs >= this.#deadlineMs && this.socket.writableLength === 0;
    if (isLate) this.socket.destroy();
  }

  /** The connection no longer carries HTTP. */
  release(): void {
    this.#isReleased = true;
    this.#fastPath?.closed();
    this.socket.off("data", this.#received).off("end", this.#ended);
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#requests.length = 0;
    this.#newest = undefined;
  }

  dateLine(): string {
    return this.#host.dateLine();
  }

  answering(request: Http1Request, isLast: boolean): void {
    const isNextAtFront =
      !isLast &&
      this.#requests.length === 1 &&
      this.#requests[0] === request &&
      !this.#reader.isInHead &&
      !this.#reader.isInBody;
    // Not all bytes that the socket has read: the piece that is read now may have more requests.
    this.#fastPath?.answering(isNextAtFront ? this.#reader.readBytes : null);
  }

  answered(request: Http1Request, isLast: boolean): void {
    if (this.#requests[0] === request) this.#requests.shift();
    // An idle connection keeps nothing of its last request in memory.
    if (this.#newest === request && !this.#reader.isInBody) this.#newest = undefined;
    if (isLast) {
      this.#end();
      return;
    }
    const [next] = this.#requests;
    if (next) queueMicrotask(() => this.#begin(next));
    else if (this.#isHalfClosed) this.#end();
    else this.#wait();
  }

  follow(request: Http1Request): void {
    const { socket } = this;
    this.#sending.add(request);
    socket.setTimeout(stalledMs);
    socket.write("", (error) => {
      this.#sending.delete(request);
      if (this.#sending.size === 0 && !this.#isEnding) {
        socket.setTimeout(0);
        this.#wait(); // a client that reads slowly has the whole keep-alive time afterwards
      }
      if (error) request.abort();
      else request.sent();
    });
  }

  readonly #received = (piece: Buffer): void => {
    if (this.#isEnding) return;
    const problem = this.#reader.read(piece);
    if (problem) {
      this.#refuse(problem);
      return;
    }
    if (this.#reader.rest.length > waitingBytesMax) this.socket.destroy();
    const [first] = this.#requests;
    if (first && !first.isBegun) this.#begin(first);
    this.#wait();
  };

  readonly #ended = (): void => {
    this.#isHalfClosed = true;
    if (this.#requests.length === 0) this.#end();
    else if (this.#reader.isInBody) this.socket.destroy();
    // It may have ended its side only, and wait for the responses, or be gone.
    else this.#deadlineMs = this.#host.nowMs() + stalledMs;
  };

  #head(head: RequestHead, bytes: Uint8Array, begin: number): void {
    const isFull = this.#requests.length > waitingMax;
    if (isFull || this.socket.writableLength > unsentBytesMax) {
      this.#reader.stop();
      this.socket.destroy();
      return;
    }
    const request = new Http1Request(this, head, { head: this.#headOf(head, bytes), begin });
    this.#bodyUntilMs = Number.POSITIVE_INFINITY;
    if (head.isWebSocketUpgrade) this.#reader.stop({ keepsRest: true });
    this.#newest = request;
    this.#requests.push(request);
    // A handshake begins when all bytes behind it are known.
    if (this.#requests.length === 1 && !head.isWebSocketUpgrade) this.#begin(request);
  }

  /** One for all repetitions of a head. */
  #headOf(read: RequestHead, bytes: Uint8Array): HttpHead {
    const known = this.#heads.get(read);
    if (known) return known;
    const { method, path, query, header } = read;
    const { remoteAddress, isTls } = this;
    const connection = this.#fastPath;
    const head = {
      method: method.toUpperCase(),
      path,
      query,
      header,
      remoteAddress,
      isTls,
      fastPath: connection ? { connection, head: bytes } : undefined,
    };
    this.#heads.set(read, head);
    return head;
  }

  #body(piece: Uint8Array, isLast: boolean): void {
    const request = this.#newest;
    if (!request) return;
    if (!request.isBegun) {
      this.#waitingBytes += piece.length;
      if (this.#waitingBytes > waitingBytesMax) this.socket.destroy();
    }
    // Requests behind a request to close are not executed.
    if (isLast && !request.isKeptAlive) this.#reader.stop();
    request.receive(piece, isLast);
  }

  #begin(request: Http1Request): void {
    if (this.socket.destroyed || request.isBegun) return;
    this.#waitingBytes -= request.begin();
    this.#fastPath?.beginning(request.beginByte);
    if (request.isWebSocketUpgrade) this.#host.upgrade(this, request, this.#reader.rest);
    else this.#host.handle(request);
  }

  /** Sets the time until which something must happen. */
  #wait(): void {
    if (this.#isEnding || this.#isHalfClosed || this.#isReleased) return;
    const { isInHead, isInBody } = this.#reader;
    // The time of a head runs from its first byte.
    if (isInHead && this.#isHeadTimed) return;
    this.#isHeadTimed = isInHead;
    if (!isInHead && !isInBody && this.#requests.length > 0) {
      this.#deadlineMs = Number.POSITIVE_INFINITY;
      return;
    }
    const nowMs = this.#host.nowMs();
    this.#waitingSinceMs = nowMs;
    this.#deadlineMs = nowMs + (isInHead || isInBody ? stalledMs : this.#host.keepAliveMs);
    if (!isInBody) return;
    if (this.#bodyUntilMs === Number.POSITIVE_INFINITY) this.#bodyUntilMs = nowMs + bodyMs;
    this.#deadlineMs = Math.min(this.#deadlineMs, this.#bodyUntilMs);
  }

  /** Answers a request that cannot be read, unless a response is under way, and ends the connection. */
  #refuse({ status, expected }: RequestProblem): void {
    const { socket } = this;
    if (!socket.writable || this.#requests.length > 0 || socket.writableLength > 0) {
      socket.destroy();
      return;
    }
    const { body = "", headers } = this.#host.refusal(
      status,
      "request_invalid",
      `expected ${expected}`,
    );
    const lines = [
      `HTTP/1.1 ${statusLine(status)}`,
      ...Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`),
      `Content-Length: ${Buffer.byteLength(body)}`,
      "Connection: close",
    ];
    socket.write(`${lines.join("\r\n")}\r\n\r\n${String(body)}`);
    this.#end(true);
  }

  /**
   * Ends this side. `isUnread`: the client may still send; what it sends is discarded for a while,
   * because a reset could destroy the response on its way.
   */
  #end(isUnread = this.#reader.isInBody): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#reader.stop();
    const { socket } = this;
    this.#deadlineMs = this.#host.nowMs() + stalledMs;
    socket.setTimeout(stalledMs);
    socket.end(() => {
      if (isUnread && !this.#isHalfClosed) this.#deadlineMs = this.#host.nowMs() + lingerMs;
      else socket.destroy();
    });
  }

  #closed(): void {
    this.#reader.stop();
    this.#fastPath?.closed();
    for (const request of this.#requests.splice(0)) request.abort();
    for (const request of this.#sending) request.abort();
    this.#host.closed(this);
  }
}
