// One keep-alive connection to a partner with at most one request at a time.
//
// Used by partner-endpoint.ts. It connects for the first request and after a loss. It follows no
// redirects, never repeats a request, and reads at most 64 kB of a response. PartnerEndpoint
// handles time-outs and calls `cut`.
//
// A request counts as sent when the kernel accepted its last byte. undici writes head and body
// together, so the socket's own buffer is then empty unless the kernel's was full; in that case the
// callback of an empty write reports it.

import { Socket } from "node:net";
import { buildConnector, Client, type Dispatcher } from "undici";
import { messageOf } from "../../core/errors.ts";
import type { HttpAnswer } from "./dialect.ts";

const answerBytesMax = 64 * 1024;
/** Partners close idle connections after 5 to 60 s; undici detects that before it writes. */
const keepAliveMs = 55_000;

interface HttpCall {
  readonly method: "POST" | "GET";
  readonly path: string;
  /** Alternating names and values; not modified. */
  readonly headers: string[];
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

export function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : "";
  return typeof code === "string" ? code : "";
}

/** The reason for a failed connection attempt. */
export function connectReason(code: string): string {
  if (code === "ECONNREFUSED") return "connection_refused";
  if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT") return "connect_timeout";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "name_unknown";
  if (/TLS|CERT|SSL|EPROTO/.test(code)) return "tls_refused";
  return "connect_failed";
}

/** The reason for a failure after the connection was established. */
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

/** One request; implements undici's handler callbacks. */
class PartnerRequest implements Dispatcher.DispatchHandler {
  readonly #connection: PartnerConnection;
  readonly #listener: RequestListener;
  #abort: ((error?: Error) => void) | undefined;
  #isOver = false;
  #status = 0;
  #retryAfter: string | null = null;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(connection: PartnerConnection, listener: RequestListener) {
    this.#connection = connection;
    this.#listener = listener;
  }

  /** Ends the request without further callbacks. Returns false if there is no connection yet. */
  cut(): boolean {
    this.#isOver = true;
    this.#abort?.(new Error("cut"));
    return this.#abort !== undefined;
  }

  onConnect(abort: (error?: Error) => void): void {
    this.#abort = abort;
  }

  onBodySent(): void {
    const { socket } = this.#connection;
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
    this.#fail(
      "answer_too_large",
      `expected a response of at most ${answerBytesMax} bytes, got more`,
    );
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

  /** Sends a request; callers must wait until the previous one has ended. */
  send(call: HttpCall, listener: RequestListener): void {
    this.#request = new PartnerRequest(this, listener);
    this.#client.dispatch(
      {
        path: call.path,
        method: call.method,
        headers: call.headers,
        body: call.body,
        // PartnerEndpoint limits the time of the whole request.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      this.#request,
    );
  }

  /** Socket of the present connection, even while it is connecting. */
  get socket(): Socket | undefined {
    return this.#socket;
  }

  get isConnected(): boolean {
    return this.#socket?.readyState === "open";
  }

  /**
   * Ends the running request without callbacks; the next request opens a new connection. Returns
   * false if there was no connection yet.
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
    // A connecting socket would keep the process alive.
    this.#socket?.destroy();
    this.#socket = undefined;
    void client.destroy().catch(() => undefined); // no request is running
  }

  #newClient(): Client {
    const connector = buildConnector({ timeout: this.#timeoutMs, allowH2: false });
    return new Client(this.#origin, {
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      connect: (options, callback) => {
        const socket: unknown = connector(options, callback);
        if (socket instanceof Socket) this.#socket = socket;
      },
    });
  }
}
