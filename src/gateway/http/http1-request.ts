// One request of an HTTP/1.1 connection and its response, with the operations of engine.ts.
//
// http1-connection.ts creates it for every head that it reads. Head and body of a response leave in one
// write, which the kernel usually accepts at once.

import type { CallerNetwork, CallerSocket } from "./caller-network.ts";
import type { EngineResponse } from "./engine.ts";
import type { RequestHead } from "./request-head.ts";
import type { HttpHead } from "./types.ts";

/** Time-out of a started head, body or unread response, and of responses to a client that has ended its side. */
export const stalledMs = 10_000;
/** Larger bodies are not copied behind their head. */
const copiedBytesMax = 64 * 1024;

/** The connection of a request. */
interface RequestConnection {
  readonly socket: CallerSocket;
  dateLine(): string;
  /** The response is written next; `isLast`: the connection ends behind it. */
  answering(request: Http1Request, isLast: boolean): void;
  /** The response was written; `isLast`: the connection ends behind it. */
  answered(request: Http1Request, isLast: boolean): void;
  /** The client reads slowly: calls `sent` or `abort` of the request later. */
  follow(request: Http1Request): void;
}

function nothing(): void {}

/** The header Date (RFC 9110, 6.6.1); written once a second. */
export class DateLine {
  readonly #network: Pick<CallerNetwork, "nowMs" | "wallNs">;
  #text = "";
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(network: Pick<CallerNetwork, "nowMs" | "wallNs">) {
    this.#network = network;
  }

  /** With its line break. */
  text(): string {
    const nowMs = this.#network.nowMs();
    if (nowMs >= this.#untilMs) {
      this.#untilMs = nowMs + 1000;
      const date = new Date(Number(this.#network.wallNs() / 1_000_000n));
      this.#text = `Date: ${date.toUTCString()}\r\n`;
    }
    return this.#text;
  }
}

export class Http1Request implements EngineResponse {
  readonly head: HttpHead;
  /** Its place among all bytes of the connection. */
  readonly beginByte: number;
  readonly isKeptAlive: boolean;
  readonly isWebSocketUpgrade: boolean;
  readonly #connection: RequestConnection;
  readonly #head: RequestHead;
  /** Pieces of the body that arrived before the handler was called. */
  #pieces: Uint8Array[] = [];
  #isReceived = false;
  #isBegun = false;
  #isAnswered = false;
  #isOver = false;
  #status = "200 OK";
  #fields = "";
  #isLast: boolean;
  #bodyBytes = 0;
  #data: ((piece: Uint8Array, isLast: boolean) => void) | undefined;
  #aborted: () => void = nothing;
  #writable: ((offset: number) => boolean) | undefined;

  constructor(
    connection: RequestConnection,
    read: RequestHead,
    { head, begin }: { readonly head: HttpHead; readonly begin: number },
  ) {
    this.#connection = connection;
    this.#head = read;
    this.head = head;
    this.beginByte = begin;
    this.isWebSocketUpgrade = read.isWebSocketUpgrade;
    this.isKeptAlive = read.isKeptAlive && !read.isWebSocketUpgrade;
    this.#isLast = !this.isKeptAlive;
  }

  // ---- for the connection -------------------------------------------------------------------

  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** Alternating names in lower case and values. */
  get fields(): readonly string[] {
    return this.#head.fields;
  }

  /** The handler is called now. Returns the size of the body that is waiting here. */
  begin(): number {
    this.#isBegun = true;
    return this.#pieces.reduce((sum, { length }) => sum + length, 0);
  }

  /** A piece of the body, which may change after the call. */
  receive(piece: Uint8Array, isLast: boolean): void {
    this.#isReceived ||= isLast;
    if (this.#data) this.#data(piece, isLast);
    else if (!this.#isBegun && piece.length > 0) this.#pieces.push(new Uint8Array(piece));
  }

  /** The connection has ended. */
  abort(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#aborted();
  }

  /** The kernel has accepted the last byte of the response. */
  sent(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#writable?.(this.#bodyBytes);
  }

  /** The connection became a WebSocket: nothing is sent or reported any more. */
  discard(): void {
    this.#isOver = true;
    this.#isAnswered = true;
  }

  // ---- for the server -----------------------------------------------------------------------

  onAborted(call: () => void): void {
    this.#aborted = call;
  }

  onData(call: (piece: Uint8Array, isLast: boolean) => void): void {
    if (this.#head.expectsContinue && !this.#isReceived) {
      this.#connection.socket.write("HTTP/1.1 100 Continue\r\n\r\n");
    }
    this.#data = call;
    for (const piece of this.#pieces) call(piece, false);
    this.#pieces = [];
    if (this.#isReceived) call(new Uint8Array(0), true);
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
    if (name === "Connection") this.#isLast ||= value === "close";
    else this.#fields += `${name}: ${value}\r\n`;
  }

  end(body: string | Uint8Array = "", closeConnection = false): void {
    this.#isLast ||= closeConnection;
    this.#write(body);
  }

  endWithoutBody(): void {
    this.#write(undefined);
  }

  tryEnd(body: string | Uint8Array): [boolean, boolean] {
    // A second call follows onWritable, when the kernel has accepted everything.
    if (this.#isAnswered) return [true, true];
    return [true, this.#write(body)];
  }

  close(): void {
    this.#connection.socket.destroy();
  }

  /** Returns whether the kernel accepted everything. */
  #write(body: string | Uint8Array | undefined): boolean {
    const { socket } = this.#connection;
    this.#isAnswered = true;
    if (socket.destroyed) return false;
    this.#connection.answering(this, this.#isLast);
    const isText = typeof body === "string";
    const bytes = isText ? Buffer.byteLength(body) : (body?.byteLength ?? 0);
    const length = body === undefined ? "" : `Content-Length: ${bytes}\r\n`;
    const connection = this.#isLast ? "close" : "keep-alive";
    const head = `HTTP/1.1 ${this.#status}\r\n${this.#fields}${this.#connection.dateLine()}${length}Connection: ${connection}\r\n\r\n`;
    this.#bodyBytes = bytes;
    // As many bytes as characters: the text is ASCII.
    if (isText && bytes === body.length) socket.write(head + body, "latin1");
    else if (body === undefined) socket.write(head, "latin1");
    else writeBoth(socket, head, isText ? Buffer.from(body) : body);
    const isAccepted = socket.writableLength === 0;
    if (isAccepted) this.#isOver = true;
    else this.#connection.follow(this);
    this.#fields = "";
    this.#connection.answered(this, this.#isLast);
    return isAccepted;
  }
}

function writeBoth(socket: CallerSocket, head: string, body: Uint8Array): void {
  if (body.byteLength <= copiedBytesMax) {
    socket.write(Buffer.concat([Buffer.from(head, "latin1"), body]));
    return;
  }
  socket.cork();
  socket.write(head, "latin1");
  socket.write(body);
  socket.uncork();
}
