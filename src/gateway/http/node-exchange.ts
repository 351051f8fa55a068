// One HTTP request and its response on node:http, with the operations of engine.ts.
//
// node-engine.ts creates both for every request.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket as TcpSocket } from "node:net";
import type { EngineRequest, EngineResponse } from "./engine.ts";

/** Time-out of a started head, body or unread response. */
export const stalledMs = 10_000;

/** State of one connection. */
export interface Connection {
  readonly socket: TcpSocket;
  /** 16 bytes. */
  readonly remoteAddress: Uint8Array;
  /** The response that is not ended yet. */
  open: NodeResponse | undefined;
  /** Pipelined requests behind it, in order; none of them is passed to the handler yet. */
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[];
  /** Passes the first of them to the handler. */
  readonly next: () => void;
  unsentBytes: number;
}

function nothing(): void {}

export class NodeRequest implements EngineRequest {
  readonly #message: IncomingMessage;
  readonly #queryAt: number;

  constructor(message: IncomingMessage) {
    this.#message = message;
    this.#queryAt = (message.url ?? "").indexOf("?");
  }

  forEach(call: (name: string, value: string) => void): void {
    const { rawHeaders } = this.#message;
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      call((rawHeaders[i] ?? "").toLowerCase(), rawHeaders[i + 1] ?? "");
    }
  }

  getMethod(): string {
    return this.#message.method ?? "";
  }

  getUrl(): string {
    const { url = "" } = this.#message;
    const path = this.#queryAt < 0 ? url : url.slice(0, this.#queryAt);
    // The absolute form, as for proxies: RFC 9112, 3.2.2.
    return path.startsWith("/") ? path : path.replace(/^https?:\/\/[^/]*/i, "") || "/";
  }

  getQuery(): string {
    return this.#queryAt < 0 ? "" : (this.#message.url ?? "").slice(this.#queryAt + 1);
  }

  getHeader(lowerCaseName: string): string {
    const value = this.#message.headers[lowerCaseName];
    return Array.isArray(value) ? value.join(", ") : (value ?? "");
  }
}

export class NodeResponse implements EngineResponse {
  readonly #connection: Connection;
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #headers: string[] = [];
  #status = "200 OK";
  #aborted: () => void = nothing;
  #writable: ((offset: number) => boolean) | undefined;
  /** Bytes of the body, once it was passed to node:http. */
  #bodyBytes: number | undefined;
  #isOver = false;

  constructor(connection: Connection, message: IncomingMessage, response: ServerResponse) {
    this.#connection = connection;
    this.#message = message;
    this.#response = response;
    response.once("close", () => this.#closed());
  }

  getRemoteAddress(): Uint8Array {
    return this.#connection.remoteAddress;
  }

  onAborted(call: () => void): void {
    this.#aborted = call;
  }

  onData(call: (piece: Uint8Array, isLast: boolean) => void): void {
    const { socket } = this.#connection;
    socket.setTimeout(stalledMs);
    this.#message.on("data", (piece: Uint8Array) => call(piece, false));
    this.#message.once("end", () => {
      socket.setTimeout(0);
      call(new Uint8Array(0), true);
    });
  }

  onWritable(call: (offset: number) => boolean): void {
    this.#writable = call;
  }

  cork(call: () => void): void {
    call();
  }

  writeStatus(status: string): void {
    this.#status = status;
  }

  writeHeader(name: string, value: string): void {
    this.#headers.push(name, value);
  }

  end(body: string | Uint8Array = "", closeConnection = false): void {
    if (closeConnection) this.#response.shouldKeepAlive = false;
    this.#write(body);
  }

  endWithoutBody(): void {
    this.#write(undefined);
  }

  tryEnd(body: string | Uint8Array): [boolean, boolean] {
    // A second call follows onWritable, when the kernel has accepted everything.
    if (this.#bodyBytes !== undefined) return [true, true];
    this.#write(body);
    const { socket } = this.#response;
    return [true, socket !== null && socket.writableLength === 0];
  }

  close(): void {
    this.#connection.socket.destroy();
  }

  /** The connection became a WebSocket: nothing is sent or reported any more. */
  discard(): void {
    this.#isOver = true;
    this.#connection.open = undefined;
  }

  #write(body: string | Uint8Array | undefined): void {
    const connection = this.#connection;
    const response = this.#response;
    const bytes = body === undefined ? 0 : Buffer.byteLength(body);
    const space = this.#status.indexOf(" ");
    if (body !== undefined) this.#headers.push("Content-Length", String(bytes));
    if (!response.shouldKeepAlive) {
      this.#headers.push("Connection", "close");
      connection.waiting.length = 0;
    }
    this.#bodyBytes = bytes;
    connection.open = undefined;
    connection.unsentBytes += bytes;
    connection.socket.setTimeout(stalledMs);
    response.writeHead(
      Number(this.#status.slice(0, space)),
      this.#status.slice(space + 1),
      this.#headers,
    );
    response.end(body);
    if (connection.waiting.length > 0) queueMicrotask(connection.next);
  }

  /** The response is sent completely, or its connection ended. */
  #closed(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const connection = this.#connection;
    if (connection.open === this) connection.open = undefined;
    connection.unsentBytes -= this.#bodyBytes ?? 0;
    if (!this.#response.writableFinished) this.#aborted();
    else this.#writable?.(this.#bodyBytes ?? 0);
  }
}
