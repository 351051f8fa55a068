// Connections of callers in memory: the gateway's side is a CallerSocket, the caller's side a CallerLine.
//
// The gateway's kernel buffers what arrives until the event loop reads it, and what the caller has not read, up
// to a window. One network belongs to one life of the service.

import { Duplex } from "node:stream";
import type { Clock, Timer } from "../../../src/core/clock.ts";
import type {
  CallerListener,
  CallerNetwork,
  CallerSocket,
} from "../../../src/gateway/http/caller-network.ts";
import { pick, randomAt } from "../random-at.ts";
import type { SimulatedTime } from "../simulated-time.ts";
import type { FastPathThread } from "./fast-path-thread.ts";

/** Time until the event loop reads what has arrived. */
const readDelaysMs = [0.01, 0.04, 0.08, 2];
const salt = 2;

/** The caller, as its connection calls it. */
export interface CallerPeer {
  received(bytes: Buffer): void;
  /** The gateway has ended its side. */
  ended(): void;
  /** The connection no longer exists. */
  closed(): void;
}

/** A connection as the caller uses it. */
export interface CallerLine {
  send(bytes: Buffer): void;
  /** Ends the caller's side. */
  end(): void;
  reset(): void;
  /** The caller has read so many bytes, for which the gateway has space again. */
  read(bytes: number): void;
}

export interface LineOptions {
  readonly address: string;
  /** One way. */
  readonly delayMs: number;
  /** Bytes that the gateway may send before the caller reads them. */
  readonly windowBytes: number;
  readonly peer: CallerPeer;
}

interface SocketOptions extends LineOptions {
  readonly time: SimulatedTime;
  readonly clock: Clock;
  readonly seed: number;
  readonly thread: FastPathThread;
  readonly onDestroy: (socket: MemoryCallerSocket) => void;
}

class MemoryCallerSocket extends Duplex implements CallerSocket {
  readonly remoteAddress: string;
  readonly descriptor: number;
  readonly #options: SocketOptions;
  /** Arrived, and not read by the event loop. */
  #waiting: Buffer[] = [];
  #hasEndArrived = false;
  #isReadDue = false;
  /** Sent, and not read by the caller. */
  #unreadBytes = 0;
  /** The part of a write that does not fit into the window. */
  #blocked: { bytes: Buffer; readonly done: () => void } | null = null;
  #timeoutMs = 0;
  #timer: Timer | undefined;
  #isKilled = false;

  constructor(options: SocketOptions) {
    super();
    this.#options = options;
    this.remoteAddress = options.address;
    this.descriptor = options.thread.open(() => {});
  }

  // ---- the caller's side --------------------------------------------------------------------

  arrive(bytes: Buffer): void {
    if (this.destroyed) return;
    this.#waiting.push(bytes);
    this.#options.thread.arrive(this.descriptor, bytes);
    this.#readSoon();
  }

  arriveEnd(): void {
    this.#hasEndArrived = true;
    this.#readSoon();
  }

  arriveReset(): void {
    this.#waiting = [];
    this.destroy(Object.assign(new Error("simulated ECONNRESET"), { code: "ECONNRESET" }));
  }

  acknowledge(bytes: number): void {
    this.#active();
    this.#unreadBytes -= bytes;
    const blocked = this.#blocked;
    this.#blocked = null;
    if (blocked) this.#transmit(blocked.bytes, blocked.done);
  }

  // ---- the gateway's side -------------------------------------------------------------------

  setTimeout(timeoutMs: number): this {
    this.#timeoutMs = timeoutMs;
    this.#active();
    return this;
  }

  /** The process is killed: nothing of it hears from the connection again. */
  kill(): void {
    this.#isKilled = true;
    this.removeAllListeners();
    this.on("error", () => {});
    this.destroy();
  }

  override _read(): void {
    // Bytes are pushed when the event loop reads.
  }

  override _write(bytes: Buffer, _: BufferEncoding, done: () => void): void {
    this.#active();
    this.#transmit(bytes, done);
  }

