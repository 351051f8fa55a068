// Transport: one HTTP request to the service, with its response or one ShredwayCallError.
//
// Called by client.ts. The key is sent in a header, never in the URL of a request, and never to the
// target of a redirect. A request is repeated only if the caller asks for it, and not before the
// service's Retry-After.

import { ShredwayCallError } from "./error.ts";
import { isObject } from "./fields.ts";
import { readJson, writeJson } from "./json.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Limit of each attempt in milliseconds, up to the last byte of the response. */
  readonly timeoutMs?: number | undefined;
  /** Number of retries if the service was not reached, is overloaded, or limits the rate. */
  readonly retries?: number | undefined;
}

interface TransportOptions {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly fetch: typeof fetch | undefined;
  readonly timeoutMs: number;
  readonly readRetries: number;
}

export interface HttpCall {
  readonly method: "GET" | "POST";
  /** Path with the query. */
  readonly path: string;
  readonly body?: string;
  /** A call that changes nothing uses the client's default number of retries. */
  readonly isRead: boolean;
  /** Name of the call for error messages. */
  readonly what: string;
}

interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface RpcAnswer {
  readonly result: unknown;
  /** null: the response has none. */
  readonly receipt: string | null;
  readonly headers: Headers;
}

/**
 * True if a retry may succeed, and either no part of a submission was accepted, or the same bytes
 * cannot land twice.
 */
const transientReasons: ReadonlySet<string> = new Set([
  "unreachable",
  "timeout",
  "rate_limited",
  "overloaded",
  "http_closing",
  "no_route",
  "nonce_pending",
  "rpc_failed",
  "store_failed",
]);

const backoffMs = 100;
const backoffMsMax = 5_000;
const timerMsMax = 2 ** 31 - 1;

/** The delay for a timer, which would fire at once if it were longer. */
export function timerMs(ms: number): number {
  return Math.min(ms, timerMsMax);
}

export function isTransient(error: unknown): error is ShredwayCallError {
  return error instanceof ShredwayCallError && transientReasons.has(error.reason);
}

/** The service's Retry-After; else a delay that grows with each attempt and has a random part. */
export function pauseMs(error: unknown, attempt: number): number {
  const retryAfter = error instanceof ShredwayCallError ? error.retryAfterSeconds : null;
  if (retryAfter !== null) return retryAfter * 1000;
  return Math.min(backoffMsMax, backoffMs * 2 ** attempt) * (0.5 + Math.random() / 2);
}

/** Rejects with the signal's reason. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, timerMs(ms));
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Rejects when the signal aborts, whatever `work` does then: in Node 20, not every stalled response ends by it. */
async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    stop = () => signal.removeEventListener("abort", abort);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    stop();
  }
}

function textOfCause(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const own = cause.cause;
  if (own instanceof AggregateError && own.message === "") {
    // Several addresses of the host failed: only their errors have a text.
    return [...new Set(own.errors.map(textOfCause))].join("; ") || cause.message;
  }
  return own instanceof Error ? own.message || cause.message : cause.message;
}

function retryAfterOf(headers: Headers | null, data: unknown): number | null {
  const header = headers?.get("retry-after") ?? "";
  if (/^[0-9]{1,9}$/.test(header)) return Number(header);
  const retryAfter = isObject(data) ? data["retryAfterSeconds"] : undefined;
  return typeof retryAfter === "number" ? retryAfter : null;
}

/**
 * Parses the member "error" of a response, in the form of JSON-RPC or of other paths; null:
 * neither.
 */
export function errorOf(error: unknown, answer: HttpAnswer | null): ShredwayCallError | null {
  if (!isObject(error) || typeof error["message"] !== "string") return null;
  const { code, message, data, reason: plain } = error;
  const retryAfter = isObject(data) ? data["reason"] : plain;
  const reason = typeof retryAfter === "string" ? retryAfter : "unknown";
  return new ShredwayCallError(typeof plain === "string" ? `${plain}: ${message}` : message, {
    reason,
    code: typeof code === "number" ? code : null,
    httpStatus: answer?.status ?? null,
    retryAfterSeconds: retryAfterOf(answer?.headers ?? null, data),
    data,
  });
}

export class Transport {
  readonly timeoutMs: number;
  readonly apiKey: string | null;
  readonly #base: string;
  readonly #fetch: typeof fetch;
  readonly #readRetries: number;

