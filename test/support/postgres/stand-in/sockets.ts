// The stand-in behind a socket of the kernel, for the tests that every database must pass.

import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { systemClock } from "../../../../src/core/clock.ts";
import { PostgresEngine } from "./engine.ts";
import { StandInServer } from "./server.ts";

/** The engine has one backend, and would execute this statement for minutes without a pause. */
const endless = /LIMIT 2000000000/;

export class StandInSockets {
  readonly #engine: PostgresEngine;
  readonly #server: StandInServer;
  readonly #listener: Server;
  readonly #sockets = new Set<Socket>();

  static async start(): Promise<StandInSockets> {
    const sockets = new StandInSockets(await PostgresEngine.open());
    sockets.#listener.listen(0, "127.0.0.1");
    await once(sockets.#listener, "listening");
    return sockets;
  }

  private constructor(engine: PostgresEngine) {
    this.#engine = engine;
    this.#server = new StandInServer({
      engine,
      clock: systemClock,
      conditions: {
        refusal: () => null,
        delayMs: ({ sql }) => (endless.test(sql) ? Number.POSITIVE_INFINITY : 0),
        trouble: () => null,
        ended: () => {},
      },
    });
    this.#listener = createServer((socket) => this.#accept(socket));
  }

  /** The URL of a database, for which a schema of this name stands. */
  url(place: string): string {
    const address = this.#listener.address();
    if (address === null || typeof address === "string") throw new Error("expected a port");
    return `postgres://shredway@127.0.0.1:${address.port}/${place}`;
  }

  ensureDatabase(url: string): void {
    this.#engine.createPlace(new URL(url).pathname.slice(1));
  }

  /** Whether an endless statement is in progress. */
  get isUnderWay(): boolean {
    return this.#server.sessions.some(({ delayedSql }) => endless.test(delayedSql));
  }

  async close(): Promise<void> {
    const closed = once(this.#listener, "close");
    this.#listener.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay();
    const session = this.#server.accept({
      send: (bytes) => void socket.write(bytes),
      close: () => socket.end(),
    });
    socket.on("data", (bytes: Buffer) => session.receive(bytes));
    socket.on("end", () => session.leave());
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#sockets.delete(socket);
      session.abandon();
    });
  }
}