  override _final(done: () => void): void {
    const { peer } = this.#options;
    this.#later(() => peer.ended());
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const { peer, thread, onDestroy } = this.#options;
    this.#timer?.cancel();
    this.#blocked = null;
    thread.end(this.descriptor);
    onDestroy(this);
    if (!this.#isKilled) this.#later(() => peer.closed());
    done(error);
  }

  #transmit(bytes: Buffer, done: () => void): void {
    const { windowBytes, peer } = this.#options;
    const part = bytes.subarray(0, Math.max(0, windowBytes - this.#unreadBytes));
    this.#unreadBytes += part.length;
    if (part.length > 0) this.#later(() => peer.received(part));
    if (part.length === bytes.length) done();
    else this.#blocked = { bytes: bytes.subarray(part.length), done };
  }

  #readSoon(): void {
    if (this.#isReadDue || this.destroyed) return;
    this.#isReadDue = true;
    const { clock, time, seed } = this.#options;
    const delayMs = pick(randomAt(seed, time.nowNs, salt), readDelaysMs);
    clock.after(delayMs, () => {
      this.#isReadDue = false;
      if (!this.destroyed) this.#readWaiting();
    });
  }

  #readWaiting(): void {
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#active();
    if (bytes.length > 0) {
      this.#options.thread.read(this.descriptor, bytes.length);
      this.push(bytes);
    }
    if (this.#hasEndArrived) this.push(null);
  }

  #active(): void {
    this.#timer?.cancel();
    if (this.#timeoutMs === 0) return;
    this.#timer = this.#options.clock.after(this.#timeoutMs, () => this.emit("timeout"));
  }

  #later(action: () => void): void {
    const { time, delayMs } = this.#options;
    time.at(time.nowNs + delayMs * 1e6, action);
  }
}

interface MemoryCallersOptions {
  readonly time: SimulatedTime;
  /** The clock of the process. */
  readonly clock: Clock;
  readonly seed: number;
  readonly thread: FastPathThread;
}

export class MemoryCallers implements CallerNetwork {
  readonly #options: MemoryCallersOptions;
  readonly #sockets = new Set<MemoryCallerSocket>();
  #connected: ((socket: CallerSocket) => void) | null = null;
  #isKilled = false;

  constructor(options: MemoryCallersOptions) {
    this.#options = options;
  }

  nowMs(): number {
    return Number(this.#options.clock.monotonicNs()) / 1e6;
  }

  wallNs(): bigint {
    return this.#options.clock.nowNs();
  }

  every(periodMs: number, action: () => void): Timer {
    return this.#options.clock.every(periodMs, action);
  }

  listenProblem(): Promise<null> {
    return Promise.resolve(null);
  }

  listen(
    { port }: { readonly port: number },
    connected: (socket: CallerSocket) => void,
  ): Promise<CallerListener> {
    this.#connected = connected;
    const close = (): void => {
      this.#connected = null;
    };
    return Promise.resolve({ port, close });
  }

  /** Opens a connection, which the gateway accepts after the delay. */
  connect(options: LineOptions): CallerLine {
    const { time } = this.#options;
    const onDestroy = (socket: MemoryCallerSocket): void => void this.#sockets.delete(socket);
    let socket: MemoryCallerSocket | null = null;
    time.at(time.nowNs + options.delayMs * 1e6, () => {
      if (this.#isKilled || !this.#connected) return;
      const accepted = new MemoryCallerSocket({ ...this.#options, ...options, onDestroy });
      this.#sockets.add(accepted);
      socket = accepted;
      this.#connected(accepted);
    });
    const later = (action: (accepted: MemoryCallerSocket) => void): void => {
      time.at(time.nowNs + options.delayMs * 1e6, () => {
        if (socket) action(socket);
      });
    };
    return {
      send: (bytes) => later((accepted) => accepted.arrive(bytes)),
      end: () => later((accepted) => accepted.arriveEnd()),
      reset: () => later((accepted) => accepted.arriveReset()),
      read: (bytes) => later((accepted) => accepted.acknowledge(bytes)),
    };
  }

  /** The process is killed. */
  kill(): void {
    this.#isKilled = true;
    for (const socket of this.#sockets) socket.kill();
    this.#sockets.clear();
  }
}
