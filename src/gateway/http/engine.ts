// The web server behind HttpServer: the operations that both engines provide.
//
// The interfaces follow uWebSockets.js, which is used directly. node-engine.ts provides the same
// operations with sockets of Node.js and ws. server.ts opens one of them with open-engine.ts.

import type { TlsMaterial } from "../../core/tls-material.ts";
import type { FastPathConnections } from "../fast-path/caller-connection.ts";
import type { Refusal } from "./answer.ts";
import type { CallerListener, CallerNetwork } from "./caller-network.ts";
import type { HttpHead } from "./types.ts";
import type { RawSocket, Socket } from "./web-socket-peers.ts";

/** Must not be used after `onAborted` was called, or after the end of the response. */
export interface EngineResponse {
  onAborted(call: () => void): unknown;
  /** The piece is valid until `call` returns. */
  onData(call: (piece: ArrayBuffer | Uint8Array, isLast: boolean) => void): unknown;
  /** Calls when more bytes fit, with the offset of the next unsent byte. */
  onWritable(call: (offset: number) => boolean): unknown;
  cork(call: () => void): unknown;
  writeStatus(status: string): unknown;
  writeHeader(name: string, value: string): unknown;
  end(body?: string | Uint8Array, closeConnection?: boolean): unknown;
  endWithoutBody(): unknown;
  /** Returns whether the kernel accepted the bytes, and whether the response is complete. */
  tryEnd(body: string | Uint8Array, totalBytes: number): [boolean, boolean];
  close(): unknown;
}

/** uWebSockets.js documents each option. */
export interface EngineWebSocketRoute {
  readonly maxPayloadLength: number;
  readonly maxBackpressure: number;
  readonly idleTimeout: number;
  readonly sendPingsAutomatically: boolean;
  readonly compression: number;
  /** Must answer the request, or call `accept`, before it returns. */
  upgrade(response: EngineResponse, head: HttpHead, accept: (userData: Socket) => void): void;
  open(socket: RawSocket): void;
  message(socket: RawSocket, message: ArrayBuffer | Uint8Array, isBinary: boolean): void;
  ping(socket: RawSocket, message: ArrayBuffer | Uint8Array): void;
  pong(socket: RawSocket, message: ArrayBuffer | Uint8Array): void;
  /** Everything that was sent has left, after bytes waited. */
  drain(socket: RawSocket): void;
  /** The socket is already unusable; its TCP connection may still exist. */
  close(socket: RawSocket): void;
  /** The TCP connection has ended; called once after `close`. */
  gone(socket: Socket): void;
}

export interface EngineApp {
  /**
   * Reports every new connection with 1, and the end of its TCP connection with -1. `close` makes room: it
   * ends an idle connection of the caller with the most, or the new one; with "uws" always the new one, and
   * for an end it does nothing. "uws" does not report
   * the end of a WebSocket after a close frame; there it is the latest time at which the library ends it.
   */
  filter(call: (response: Pick<EngineResponse, "close">, change: number) => void): void;
  any(call: (response: EngineResponse, head: HttpHead) => void): void;
  /** "*": every path without a route. */
  ws(path: string, route: EngineWebSocketRoute): void;
  /** null: the system refused. `isTls` needs a certificate in the options. */
  listen(host: string, port: number, isTls: boolean): Promise<CallerListener | null>;
  /** New TLS connections use this certificate. Throws if it cannot be used; nothing changes then. */
  replaceCertificate(material: TlsMaterial): void;
  /** Cuts all connections and stops listening. */
  close(): void;
}

export interface EngineOptions {
  /** A connection without a request for this long is closed. "uws" always uses 10. */
  readonly keepAliveSeconds: number;
  /** Certificate of the TLS listeners; absent: no TLS listeners. */
  readonly tls?: TlsMaterial | undefined;
  /** "uws" has no fast path. */
  readonly fastPath?: FastPathConnections | undefined;
  /** Responses to requests that the engine cannot read; "uws" writes its own. */
  readonly refusal?: Refusal | undefined;
  /** Default: the kernel's. "uws" always uses the kernel's. */
  readonly network?: CallerNetwork | undefined;
}

export interface Engine {
  /** The real value: "uws" cannot change it. */
  readonly keepAliveSeconds: number;
  readonly app: EngineApp;
}
