// One keep-alive connection to a partner with at most one request at a time.
//
// Used by partner-endpoint.ts. It connects for the first request and after a loss. It follows no
// redirects, and reads at most 64 kB of a response. PartnerEndpoint handles time-outs, calls `cut`, and
// repeats a request that met a partner's close of an idle connection. A general HTTP client costs several
// times as much for a request and reports later that it was sent.
//
// An idle connection can be lent to the fast path, which writes one request to it. The endpoint then adopts
// that request and reads the response, even if it came before.
//
// A request is written at once, head and body together. It counts as sent when the kernel accepted its
// last byte; if the kernel's buffer was full, the callback of an empty write reports it.

import type { Clock } from "../../core/clock.ts";
import { codeOf, messageOf } from "../../core/errors.ts";
import { descriptorOf } from "../../core/socket-descriptor.ts";
import type { RouteLoans } from "../fast-path/route-loans.ts";
import type { HttpAnswer } from "./dialect.ts";
import type { PartnerNetwork, PartnerSocket } from "./partner-network.ts";
import { type Response, type ResponseProblem, ResponseReader } from "./response-reader.ts";

/** Partners close idle connections after 5 to 60 s. */
const keepAliveMs = 55_000;
/** A connection is not used in the last second before the partner closes it. */
const keepAliveReserveMs = 1000;

export interface HttpCall {
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
  /**
   * A connection that had served other requests ended without a byte of response: the partner has probably
   * closed it as idle, and not read the request (RFC 9110, 9.2.2).
   */
  readonly isStale: boolean;
}

/** Callbacks of one request: `sent` at most once, then `answered` or `failed` exactly once. */
export interface RequestListener {
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

/** Request line and headers, without Content-Length and the empty line. */
export function requestHead(
  { host }: URL,
  { method, path, headers }: Pick<HttpCall, "method" | "path" | "headers">,
): string {
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return head;
}

/** One request until its response. */
interface Running {
  readonly listener: RequestListener;
  readonly reader: ResponseReader;
  /** Its connection has served another request before. */
  readonly isReuse: boolean;
}

/** A connection that the fast path may use, or has used. */
interface Loan {
  readonly loans: RouteLoans;
  readonly number: number;
  /** It was not reclaimed. */
  isOut: boolean;
  /** Bytes that arrived before the request was adopted. */
  readonly early: Buffer[];
  /** The connection ended before that. */
  end: Error | null;
}

export class PartnerConnection {
  readonly #origin: URL;
  readonly #clock: Pick<Clock, "monotonicNs">;
  readonly #network: Pick<PartnerNetwork, "connect">;
  #socket: PartnerSocket | undefined;
  #isConnected = false;
  /** The present connection, or the one that was lost last, has served a request. */
  #isUsed = false;
  /** TLS session for the next connection. */
  #session: Buffer | undefined;
  #running: Running | undefined;
  #loan: Loan | null = null;
  #idleSinceMs = 0;
  #idleMs = keepAliveMs;
  /** The head of the newest request, up to its length: requests of an endpoint repeat it. */
  #head = "";
  #headOf: Pick<HttpCall, "method" | "path" | "headers"> | undefined;

  constructor(
    origin: string,
    {
      clock,
      network,
    }: {
      readonly clock: Pick<Clock, "monotonicNs">;
      readonly network: Pick<PartnerNetwork, "connect">;
    },
  ) {
    this.#origin = new URL(origin);
    this.#clock = clock;
    this.#network = network;
  }

