// One HTTP endpoint of a sandbox partner, with fault injection.
//
// Opened by partners.ts for every partner; the handler interprets the requests. `faults` may change
// at any time and applies to later requests.

import type { Clock } from "../../core/clock.ts";
import { handleJsonRpc } from "../../core/json-rpc/handle.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { Logger } from "../../core/log.ts";
import { HttpServer } from "../../gateway/http/server.ts";
import type { HttpRequest, HttpResponse } from "../../gateway/http/types.ts";
import { Params } from "../rpc/params.ts";
import { FaultInjector } from "./fault-injector.ts";

const bodyBytesMax = 256 * 1024;
const batchMax = 100;
/** Above the size of any transaction: the node's own limit for base64. */
export const base64CharactersMax = 5464;

interface PartnerFaults {
  /** Delay of every response. */
  delayMs: number;
  /**
   * Response instead of the normal one: 429 with Retry-After, 503, invalid JSON, no response, or
   * every connection of the endpoint is cut. The request is not executed.
   */
  answer: "normal" | "limit" | "unavailable" | "garbage" | "silence" | "cut";
  /** For "limit". */
  retryAfterSeconds: number;
}

interface PartnerCounts {
  requests: number;
  /** Number of transactions and bundles that were passed to the chain. */
  transactions: number;
  bundles: number;
}

interface PartnerContext {
  readonly clock: Clock;
  readonly log?: Logger | undefined;
}

export type PartnerHandler = (
  request: HttpRequest,
  endpoint: PartnerServer,
) => HttpResponse | Promise<HttpResponse>;

const jsonHeaders = { "content-type": "application/json" } as const;

export function textAnswer(status: number, body: string): HttpResponse {
  return { status, headers: { "content-type": "text/plain" }, body };
}

export class PartnerServer {
  readonly faults: PartnerFaults = { delayMs: 0, answer: "normal", retryAfterSeconds: 1 };
  readonly counts: PartnerCounts = { requests: 0, transactions: 0, bundles: 0 };
  readonly #handler: PartnerHandler;
  readonly #clock: Clock;
  readonly #log: Logger | undefined;
  readonly #closing = new AbortController();
  #server: HttpServer | undefined;
  #gate: FaultInjector | undefined;
  #reports = 0;

  /** Listens on `host` ("127.0.0.1"). Throws ShredwayError "address_invalid" or "http_open". */
  static async open(
    host: string,
    handler: PartnerHandler,
    context: PartnerContext,
  ): Promise<PartnerServer> {
    const endpoint = new PartnerServer(handler, context);
    try {
      await endpoint.#listen(host.includes(":") ? `[${host}]:0` : `${host}:0`);
    } catch (thrown) {
      endpoint.close();
      throw thrown;
    }
    return endpoint;
  }

  private constructor(handler: PartnerHandler, { clock, log }: PartnerContext) {
    this.#handler = handler;
    this.#clock = clock;
    this.#log = log;
  }

  get url(): string {
    return `http://${this.#gate?.address ?? ""}`;
  }

  /** Cuts every connection with its pending requests. */
  cut(): void {
    this.#gate?.cut();
  }

  /** Rejects new connections and cuts existing ones. */
  stop(): void {
    this.#gate?.stop();
  }

  /** Listens again, at the same port. Throws ShredwayError "http_open" if it is in use. */
  async start(): Promise<void> {
    if (!this.#closing.signal.aborted) await this.#gate?.start();
  }

  /** Idempotent. */
  close(): void {
    this.#closing.abort();
    this.#gate?.stop();
    this.#server?.close();
  }

  async #listen(listen: string): Promise<void> {
    this.#server = await HttpServer.open(
      {
        listen: [listen],
        bodyBytesMax: () => bodyBytesMax,
        handle: (request) => this.#handle(request),
      },
      this.#log,
    );
    this.#gate = await FaultInjector.open(listen, this.#server.addresses[0] ?? listen);
  }

  /** Answers the body as JSON-RPC: always HTTP 200, even if calls fail. */
  async answerJsonRpc(
    request: HttpRequest,
    call: (method: string, params: Params) => unknown,
  ): Promise<HttpResponse> {
    const text = Buffer.from(request.body).toString("utf8");
    const body = await handleJsonRpc(text, {
      dispatch: (method, values: readonly Json[]) => call(method, new Params(values)),
      report: (thrown) => this.#report(thrown),
      batchMax,
    });
    return { status: 200, headers: jsonHeaders, body };
  }

  async #handle(request: HttpRequest): Promise<HttpResponse> {
    this.counts.requests++;
    const { delayMs, answer, retryAfterSeconds } = this.faults;
    if (delayMs > 0) await this.#clock.sleep(delayMs, this.#closing.signal);
    switch (answer) {
      case "limit":
        return {
          ...textAnswer(429, "too many requests"),
          headers: { "retry-after": String(retryAfterSeconds) },
        };
      case "unavailable":
        return textAnswer(503, "unavailable");
      case "garbage":
        return { status: 200, headers: jsonHeaders, body: '{"jsonrpc": "2.0", "result' };
      case "silence":
        return new Promise(() => undefined); // until the caller disconnects
      case "cut":
        this.cut();
        return textAnswer(503, "the connection is closed");
      case "normal":
        return this.#handler(request, this);
    }
  }

  #report(thrown: unknown): string {
    const reference = `partner-${++this.#reports}`;
    const error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    this.#log?.error({ reference, error }, "sandbox: a partner's request failed");
    return reference;
  }
}
