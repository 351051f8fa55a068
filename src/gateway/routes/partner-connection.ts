// One keep-alive connection to a partner with at most one request at a time.
//
// Used by partner-endpoint.ts. It connects for the first request and after a loss. It follows no
// redirects, never repeats a request, and reads at most 64 kB of a response. PartnerEndpoint
// handles time-outs and calls `cut`. A general HTTP client costs several times as much for a request
// and reports later that it was sent.
//
// A request is written at once, head and body together. It counts as sent when the kernel accepted its
// last byte; if the kernel's buffer was full, the callback of an empty write reports it.

import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { codeOf, messageOf } from "../../core/errors.ts";
import type { HttpAnswer } from "./dialect.ts";
import { type Response, type ResponseProblem, ResponseReader } from "./response-reader.ts";

/** Partners close idle connections after 5 to 60 s. */
const keepAliveMs = 55_000;
/** A connection is not used in the last second before the partner closes it. */
const keepAliveReserveMs = 1000;

interface HttpCall {
  readonly method: "POST" | "GET";
  readonly path: string;
  /** Alternating names and values; not modified. */
  readonly headers: readonly string[];
  readonly body: Uint8Array | null;
}

export interface RequestFailure {
  /** Stable identifier. */
  readonly reason: string;
  /** May contain secrets. */
  readonly text: string;
  /** The connection attempt failed. */
  readonly isUnreachable: boolean;
}

/** Callbacks of one request: `sent` at most once, then `answered` or `failed` exactly once. */
interface RequestListener {
  sent(): void;
  answered(answer: HttpAnswer, retryAfter: string | null): void;
  failed(failure: RequestFailure): void;
}

/** The reason for a failed connection attempt. */
export function connectReason(code: string): string {
  if (code === "ECONNREFUSED") return "connection_refused";
  if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT") return "connect_timeout";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "name_unknown";
  if (/TLS|CERT|SSL|EPROTO/.test(code)) return "tls_refused";
  return "connect_failed";
}

/** One request until its response. */
interface Running {
  readonly listener: RequestListener;
  readonly reader: ResponseReader;
}

export class PartnerConnection {
  readonly #origin: URL;
  #socket: Socket | undefined;
  #isConnected = false;
  /** TLS session for the next connection. */
  #session: Buffer | undefined;
  #running: Running | undefined;
  #idleSinceMs = 0;
  #idleMs = keepAliveMs;
  /** The head of the newest request, up to its length: requests of an endpoint repeat it. */
  #head = "";
  #headOf: Pick<HttpCall, "method" | "path" | "headers"> | undefined;

  constructor(origin: string) {
    this.#origin = new URL(origin);
  }

  /** Sends a request; callers must wait until the previous one has ended. */
  send(call: HttpCall, listener: RequestListener): void {
    const isStale = performance.now() - this.#idleSinceMs > this.#idleMs;
    if (this.#isConnected && isStale) this.#drop();
    const running: Running = { listener, reader: new ResponseReader() };
    this.#running = running;
    const socket = this.#socket ?? this.#connect();
    socket.write(this.#bytesOf(call));
    if (this.#isConnected && socket.writableLength === 0) {
      listener.sent();
      return;
    }
    socket.write("", (error) => {
      if (!error && this.#running === running) listener.sent();
    });
  }

  /** Socket of the present connection, even while it is connecting. */
  get socket(): Socket | undefined {
    return this.#socket;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /**
   * Ends the running request without callbacks; the next request opens a new connection. Returns
   * false if there was no connection yet.
   */
  cut(): boolean {
    const wasConnected = this.#isConnected;
    this.#running = undefined;
    this.#drop();
    return wasConnected;
  }

  close(): void {
    this.#running = undefined;
    this.#drop();
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isConnected = false;
    socket?.destroy();
  }

  #connect(): Socket {
    const { hostname, port, protocol } = this.#origin;
    const host = hostname.replace(/^\[|\]$/g, "");
    const isTls = protocol === "https:";
    const socket = isTls
      ? connectTls({
          host,
          port: Number(port || 443),
          ...(isIP(host) === 0 && { servername: host }),
          ...(this.#session && { session: this.#session }),
          ALPNProtocols: ["http/1.1"],
        })
      : connectTcp({ host, port: Number(port || 80) });
    socket.setNoDelay(true).setKeepAlive(true);
    socket.once(isTls ? "secureConnect" : "connect", () => {
      if (this.#socket === socket) this.#isConnected = true;
    });
    socket.on("session", (session: Buffer) => {
      this.#session = session;
    });
    socket.on("data", (piece: Buffer) => this.#received(socket, piece));
    socket.once("end", () => this.#lost(socket, new Error("the partner closed the connection")));
    socket.once("error", (error) => this.#lost(socket, error));
    socket.once("close", () => this.#lost(socket, new Error("the connection was closed")));
    this.#socket = socket;
    return socket;
  }

  #bytesOf({ method, path, headers, body }: HttpCall): Buffer {
    const known = this.#headOf;
    if (known?.method !== method || known.path !== path || known.headers !== headers) {
      this.#headOf = { method, path, headers };
      const fields = body === null ? [] : headers;
      this.#head = `${method} ${path} HTTP/1.1\r\nhost: ${this.#origin.host}\r\nconnection: keep-alive\r\n`;
      for (let i = 0; i < fields.length; i += 2) this.#head += `${fields[i]}: ${fields[i + 1]}\r\n`;
    }
    if (body === null) return Buffer.from(`${this.#head}\r\n`, "latin1");
    const head = `${this.#head}content-length: ${body.length}\r\n\r\n`;
    const bytes = Buffer.allocUnsafe(head.length + body.length);
    bytes.write(head, 0, "latin1");
    bytes.set(body, head.length);
    return bytes;
  }

  #received(socket: Socket, piece: Buffer): void {
    if (socket !== this.#socket) return;
    const running = this.#running;
    // A partner that answers without a request cannot be used any more.
    if (!running) {
      this.#drop();
      return;
    }
    const read = running.reader.read(piece);
    if (read) this.#completed(running, read);
  }

  #completed({ listener }: Running, read: Response | ResponseProblem): void {
    this.#running = undefined;
    if ("reason" in read) {
      this.#drop();
      listener.failed({ ...read, isUnreachable: false });
      return;
    }
    const { status, body, retryAfter, isKeptAlive, keepAliveSeconds } = read;
    if (!isKeptAlive) this.#drop();
    this.#idleSinceMs = performance.now();
    const announcedMs = (keepAliveSeconds ?? Number.POSITIVE_INFINITY) * 1000;
    this.#idleMs = Math.min(keepAliveMs, announcedMs - keepAliveReserveMs);
    listener.answered({ status, body }, retryAfter);
  }

  #lost(socket: Socket, error: Error): void {
    if (socket !== this.#socket) return;
    const wasConnected = this.#isConnected;
    const running = this.#running;
    this.#running = undefined;
    this.#drop();
    if (!running) return;
    const response = wasConnected ? running.reader.end() : null;
    if (response) {
      running.listener.answered(
        { status: response.status, body: response.body },
        response.retryAfter,
      );
      return;
    }
    const code = codeOf(error);
    running.listener.failed({
      reason: wasConnected ? "connection_lost" : connectReason(code),
      text: wasConnected ? messageOf(error) : `${code} ${messageOf(error)}`.trim(),
      isUnreachable: !wasConnected,
    });
  }
}