  /** Sends a request; callers must wait until the previous one has ended. */
  send(call: HttpCall, listener: RequestListener): void {
    const isStale = this.#nowMs - this.#idleSinceMs > this.#idleMs;
    if (this.#isConnected && isStale) this.#drop();
    const isReuse = this.#isConnected && this.#isUsed;
    const running: Running = { listener, reader: new ResponseReader(), isReuse };
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

  /** Number of the loan; null: it was never lent. */
  get loanNumber(): number | null {
    return this.#loan?.number ?? null;
  }

  get isLent(): boolean {
    return this.#loan?.isOut ?? false;
  }

  /** Lends the idle connection while it is fresh. `nowNs`: monotonic. */
  lend(loans: RouteLoans, nowNs: bigint): void {
    const freshMs = this.#idleMs - (this.#nowMs - this.#idleSinceMs);
    const socket = this.#socket;
    const descriptor = socket && (socket.descriptor ?? descriptorOf(socket));
    if (!this.#isConnected || freshMs <= 0 || descriptor === undefined) return;
    const untilNs = nowNs + BigInt(Math.floor(freshMs * 1e6));
    if (this.#loan) {
      this.#loan.isOut = true;
      loans.lendAgain(this.#loan.number, untilNs);
      return;
    }
    const number = loans.lend(descriptor, untilNs);
    if (number !== null) this.#loan = { loans, number, isOut: true, early: [], end: null };
  }

  /** Ends the loan; false: the fast path has used the connection, and its request must be adopted. */
  reclaim(): boolean {
    const loan = this.#loan;
    if (!loan?.isOut) return true;
    if (!loan.loans.reclaim(loan.number)) return false;
    loan.isOut = false;
    return true;
  }

  /** Takes over the request that the fast path wrote. Calls the listener after this call. */
  adopt(listener: RequestListener): void {
    const loan = this.#loan;
    const running: Running = { listener, reader: new ResponseReader(), isReuse: this.#isUsed };
    this.#running = running;
    if (!loan) return;
    loan.isOut = false;
    const early = loan.early.splice(0);
    if (early.length === 0 && loan.end === null) return;
    queueMicrotask(() => {
      for (const piece of early) if (this.#running === running) this.#read(running, piece);
      if (loan.end === null) return;
      this.#releaseLoan();
      if (this.#running === running) this.#ended(running, loan.end, true);
    });
  }

  /** Socket of the present connection, even while it is connecting. */
  get socket(): PartnerSocket | undefined {
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

  get #nowMs(): number {
    return Number(this.#clock.monotonicNs()) / 1e6;
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isConnected = false;
    this.#releaseLoan();
    socket?.destroy();
  }

  #releaseLoan(): void {
    const loan = this.#loan;
    this.#loan = null;
    loan?.loans.release(loan.number);
  }

  #connect(): PartnerSocket {
    const isTls = this.#origin.protocol === "https:";
    const socket = this.#network.connect(this.#origin, this.#session);
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
    this.#isUsed = false;
    return socket;
  }

  #bytesOf({ method, path, headers, body }: HttpCall): Buffer {
    const known = this.#headOf;
    if (known?.method !== method || known.path !== path || known.headers !== headers) {
      this.#headOf = { method, path, headers };
      this.#head = requestHead(this.#origin, {
        method,
        path,
        headers: body === null ? [] : headers,
      });
    }
    if (body === null) return Buffer.from(`${this.#head}\r\n`, "latin1");
    const head = `${this.#head}content-length: ${body.length}\r\n\r\n`;
    const bytes = Buffer.allocUnsafe(head.length + body.length);
    bytes.write(head, 0, "latin1");
    bytes.set(body, head.length);
    return bytes;
  }

  #received(socket: PartnerSocket, piece: Buffer): void {
    if (socket !== this.#socket) return;
    const running = this.#running;
    if (running) this.#read(running, piece);
    else if (!this.reclaim()) this.#loan?.early.push(piece);
    // A partner that answers without a request cannot be used any more.
    else this.#drop();
  }

  #read(running: Running, piece: Buffer): void {
    const read = running.reader.read(piece);
    if (read) this.#completed(running, read);
  }

  #completed({ listener }: Running, read: Response | ResponseProblem): void {
    this.#running = undefined;
    if ("reason" in read) {
      this.#drop();
      const { reason, text } = read;
      listener.failed({ reason, text, isUnreachable: false, isStale: false });
      return;
    }
    this.#isUsed = true;
    const { status, body, retryAfter, isKeptAlive, keepAliveSeconds } = read;
    if (!isKeptAlive) this.#drop();
    this.#idleSinceMs = this.#nowMs;
    const announcedMs = (keepAliveSeconds ?? Number.POSITIVE_INFINITY) * 1000;
    this.#idleMs = Math.min(keepAliveMs, announcedMs - keepAliveReserveMs);
    listener.answered({ status, body }, retryAfter);
  }

  #lost(socket: PartnerSocket, error: Error): void {
    if (socket !== this.#socket) return;
    const wasConnected = this.#isConnected;
    const running = this.#running;
    const loan = this.#loan;
    if (!running && loan && !this.reclaim()) {
      // The number of the loan belongs to this connection until the request is adopted.
      loan.end = error;
      this.#socket = undefined;
      this.#isConnected = false;
      socket.destroy();
      return;
    }
    this.#drop();
    if (running) this.#ended(running, error, wasConnected);
  }

  /** The connection has ended before the response was complete. */
  #ended(running: Running, error: Error, wasConnected: boolean): void {
    this.#running = undefined;
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
      isStale: wasConnected && running.isReuse && running.reader.isEmpty,
    });
  }
}
