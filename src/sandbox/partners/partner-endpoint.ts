// One HTTP endpoint of a partner of the sandbox, with what can go wrong on purpose.
//
// Opened by partners.ts for every partner; the handler says what a request means. The switches in
// `faults` may be changed at any time and hold for requests that come afterwards.

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
/** Longer than any transaction: the node's own bound of base64. */
export const base64CharactersMax = 5464;

interface PartnerFaults {
  /** Every answer comes so much later. */
  delayMs: number;
  /**
   * What is answered instead: 429 with Retry-After, 503, no JSON, nothing at all, or every
   * connection of the endpoint is cut. Nothing is executed then.
   */
  answer: "normal" | "limit" | "unavailable" | "garbage" | "silence" | "cut";
  /** With "limit". */
  retryAfterSeconds: number;
}

interface PartnerCounts {
  requests: number;
  /** Transactions and bundles that went on to the chain. */
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

  /** On `host` ("127.0.0.1"). Throws ShredwayError "address_invalid" or "http_open". */
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

  /** Drops every connection, with what is under way on it. */
  cut(): void {
    this.#gate?.cut();
  }

  /** Connections are refused from now on, and those that stand are cut. */
  stop(): void {
    this.#gate?.stop();
  }

  /** Listens again, at the same port. Throws ShredwayError "http_open" when it is taken. */
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

  /** Answers the body as JSON-RPC: HTTP 200, whatever becomes of the calls. */
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
        return new Promise(() => undefined); // until the caller goes away
      case "cut":
        this.cut();
        return textAnswer(503, "nobody reads this: the connection is gone");
      case "normal":
        return this.#handler(request, this);
    }
  }

  #report(thrown: unknown): string {
    const reference = `partner-${++this.#reports}`;
    const error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    this.#log?.error({ reference, error }, "a partner of the sandbox failed");
    return reference;
  }
}
