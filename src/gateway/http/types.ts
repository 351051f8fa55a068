// Requests, responses and WebSockets as handlers see them.
//
// Only types.

import type { Clock } from "../../core/clock.ts";
import type { Reason, ShredwayError } from "../../core/errors.ts";
import type { CallerConnection, FastPathConnections } from "../fast-path/caller-connection.ts";
import type { CallerNetwork } from "./caller-network.ts";
import type { MessageLimits } from "./message-allowance.ts";
import type { TlsCertificate } from "./tls-certificate.ts";

export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** Without the query; neither decoded nor normalised. */
  readonly path: string;
  /** Raw, without "?"; empty if there is no query. */
  readonly query: string;
  /**
   * `name` in lower case. Returns undefined if the header is absent; repeated headers are joined by
   * ", ".
   */
  header(name: string): string | undefined;
  /** Address of the TCP peer; a mapped IPv4 address is written as IPv4. */
  readonly remoteAddress: string;
  /** Whether the request arrived at a TLS listener of this server. */
  readonly isTls: boolean;
  /** Its connection on the fast path, and the bytes of its head; absent: there is no fast path. */
  readonly fastPath?:
    | { readonly connection: CallerConnection; readonly head: Uint8Array }
    | undefined;
  /** Empty for GET, HEAD and OPTIONS. The handler may keep it. */
  readonly body: Uint8Array;
}

export interface HttpResponse {
  /** 200 to 599. */
  readonly status: number;
  /** Must not contain content-length, connection, date or keep-alive: the server writes those. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Not sent for HEAD, 204 and 304. Must not change until it is sent. */
  readonly body?: string | Uint8Array;
}

export interface RefusalOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly details?: ShredwayError["details"];
}

/** Builds an error response: JSON-RPC, or plain JSON for paths that do not use JSON-RPC. */
export type RefusalShape = (reason: Reason, message: string, more?: RefusalOptions) => HttpResponse;

/** A request without its body. Body limits and refusals are decided on it. */
export type HttpHead = Omit<HttpRequest, "body">;

export interface WebSocketPeer {
  readonly remoteAddress: string;
  /**
   * Returns false if the peer read too slowly and was closed, or is already closed. May call
   * `closed` before it returns.
   */
  send(text: string): boolean;
  /** Like `send`, as a binary message. The bytes must not change afterwards. */
  sendBytes(bytes: Uint8Array): boolean;
  /** Like `send` for several texts in UTF-8, with as few writes to the connection as possible. */
  sendTexts(texts: readonly Uint8Array[]): boolean;
  /** Bytes that were sent and wait for the peer. */
  readonly waitingBytes: number;
  /** Does nothing if the peer is already closed. Calls `closed` before it returns. */
  close(code: number, reason: string): void;
}

/**
 * Idle time of the service's WebSockets. A silent peer gets a ping after about half of it. Many proxies
 * close a connection that is silent for 60 s.
 */
export const webSocketIdleSeconds = 40;

/**
 * Callbacks that throw (or reject, if they are asynchronous) are logged, and the peer is closed
 * with 1011. `closed` is called exactly once for every `open`.
 */
export interface WebSocketRoute {
  /** A returned response is sent instead of accepting the WebSocket. */
  accept?(head: HttpHead): HttpResponse | undefined;
  /**
   * A larger message closes the peer with 1009; one that is larger by 64 kB or more cuts the
   * connection.
   */
  readonly messageBytesMax: number;
  /**
   * A peer that exceeds them is closed with 1008. A peer that continues is cut without a close
   * frame, because it would read that frame only after all queued data.
   */
  readonly messageLimits: MessageLimits;
  /** A peer with so many unread bytes is closed. */
  readonly backpressureBytesMax: number;
  /** 8 to 960. A peer that sends nothing for so long, not even pongs, is closed. */
  readonly idleSeconds: number;
  open(peer: WebSocketPeer, head: HttpHead): void;
  message(peer: WebSocketPeer, text: string): void;
  /** Called before `message`. A returned reason closes the peer with 1008 instead, as if it exceeded `messageLimits`. */
  limitReason?(peer: WebSocketPeer, text: string): string | undefined;
  /** A binary message, whose bytes the route may keep. Absent: the peer is closed with 1003. */
  binaryMessage?(peer: WebSocketPeer, bytes: Uint8Array): void;
  /** Called once when the peer exceeded `messageLimits` or got a `limitReason`, before `closed`. */
  exceeded?(peer: WebSocketPeer): void;
  /** Nothing waits for the peer any more, after bytes waited. */
  drained?(peer: WebSocketPeer): void;
  closed(peer: WebSocketPeer): void;
}

/**
 * "node": sockets of Node.js and ws, on every supported Node. "uws": uWebSockets.js, which needs a
 * binary for this version of Node. It answers more requests per core, but closes idle connections
 * after 10 s.
 */
export const engineNames = ["node", "uws"] as const;
export type EngineName = (typeof engineNames)[number];

interface TlsListeners {
  /** "ip:port" each; port 0: the kernel chooses the port. */
  readonly listen: readonly string[];
  /** The server follows its changes and does not close it. */
  readonly certificate: TlsCertificate;
}

export interface HttpServerOptions {
  /** "ip:port" each; port 0: the kernel chooses the port. */
  readonly listen: readonly string[];
  /** Listeners with TLS 1.2 and 1.3, in addition. */
  readonly tls?: TlsListeners | undefined;
  /** Body limit of this request in bytes; a larger body is answered with 413 before it is read. */
  bodyBytesMax(head: HttpHead): number;
  /**
   * May throw or reject: the server then answers 500 with a reference that the log also contains.
   */
  handle(request: HttpRequest): HttpResponse | Promise<HttpResponse>;
  /**
   * Builds the server's own refusals: 413 for bodies, 503 while it closes. Default: JSON with
   * `error.reason` and `error.message`. `head`: absent if it cannot be read.
   */
  refusal?(status: number, reason: Reason, message: string, head?: HttpHead): HttpResponse;
  /** Routes by path; "*" serves every path without an entry. */
  readonly webSockets?: Readonly<Record<string, WebSocketRoute>>;
  /** Clock of the message limits. Default: the system's clock. */
  readonly clock?: Pick<Clock, "monotonicNs">;
  /**
   * Limit on open sockets, HTTP and WebSocket together; further ones are closed immediately.
   * Default 10,000.
   */
  readonly connectionsMax?: number;
  /** Default: "node". */
  readonly engine?: EngineName;
  /** Watches connections without TLS; only the engine "node" has it. Default: none. */
  readonly fastPath?: FastPathConnections | undefined;
  /** A connection without a request for this long is closed. Default 90; "uws" always uses 10. */
  readonly keepAliveSeconds?: number;
  /** Default: the kernel's. */
  readonly network?: CallerNetwork | undefined;
}
