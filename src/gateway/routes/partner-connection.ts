// One kept-alive connection to a partner, one request under way on it.
//
// Used by partner-endpoint.ts. Makes the connection when the first request comes and again after it was
// lost; follows no redirect, sends nothing twice, reads at most 64 kB of an answer. Time-outs are the
// port's business: it calls `cut`. The moment of "sent" is when the kernel took the last byte of the
// request: undici writes head and body in one go, and the socket's own buffer is empty then unless
// the kernel's was full; in that case an empty write tells when it is.

import { Socket } from "node:net";
import { buildConnector, Client, type Dispatcher } from "undici";
import { messageOf } from "../../core/errors.ts";
import type { HttpAnswer } from "./dialect.ts";

const answerBytesMax = 64 * 1024;
/** Partners close idle connections after 5 to 60 s; undici sees that before it writes. */
const keepAliveMs = 55_000;

interface HttpCall {
  readonly method: "POST" | "GET";
  readonly path: string;
  /** Names and values in turn; not changed. */
  readonly headers: string[];
  readonly body: Uint8Array | null;
}

export interface LaneFailure {
  /** Stable word. */
  readonly reason: string;
  /** May hold secrets. */
  readonly text: string;
  /** No connection could be made. */
  readonly isUnreachable: boolean;
}

/** Hears of one request: `sent` at most once, then `answered` or `failed` exactly once. */
interface LaneListener {
  sent(): void;
  answered(answer: HttpAnswer, retryAfter: string | null): void;
  failed(failure: LaneFailure): void;
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : "";
  return typeof code === "string" ? code : "";
}

/** Of a connection that was never made. */
function connectReason(code: string): string {
  if (code === "ECONNREFUSED") return "connection_refused";
  if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT") return "connect_timeout";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "name_unknown";
  if (/TLS|CERT|SSL|EPROTO/.test(code)) return "tls_refused";
  return "connect_failed";
}

/** Of a connection that stood. */
function answerReason({ name }: Error): string {
  const isOfAnswer = name === "HTTPParserError" || name === "HeadersOverflowError";
  return isOfAnswer ? "answer_invalid" : "connection_lost";
}

function headerOf(headers: readonly (Buffer | string)[] | null, name: string): string | null {
  if (!headers) return null;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    if (String(headers[at]).toLowerCase() === name) return String(headers[at + 1]);
  }
  return null;
}

/** One request, as undici calls back. */
class PartnerRequest implements Dispatcher.DispatchHandler {
  readonly #lane: PartnerConnection;
  readonly #listener: LaneListener;
  #abort: ((error?: Error) => void) | undefined;
  #isOver = false;
  #status = 0;
  #retryAfter: string | null = null;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(lane: PartnerConnection, listener: LaneListener) {
    this.#lane = lane;
    this.#listener = listener;
  }

  /** Nothing is told afterwards. False: there is no connection yet that could be cut. */
  cut(): boolean {
    this.#isOver = true;
    this.#abort?.(new Error("cut"));
    return this.#abort !== undefined;
  }

  onConnect(abort: (error?: Error) => void): void {
    this.#abort = abort;
  }

  onBodySent(): void {
    const { socket } = this.#lane;
    if (!socket || socket.writableLength === 0) this.#sent();
    else socket.write("", (error) => (error ? undefined : this.#sent()));
  }

  onHeaders(status: number, headers: Buffer[]): boolean {
    if (status < 200) return true;
    this.#status = status;
    if (status === 429) this.#retryAfter = headerOf(headers, "retry-after");
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes <= answerBytesMax) {
      this.#chunks.push(chunk);
      return true;
    }
    this.#fail("answer_too_large", `expected at most ${answerBytesMax} bytes, got more`);
    this.#abort?.(new Error("too large"));
    return true;
  }

  onComplete(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const [only] = this.#chunks;
    const body = only && this.#chunks.length === 1 ? only : Buffer.concat(this.#chunks);
    this.#listener.answered({ status: this.#status, body }, this.#retryAfter);
  }

  onError(error: Error): void {
    const code = codeOf(error);
    if (this.#abort) this.#fail(answerReason(error), messageOf(error));
    else this.#fail(connectReason(code), `${code} ${messageOf(error)}`.trim(), true);
  }

  #sent(): void {
    if (!this.#isOver) this.#listener.sent();
  }

  #fail(reason: string, text: string, isUnreachable = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#chunks = [];
    this.#listener.failed({ reason, text, isUnreachable });
  }
}

export class PartnerConnection {
  readonly #origin: string;
  readonly #timeoutMs: number;
  #client: Client;
  #socket: Socket | undefined;
  #request: PartnerRequest | undefined;

  constructor(origin: string, timeoutMs: number) {
    this.#origin = origin;
    this.#timeoutMs = timeoutMs;
    this.#client = this.#newClient();
  }

  /** Only while nothing is under way. */
  send(call: HttpCall, listener: LaneListener): void {
    this.#request = new PartnerRequest(this, listener);
    this.#client.dispatch(
      {
        path: call.path,
        method: call.method,
        headers: call.headers,
        body: call.body,
        // The port counts the time of the whole request.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      this.#request,
    );
  }

  /** Of the present connection, also while it is being made. */
  get socket(): Socket | undefined {
    return this.#socket;
  }

  get isConnected(): boolean {
    return this.#socket?.readyState === "open";
  }

  /**
   * Ends what is under way without a word; the next request makes a new connection. False: there was
   * no connection yet.
   */
  cut(): boolean {
    if (this.#request?.cut() !== false) return true;
    const stuck = this.#client;
    this.#client = this.#newClient();
    this.#end(stuck);
    return false;
  }

  close(): void {
    this.#end(this.#client);
  }

  #end(client: Client): void {
    // Still connecting, it would keep the process alive.
    this.#socket?.destroy();
    this.#socket = undefined;
    void client.destroy().catch(() => undefined); // nothing is under way that could be lost
  }

  #newClient(): Client {
    const connector = buildConnector({ timeout: this.#timeoutMs, allowH2: false });
    return new Client(this.#origin, {
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      connect: (options, callback) => {
        const made: unknown = connector(options, callback);
        if (made instanceof Socket) this.#socket = made;
      },
    });
  }
}