  /** Throws TypeError. */
  constructor(options: TransportOptions) {
    const url = new URL(options.url);
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      throw new TypeError(`url: expected http: or https:, got ${url.protocol}`);
    }
    this.apiKey = options.apiKey ?? url.searchParams.get("api-key");
    this.#base = url.origin + url.pathname.replace(/\/+$/, "").replace(/\/relay$/, "");
    // A browser's fetch fails if it is called as a method of another object.
    const given = options.fetch ?? fetch;
    this.#fetch = (...request) => given(...request);
    this.timeoutMs = options.timeoutMs;
    this.#readRetries = options.readRetries;
  }

  /** Browsers send no headers with a WebSocket, so the key is in the query. */
  socketUrl(path: string, withKey: boolean): string {
    const key =
      withKey && this.apiKey !== null ? `?api-key=${encodeURIComponent(this.apiKey)}` : "";
    return `${this.#base.replace(/^http/, "ws")}${path}${key}`;
  }

  async rpc(
    method: string,
    params: readonly unknown[],
    { isRead, query = "" }: { readonly isRead: boolean; readonly query?: string },
    options: CallOptions = {},
  ): Promise<RpcAnswer> {
    const body = writeJson({ jsonrpc: "2.0", id: 1, method, params });
    const path = `/relay${query}`;
    const call: HttpCall = { method: "POST", path, body, isRead, what: method };
    return this.#retried(call, options, async () => {
      const answer = await this.#send(call, options);
      const read = this.#read(call, answer);
      if (isObject(read) && Object.hasOwn(read, "result")) {
        const { result, receipt } = read;
        const text = typeof receipt === "string" ? receipt : null;
        return { result, receipt: text, headers: answer.headers };
      }
      throw this.#invalid(call, answer);
    });
  }

  /** For a path without JSON-RPC. */
  json(call: HttpCall, options: CallOptions = {}): Promise<unknown> {
    return this.#retried(call, options, async () => {
      const answer = await this.#send(call, options);
      const read = this.#read(call, answer);
      if (answer.status === 200) return read;
      throw this.#invalid(call, answer);
    });
  }

  text(call: HttpCall, options: CallOptions = {}): Promise<string> {
    return this.#retried(call, options, async () => {
      const answer = await this.#send(call, options);
      if (answer.status === 200) return answer.text;
      this.#read(call, answer);
      throw this.#invalid(call, answer);
    });
  }

  async #retried<T>(call: HttpCall, options: CallOptions, attempt: () => Promise<T>): Promise<T> {
    const retries = options.retries ?? (call.isRead ? this.#readRetries : 0);
    for (let done = 0; ; done++) {
      try {
        return await attempt();
      } catch (error) {
        if (done >= retries || !isTransient(error)) throw error;
        await sleep(pauseMs(error, done), options.signal);
      }
    }
  }

  async #send(
    call: HttpCall,
    { signal, timeoutMs = this.timeoutMs }: CallOptions,
  ): Promise<HttpAnswer> {
    signal?.throwIfAborted();
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      controller.abort();
    }, timerMs(timeoutMs));
    try {
      const { method, body } = call;
      const sent = this.#fetch(`${this.#base}${call.path}`, {
        method,
        headers: this.#headers(body !== undefined),
        signal: controller.signal,
        redirect: "error",
        credentials: "omit",
        ...(body !== undefined && { body }),
      });
      const response = await untilAborted(controller.signal, sent);
      const text = await untilAborted(controller.signal, response.text());
      return { status: response.status, headers: response.headers, text };
    } catch (cause) {
      signal?.throwIfAborted();
      const [reason, message] = isLate
        ? ["timeout", `expected a complete response within ${timeoutMs} ms, got none`]
        : [
            "unreachable",
            `expected a response from ${this.#base}, got none: ${textOfCause(cause)}`,
          ];
      throw new ShredwayCallError(`${reason}: ${call.what}: ${message}`, { reason, cause });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  #headers(hasBody: boolean): Record<string, string> {
    return {
      ...(hasBody && { "content-type": "application/json" }),
      ...(this.apiKey !== null && { "api-key": this.apiKey }),
    };
  }

  /** Throws the error of the response. */
  #read(call: HttpCall, answer: HttpAnswer): unknown {
    let read: unknown;
    try {
      read = readJson(answer.text);
    } catch {
      throw this.#invalid(call, answer);
    }
    const error = isObject(read) ? errorOf(read["error"], answer) : null;
    if (error) throw error;
    return read;
  }

  #invalid({ what }: HttpCall, { status, headers, text }: HttpAnswer): ShredwayCallError {
    const begin = JSON.stringify(text.slice(0, 80));
    return new ShredwayCallError(
      `answer_invalid: ${what}: expected a response of this service, got HTTP ${status} with ${begin}`,
      {
        reason: "answer_invalid",
        httpStatus: status,
        retryAfterSeconds: retryAfterOf(headers, null),
      },
    );
  }
}
