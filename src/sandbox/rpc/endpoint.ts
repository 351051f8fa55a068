// RpcEndpoint: a Solana JSON-RPC and WebSocket endpoint of the sandbox chain.
//
// Opened by the sandbox and by tests. HTTP and WebSocket use the same port and also the next one:
// @solana/web3.js opens its WebSocket there if the URL contains a port. All JSON-RPC responses have
// HTTP status 200, even errors: otherwise stock clients lose the error. `faults` has the fault
// injection.

import { setMaxListeners } from "node:events";
import { formatEndpoint, parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import { handleJsonRpc } from "../../core/json-rpc/handle.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { Logger } from "../../core/log.ts";
import { HttpServer } from "../../gateway/http/server.ts";
import {
  type HttpRequest,
  type HttpResponse,
  type HttpServerOptions,
  type WebSocketPeer,
  type WebSocketRoute,
  webSocketIdleSeconds,
} from "../../gateway/http/types.ts";
import type { ChainApi } from "../chain/types.ts";
import { dispatch } from "./dispatch.ts";
import type { MethodContext } from "./method.ts";
import { SubscriptionHub } from "./subscriptions/hub.ts";
import { RpcSession } from "./subscriptions/session.ts";

const bodyBytesMax = 256 * 1024;
const messageBytesMax = 64 * 1024;
/** High limits: the gateway's own connections end here, and the gateway limits its callers. */
const messageLimits = {
  messagesPerSecond: 10_000,
  messagesBurst: 20_000,
  bytesPerSecond: 64 * 1024 * 1024,
} as const;
const backpressureBytesMax = 8 * 1024 * 1024;
const batchMax = 100;
/** Maximum number of attempts to find two free neighbouring ports. */
const portTries = 32;

/** Injected faults; they may change at any time. */
interface RpcFaults {
  /** Delay of every response. */
  delayMs: number;
  /**
   * "behind": every method returns -32005, and so does /health. "unavailable": HTTP returns 503,
   * WebSockets are closed and rejected.
   */
  refuse: "nothing" | "behind" | "unavailable";
  /** Subscriptions send no notifications. */
  dropNotifications: boolean;
}

export interface RpcEndpointOptions {
  /** "ip:port"; with port 0 the kernel chooses. The next port is used as well. */
  readonly listen: string;
  /** Identity in base58; default: the first validator's. */
  readonly identity?: string;
  /** Version in the result of getVersion. Default "4.2.0". */
  readonly version?: string;
  /** Default 0. */
  readonly shredVersion?: number;
  /** Address at which a validator accepts transactions over QUIC. Default: none. */
  readonly tpuQuicAddress?: (identity: string) => string | null;
  readonly faults?: Partial<RpcFaults>;
  readonly log?: Logger;
}

const corsHeaders = { "access-control-allow-origin": "*" } as const;
const jsonHeaders = { ...corsHeaders, "content-type": "application/json; charset=utf-8" } as const;

function textAnswer(status: number, body: string): HttpResponse {
  return { status, headers: { ...corsHeaders, "content-type": "text/plain" }, body };
}

function preflightAnswer(request: HttpRequest): HttpResponse {
  const requestedHeaders = request.header("access-control-request-headers") ?? "";
  const isList = /^[\w\-, ]{1,1024}$/.test(requestedHeaders);
  return {
    status: 204,
    headers: {
      ...corsHeaders,
      "access-control-allow-methods": "POST, GET, OPTIONS",
      "access-control-allow-headers": isList ? requestedHeaders : "content-type, solana-client",
      "access-control-max-age": "86400",
    },
  };
}

export class RpcEndpoint {
  readonly faults: RpcFaults;
  readonly #clock: Clock;
  readonly #log: Logger | undefined;
  readonly #context: MethodContext;
  readonly #hub: SubscriptionHub;
  readonly #sessions = new Map<WebSocketPeer, RpcSession>();
  readonly #servers: HttpServer[] = [];
  readonly #closing = new AbortController();
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  #reports = 0;

  /** Throws ShredwayError "address_invalid" or "http_open"; everything is closed then. */
  static async open(
    chain: ChainApi,
    clock: Clock,
    options: RpcEndpointOptions,
  ): Promise<RpcEndpoint> {
    const endpoint = new RpcEndpoint(chain, clock, options);
    try {
      await endpoint.#listen(options.listen);
    } catch (thrown) {
      endpoint.close();
      throw thrown;
    }
    return endpoint;
  }

  private constructor(chain: ChainApi, clock: Clock, options: RpcEndpointOptions) {
    this.faults = { delayMs: 0, refuse: "nothing", dropNotifications: false, ...options.faults };
    this.#clock = clock;
    this.#log = options.log;
    setMaxListeners(0, this.#closing.signal); // each delayed response listens
    // Registered before the hub: data of a block must be recorded before subscriptions are
    // notified.
    this.#context = {
      chain,
      clock,
      node: {
        identity: options.identity ?? chain.validators()[0]?.identity ?? "",
        version: options.version ?? "4.2.0",
        featureSet: 0,
        shredVersion: options.shredVersion ?? 0,
        rpcAddress: () => this.#servers[0]?.addresses[0] ?? null,
        ...(options.tpuQuicAddress && { tpuQuicAddress: options.tpuQuicAddress }),
      },
    };
    this.#hub = new SubscriptionHub(this.#context, (thrown) => this.#report(thrown));
  }

  /** "ip:port" of HTTP (and WebSocket). */
  get address(): string {
    return this.#servers[0]?.addresses[0] ?? "";
  }

  /** "ip:port" of WebSocket, one port above. */
  get webSocketAddress(): string {
    return this.#servers[1]?.addresses[0] ?? "";
  }

  /** Current number of connections and subscriptions, for the screen and tests. */
  get counts(): { readonly connections: number; readonly subscriptions: number } {
    return { connections: this.#sessions.size, subscriptions: this.#hub.count };
  }

  /** Cuts all connections; pending responses are lost. Idempotent. */
  close(): void {
    this.#closing.abort();
    this.#hub.close();
    for (const server of this.#servers) server.close();
  }

  async #listen(listen: string): Promise<void> {
    const wanted = parseEndpoint(listen, { allowPortZero: true });
    for (let tries = 1; ; tries++) {
      const first = await HttpServer.open(this.#serverOptions(listen), this.#log);
      const { port } = parseEndpoint(first.addresses[0] ?? listen);
      try {
        if (port === 65_535) {
          throw new ShredwayError("address_invalid", "expected a port below 65535, got 65535");
        }
        const above = formatEndpoint({ ...wanted, port: port + 1 });
        this.#servers.push(first, await HttpServer.open(this.#serverOptions(above), this.#log));
        return;
      } catch (thrown) {
        first.close();
        if (wanted.port !== 0 || tries === portTries) throw thrown;
      }
    }
  }

  #serverOptions(listen: string): HttpServerOptions {
    return {
      listen: [listen],
      bodyBytesMax: () => bodyBytesMax,
      handle: (request) => this.#handle(request),
      webSockets: { "*": this.#webSocketRoute() },
    };
  }

  #handle(request: HttpRequest): HttpResponse | Promise<HttpResponse> {
    if (this.faults.refuse === "unavailable") return textAnswer(503, "unavailable");
    if (request.method === "OPTIONS") return preflightAnswer(request);
    if (request.method === "GET" && request.path === "/health") {
      return textAnswer(200, this.faults.refuse === "behind" ? "behind" : "ok");
    }
    if (request.path !== "/") return textAnswer(404, "Not found");
    if (request.method !== "POST") {
      return textAnswer(405, "Used HTTP Method is not allowed. POST or OPTIONS is required");
    }
    if (!/^application\/json\s*(;|$)/i.test(request.header("content-type") ?? "")) {
      return textAnswer(415, "Supplied content type is not allowed: application/json is required");
    }
    return this.#answerBody(request.body);
  }

  async #answerBody(body: Uint8Array): Promise<HttpResponse> {
    const text = await this.#answer(this.#textOf(body), (method, params) =>
      dispatch(this.#context, method, params),
    );
    return { status: 200, headers: jsonHeaders, body: text };
  }

  /** Invalid UTF-8 becomes a text that is not JSON, and gets the response for that. */
  #textOf(body: Uint8Array): string {
    try {
      return this.#decoder.decode(body);
    } catch {
      return "\ufffd";
    }
  }

  async #answer(
    text: string,
    call: (method: string, params: readonly Json[]) => unknown,
  ): Promise<string> {
    const { delayMs } = this.faults;
    if (delayMs > 0) await this.#clock.sleep(delayMs, this.#closing.signal);
    return handleJsonRpc(text, {
      dispatch: (method, params) => {
        this.#refuseWhenBehind();
        return call(method, params);
      },
      report: (thrown) => this.#report(thrown),
      batchMax,
    });
  }

  #refuseWhenBehind(): void {
    if (this.faults.refuse !== "behind") return;
    throw new ShredwayError("node_behind", "Node is behind by an unknown number of slots", {
      details: { numSlotsBehind: null },
    });
  }

  #webSocketRoute(): WebSocketRoute {
    return {
      messageBytesMax,
      messageLimits,
      backpressureBytesMax,
      idleSeconds: webSocketIdleSeconds,
      accept: () =>
        this.faults.refuse === "unavailable" ? textAnswer(503, "unavailable") : undefined,
      open: (peer) => {
        const session = new RpcSession(peer, this.#hub, {
          answer: (text, call) => this.#answer(text, call),
          dropsNotifications: () => this.faults.dropNotifications,
        });
        this.#sessions.set(peer, session);
      },
      message: (peer, text) => {
        if (this.faults.refuse === "unavailable") peer.close(1013, "unavailable");
        else this.#sessions.get(peer)?.message(text);
      },
      closed: (peer) => {
        this.#sessions.get(peer)?.closed();
        this.#sessions.delete(peer);
      },
    };
  }

  #report(thrown: unknown): string {
    const reference = `rpc-${++this.#reports}`;
    const error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    this.#log?.error({ reference, error }, "sandbox: an RPC method failed");
    return reference;
  }
}
