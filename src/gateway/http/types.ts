// HTTP and WebSocket as the handlers see them: plain requests in, plain answers out.
//
// Only types; server.ts is the one file that knows the web server behind it.

import type { Clock } from "../../core/clock.ts";
import type { Reason } from "../../core/errors.ts";
import type { MessageLimits } from "./message-allowance.ts";

export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** Without the query; as it came, neither decoded nor tidied. */
  readonly path: string;
  /** Raw, without "?"; empty when there is none. */
  readonly query: string;
  /** Lower-case name; undefined when absent. Repeated headers are joined by ", ". */
  header(name: string): string | undefined;
  /** Of the TCP peer, IPv4 also when it came mapped. */
  readonly remoteAddress: string;
  /** Empty for GET, HEAD and OPTIONS. The handler may keep it. */
  readonly body: Uint8Array;
}

export interface HttpResponse {
  /** 200 to 599. */
  readonly status: number;
  /** Without content-length, connection, date and keep-alive: those are the server's. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Not sent for HEAD, 204 and 304. Must not change until it was sent. */
  readonly body?: string | Uint8Array;
}

/** Everything of a request but its body: what body limits and refusals are decided on. */
export type HttpHead = Omit<HttpRequest, "body">;

export interface WebSocketPeer {
  readonly remoteAddress: string;
  /**
   * False when the peer reads too slowly and was closed, or is closed already. May call `closed`
   * before it returns.
   */
  send(text: string): boolean;
  /** Nothing when it is closed already. Calls `closed` before it returns. */
  close(code: number, reason: string): void;
}

/**
 * Callbacks that throw (or reject, when they are asynchronous) are logged and the peer is closed
 * with 1011. `closed` comes exactly once for every `open`.
 */
export interface WebSocketRoute {
  /** Answers instead of accepting when it returns a response. */
  accept?(head: HttpHead): HttpResponse | undefined;
  /** A larger message closes the peer with 1009; one larger by 64 kB and more without a frame. */
  readonly messageBytesMax: number;
  /**
   * A peer that sends more is closed with 1008, and one that goes on meanwhile is cut without a frame:
   * a frame would be read after everything that waits, and reading a flood is what has to end.
   */
  readonly messageLimits: MessageLimits;
  /** A peer that has so much waiting is closed. */
  readonly backpressureBytesMax: number;
  /** 8 to 960. Without a sign of life (answers to pings are some) for so long, it is closed. */
  readonly idleSeconds: number;
  open(peer: WebSocketPeer, head: HttpHead): void;
  message(peer: WebSocketPeer, text: string): void;
  /** The peer exceeded `messageLimits` and is about to be closed. Once, before `closed`. */
  exceeded?(peer: WebSocketPeer): void;
  closed(peer: WebSocketPeer): void;
}

export interface HttpServerOptions {
  /** "ip:port" each; port 0: the kernel chooses. */
  readonly listen: readonly string[];
  /** Largest body of this request in bytes; more is answered 413 before it is read. */
  bodyBytesMax(head: HttpHead): number;
  /** May throw or reject: answered 500 with a reference number that the log has, too. */
  handle(request: HttpRequest): HttpResponse | Promise<HttpResponse>;
  /**
   * How the server's own refusals look: 413 for bodies, 503 while it closes. Default: JSON with
   * `error.reason` and `error.message`.
   */
  refusal?(status: number, reason: Reason, message: string): HttpResponse;
  /** By path; "*" for every path that has no own entry. */
  readonly webSockets?: Readonly<Record<string, WebSocketRoute>>;
  /** Measures what WebSocket peers send. Default: the system's clock. */
  readonly clock?: Pick<Clock, "monotonicNs">;
  /** Sockets at once, HTTP and WebSocket together; more are closed at once. Default 10,000. */
  readonly connectionsMax?: number;
}
