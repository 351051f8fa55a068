// Connections to partners in memory: the gateway's side is a PartnerSocket, the partner's side a few
// callbacks. One network belongs to one life of the service.

import { Duplex } from "node:stream";
import type { Clock } from "../../../src/core/clock.ts";
import type { PartnerNetwork, PartnerSocket } from "../../../src/gateway/routes/partner-network.ts";
import type { FastPathThread } from "../http/fast-path-thread.ts";

/** One way, between the gateway and a partner. */
const oneWayMs = 2;

/** The partner's side of a connection. */
export interface PartnerPeer {
  received(bytes: Buffer): void;
  /** The gateway closed it, or its process was killed. */
  closed(): void;
}

/** A connection as its partner uses it. */
export interface PeerConnection {
  readonly isOpen: boolean;
  send(bytes: Buffer): void;
  /** Closes it without a further byte. */
  reset(): void;
}

/** A partner that listens. */
export interface PartnerListener {
  /** null: it refuses connections. */
  accept(connection: PeerConnection): PartnerPeer | null;
}

function errorOf(code: string): Error {
  return Object.assign(new Error(`simulated ${code}`), { code });
}

class MemorySocket extends Duplex implements PartnerSocket, PeerConnection {
  /** The fast path writes to it, too. */
  readonly descriptor: number;
  readonly #thread: FastPathThread;
  #peer: PartnerPeer | null = null;
  #waiting: (() => void)[] = [];
  #isConnecting = true;

  constructor(thread: FastPathThread) {
    super();
    this.#thread = thread;
    this.descriptor = thread.open((bytes) => this.#peer?.received(bytes));
  }

  get isOpen(): boolean {
    return !this.#isConnecting && !this.destroyed;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  /** null: the connection was refused. */
  connected(accept: (connection: PeerConnection) => PartnerPeer | null): void {
    if (this.destroyed) return;
    this.#isConnecting = false;
    this.#peer = accept(this);
    if (!this.#peer) {
      this.destroy(errorOf("ECONNREFUSED"));
      return;
    }
    this.emit("connect");
    for (const write of this.#waiting.splice(0)) write();
  }

  send(bytes: Buffer): void {
    if (this.isOpen) this.push(bytes);
  }

  reset(): void {
    this.destroy(errorOf("ECONNRESET"));
  }

  override _write(bytes: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    const write = (): void => {
      if (bytes.length > 0) this.#peer?.received(bytes);
      done();
    };
    if (this.#isConnecting) this.#waiting.push(write);
    else write();
  }

  override _read(): void {
    // The partner pushes.
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#thread.end(this.descriptor);
    this.#peer?.closed();
    this.#peer = null;
    done(error);
  }
}

export class MemoryNetwork implements PartnerNetwork {
  readonly #clock: Clock;
  readonly #listeners: ReadonlyMap<string, PartnerListener>;
  readonly #thread: FastPathThread;
  readonly #sockets = new Set<MemorySocket>();

  /** Partners by their host names. `clock`: of the process that connects. */
  constructor(
    clock: Clock,
    listeners: ReadonlyMap<string, PartnerListener>,
    thread: FastPathThread,
  ) {
    this.#clock = clock;
    this.#listeners = listeners;
    this.#thread = thread;
  }

  connect({ hostname }: URL): PartnerSocket {
    const socket = new MemorySocket(this.#thread);
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    this.#clock.after(2 * oneWayMs, () =>
      socket.connected((connection) => this.#listeners.get(hostname)?.accept(connection) ?? null),
    );
    return socket;
  }

  probe(
    { hostname }: URL,
    _timeoutMs: number,
    done: (error: Error | null) => void,
  ): { cancel(): void } {
    return this.#clock.after(2 * oneWayMs, () => {
      const peer = this.#listeners.get(hostname)?.accept({
        isOpen: false,
        send: () => {},
        reset: () => {},
      });
      peer?.closed();
      done(peer ? null : errorOf("ECONNREFUSED"));
    });
  }

  /** The process is killed: nothing of it hears from a connection again. */
  kill(): void {
    for (const socket of this.#sockets) {
      socket.removeAllListeners();
      socket.on("error", () => {});
      socket.destroy();
    }
    this.#sockets.clear();
  }
}
