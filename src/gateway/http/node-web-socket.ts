// One WebSocket of the package ws, with the operations of engine.ts.
//
// node-engine.ts creates it for every accepted handshake and calls `checkIdle` twice a second.

import { WebSocket } from "ws";
import type { CallerSocket } from "./caller-network.ts";
import type { EngineWebSocketRoute } from "./engine.ts";
import type { RawSocket, Socket } from "./web-socket-peers.ts";

const pingsPerIdleTime = 2;
/** A peer that sends more after a close frame is cut. */
const closingBytesMax = 256 * 1024;

function nothing(): void {}

export class NodeWebSocket implements RawSocket {
  readonly #socket: WebSocket;
  readonly #tcp: CallerSocket;
  readonly #userData: Socket;
  readonly #route: EngineWebSocketRoute;
  #heardMs = performance.now();
  #pings = 0;
  #isClosed = false;
  #closingBytes = 0;

  /** `tcp` is the connection of `socket`. */
  constructor(
    { socket, tcp }: { readonly socket: WebSocket; readonly tcp: CallerSocket },
    userData: Socket,
    route: EngineWebSocketRoute,
  ) {
    this.#socket = socket;
    this.#tcp = tcp;
    this.#userData = userData;
    this.#route = route;
    socket.on("error", nothing); // "close" follows
    socket.on("close", () => this.#closed());
    socket.on("message", (message: Buffer, isBinary) =>
      this.#received(() => route.message(this, message, isBinary)),
    );
    socket.on("ping", (message) => this.#received(() => route.ping(this, message)));
    socket.on("pong", (message) => this.#received(() => route.pong(this, message)));
    tcp.on("data", (piece: Buffer) => this.#limitClosing(tcp, piece.length));
    tcp.on("drain", () => {
      if (!this.#isClosed) route.drain(this);
    });
    tcp.once("close", () => {
      this.#closed();
      route.gone(userData);
    });
  }

  getUserData(): Socket {
    return this.#userData;
  }

  /** 1: sent or queued; 2: dropped, because too many bytes are queued. */
  send(message: string | Uint8Array, isBinary: boolean): number {
    if (this.#socket.bufferedAmount > this.#route.maxBackpressure) return 2;
    this.#socket.send(message, { binary: isBinary });
    return 1;
  }

  getBufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  cork(call: () => void): void {
    this.#tcp.cork();
    try {
      call();
    } finally {
      this.#tcp.uncork();
    }
  }

  end(code: number, reason: string): void {
    this.#socket.close(code, reason);
    this.#closed();
  }

  close(): void {
    this.#socket.terminate();
    this.#closed();
  }

  /** Called periodically: sends a ping to a silent peer, and cuts one that stays silent. */
  checkIdle(): void {
    if (this.#isClosed) return;
    const share = (performance.now() - this.#heardMs) / (this.#route.idleTimeout * 1000);
    if (share >= 1) this.close();
    else if (share * pingsPerIdleTime >= this.#pings + 1) {
      this.#pings += 1;
      this.#socket.ping();
    }
  }

  /** After a close frame, ws reads and discards everything that the peer still sends. */
  #limitClosing(tcp: CallerSocket, bytes: number): void {
    if (this.#socket.readyState === WebSocket.OPEN) return;
    this.#closingBytes += bytes;
    if (this.#closingBytes > closingBytesMax) tcp.destroy();
  }

  #received(call: () => void): void {
    this.#heardMs = performance.now();
    this.#pings = 0;
    if (!this.#isClosed) call();
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#route.close(this);
  }
}
