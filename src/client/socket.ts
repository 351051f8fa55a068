// Sockets: a WebSocket with awaitable messages, and a stream that reconnects.
//
// Called by status-watch.ts and client.ts. Works with browsers' WebSocket and compatible ones (ws,
// undici, Deno's). An unreported disconnection is detected by silence.

import { ShredwayCallError } from "./error.ts";
import { isObject } from "./fields.ts";
import { pauseMs, sleep } from "./transport.ts";

/** The part of the WebSocket interface that this client uses. */
export interface SocketLike {
  addEventListener(type: string, listener: (event: unknown) => void): void;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

export type SocketConstructor = new (url: string) => SocketLike;

function isConstructor(value: unknown): value is SocketConstructor {
  return typeof value === "function";
}

/** The runtime's WebSocket, or null. */
export function globalWebSocket(): SocketConstructor | null {
  const found: unknown = Reflect.get(globalThis, "WebSocket");
  return isConstructor(found) ? found : null;
}

/** Maximum number of queued messages. A slower reader reconnects. */
const messagesMax = 65_536;
const openMsMax = 10_000;
/** RFC 6455 close code: the service reports that the key is no longer valid. */
const policyCode = 1008;

interface CloseFacts {
  readonly code: number | null;
  readonly reason: string;
}

/** One WebSocket connection. */
class Line {
  closed: CloseFacts | null = null;
  readonly #socket: SocketLike;
  readonly #messages: string[] = [];
  #wake: () => void = () => undefined;

  /** null: the connection was not opened. Rejects with the signal's reason. */
  static open(
    url: string,
    WebSocket: SocketConstructor,
    signal: AbortSignal | undefined,
  ): Promise<Line | null> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      let socket: SocketLike;
      try {
        socket = new WebSocket(url);
      } catch {
        return resolve(null);
      }
      const line = new Line(socket);
      const settle = (work: () => void) => (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        work();
      };
      const fail = settle(() => resolve(null));
      const abort = settle(() => {
        line.close();
        reject(signal?.reason);
      });
      const timer = setTimeout(() => {
        line.close();
        fail();
      }, openMsMax);
      signal?.addEventListener("abort", abort, { once: true });
      socket.addEventListener(
        "open",
        settle(() => resolve(line)),
      );
      line.#wake = fail;
    });
  }

  private constructor(socket: SocketLike) {
    this.#socket = socket;
    socket.addEventListener("message", (event) => {
      const data: unknown = Reflect.get(Object(event), "data");
      if (typeof data !== "string") return;
      if (this.#messages.push(data) > messagesMax) this.close();
      this.#wake();
    });
    socket.addEventListener("close", (event) => this.#end(event));
    // ws throws unhandled errors; "close" follows the error.
    socket.addEventListener("error", () => undefined);
  }

  send(text: string): void {
    if (this.closed === null) this.#socket.send(text);
  }

  /**
   * The next message; null: closed, or silent for `silenceMs`. Rejects with the signal's reason.
   */
  async next(silenceMs: number, signal: AbortSignal | undefined): Promise<string | null> {
    if (this.#messages.length === 0 && this.closed === null) await this.#silence(silenceMs, signal);
    signal?.throwIfAborted();
    return this.#messages.shift() ?? null;
  }

  close(): void {
    if (this.closed === null) {
      this.closed = { code: null, reason: "" };
      this.#socket.close();
    }
    this.#wake();
  }

  #silence(silenceMs: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        this.#wake = () => undefined;
        resolve();
      };
      const timer = setTimeout(done, silenceMs);
      signal?.addEventListener("abort", done, { once: true });
      if (signal?.aborted) done();
      else this.#wake = done;
    });
  }

  #end(event: unknown): void {
    const { code, reason }: Record<string, unknown> = isObject(event) ? event : {};
    const text = typeof reason === "string" ? reason : "";
    this.closed ??= { code: typeof code === "number" ? code : null, reason: text };
    this.#wake();
  }
}

export interface FollowOptions {
  readonly url: string;
  readonly WebSocket: SocketConstructor;
  readonly signal: AbortSignal | undefined;
  /** Sent after every opening and every third of `silenceMs`; the service answers it. */
  readonly hello?: string;
  /** A connection without any message for this time counts as closed. */
  readonly silenceMs: number;
  /** Called after a failed opening. Rejects with the service's error for this caller. */
  readonly diagnose: (signal: AbortSignal | undefined) => Promise<unknown>;
}

/** null: reconnected; messages in between are lost. */
type FeedItem = string | null;

/** Errors that a retry would not change. */
const finalReasons: ReadonlySet<string> = new Set([
  "unauthorized",
  "scope_missing",
  "path_unknown",
]);

async function refusalOf({ diagnose, url, signal }: FollowOptions): Promise<ShredwayCallError> {
  try {
    await diagnose(signal);
  } catch (error) {
    if (error instanceof ShredwayCallError) return error;
    throw error; // aborted: throws the signal's reason
  }
  const { origin, pathname } = new URL(url);
  return new ShredwayCallError(
    `websocket_refused: expected a WebSocket at ${origin}${pathname}, but it was not opened: too many at ` +
      "once, or a proxy that does not forward WebSockets",
    { reason: "websocket_refused" },
  );
}

async function* messagesOf(line: Line, options: FollowOptions): AsyncGenerator<string> {
  const { hello, silenceMs, signal } = options;
  const pingMs = hello === undefined ? silenceMs : silenceMs / 3;
  if (hello !== undefined) line.send(hello);
  let silentMs = 0;
  while (silentMs < silenceMs) {
    const text = await line.next(pingMs, signal);
    if (text !== null) {
      silentMs = 0;
      yield text;
    } else {
      if (line.closed !== null) return;
      silentMs += pingMs;
      if (hello !== undefined) line.send(hello);
    }
  }
}

/**
 * Yields every message, and null at every opening. Reconnects after a disconnection. Throws the
 * signal's reason, or ShredwayCallError if the first opening fails or the key is no longer valid.
 */
export async function* follow(options: FollowOptions): AsyncGenerator<FeedItem> {
  let wasOpen = false;
  for (let failures = 0; ; failures++) {
    const line = await Line.open(options.url, options.WebSocket, options.signal);
    if (line) {
      wasOpen = true;
      try {
        yield null;
        for await (const text of messagesOf(line, options)) {
          failures = 0;
          yield text;
        }
      } finally {
        line.close();
      }
      if (line.closed?.code === policyCode) {
        const message = `unauthorized: the service closed the stream: ${line.closed.reason}`;
        throw new ShredwayCallError(message, { reason: "unauthorized" });
      }
    } else {
      const refusal = await refusalOf(options);
      if (!wasOpen || finalReasons.has(refusal.reason)) throw refusal;
    }
    await sleep(pauseMs(null, failures), options.signal);
  }
}
