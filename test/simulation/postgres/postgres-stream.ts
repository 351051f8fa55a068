// A connection between a process and the simulated PostgreSQL server, as a stream for the client library.
//
// Packets take time and keep their order. A connection that is cut loses the packets on their way, and each side
// learns of it at its own time. A killed process closes its side: what it had sent still arrives.

import { Duplex } from "node:stream";
import type { Timer } from "../../../src/core/clock.ts";
import type { StandInSession } from "../../support/postgres/stand-in/session.ts";
import type { SimulatedTime } from "../simulated-time.ts";

/** The server's side, until it accepts the connection. */
export interface PostgresGate {
  /** When a packet that leaves now arrives. */
  arrivalNs(): number;
  /** null: refused. */
  accept(stream: PostgresStream): StandInSession | null;
  /** Whether the packet arrives; false: the connection is cut. */
  maySend(stream: PostgresStream, bytes: Buffer): boolean;
}

function errorOf(code: string): Error {
  return Object.assign(new Error(`simulated ${code}`), { code });
}

export class PostgresStream extends Duplex {
  readonly #time: SimulatedTime;
  readonly #gate: PostgresGate;
  readonly #underWay = new Set<Timer>();
  #session: StandInSession | null = null;
  #lastNs = 0;
  #isCut = false;
  /** Nothing of the client runs any more. */
  #isKilled = false;

  constructor(time: SimulatedTime, gate: PostgresGate) {
    super({ allowHalfOpen: false });
    this.#time = time;
    this.#gate = gate;
  }

  get session(): StandInSession | null {
    return this.#session;
  }

  get isOpen(): boolean {
    return this.#session !== null && !this.#isCut && !this.destroyed;
  }

  // The members of a socket that the client library uses.

  connect(): this {
    this.#arrive(() => {
      this.#session = this.#gate.accept(this);
      this.#arrive(() => {
        if (this.#isKilled || this.destroyed) return;
        if (this.#session) this.emit("connect");
        else this.destroy(errorOf("ECONNREFUSED"));
      });
    });
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  /** The server sends. */
  answer(bytes: Buffer): void {
    if (this.#isCut) return;
    this.#arrive(() => {
      if (!this.#isKilled && !this.destroyed) this.push(bytes);
    });
  }

  /** The server closes its side. */
  answerEnd(): void {
    if (this.#isCut) return;
    this.#arrive(() => {
      if (!this.#isKilled && !this.destroyed) this.push(null);
    });
  }

  /** The connection breaks; the server learns of it after `noticedMs`. */
  cut(noticedMs: number): void {
    if (this.#isCut) return;
    this.#isCut = true;
    for (const timer of this.#underWay) timer.cancel();
    this.#underWay.clear();
    const session = this.#session;
    session?.lose();
    this.#time.at(this.#time.nowNs + noticedMs * 1e6, () => session?.abandon());
    this.#time.at(this.#gate.arrivalNs(), () => {
      if (!this.#isKilled) this.destroy(errorOf("ECONNRESET"));
    });
  }

  /** The client's process is killed. */
  kill(): void {
    this.removeAllListeners();
    this.on("error", () => {});
    this.#isKilled = true;
    this.destroy();
  }

  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)));
    done();
  }

  override _write(bytes: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(bytes);
    done();
  }

  override _read(): void {
    // The server pushes.
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.#isCut) this.#arrive(() => this.#session?.leave());
    done(error);
  }

  #send(bytes: Buffer): void {
    if (this.#isCut || !this.#gate.maySend(this, bytes)) return;
    this.#arrive(() => this.#session?.receive(bytes));
  }

  /** After everything that is on its way, in either direction. */
  #arrive(action: () => void): void {
    this.#lastNs = Math.max(this.#lastNs, this.#gate.arrivalNs());
    const timer = this.#time.at(this.#lastNs, () => {
      this.#underWay.delete(timer);
      action();
    });
    this.#underWay.add(timer);
  }
}
