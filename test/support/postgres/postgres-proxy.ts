// A proxy between a client and a PostgreSQL server that loses connections around a COMMIT, loses
// all data, or delays it.

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/core/clock.ts";
import { type PostgresServer, superuser } from "./postgres.ts";

const socketName = ".s.PGSQL.5432";

/** Fault of the connection with the next COMMIT. */
export type ProxyBehaviour =
  | "passes"
  /** The server does not receive it. */
  | "request lost"
  /** The same, and the server does not see a disconnection. */
  | "request lost silently"
  /** The server executes it, but the client does not receive the response. */
  | "answer lost";

export class PostgresProxy {
  /** Applies to the next COMMIT only. */
  behaviour: ProxyBehaviour = "passes";
  /** Rejects new connections. */
  isClosed = false;
  /** Applies after the next lost connection. */
  closesAfterLoss = false;
  connections = 0;
  /** No data passes, and neither side sees a disconnection; new connections hang. */
  isSilent = false;
  /** Delay in each direction. */
  delayMs = 0;
  readonly #folder = mkdtempSync(join(tmpdir(), "shredway-proxy-"));
  readonly #server: Server;
  readonly #target: string;
  readonly #links = new Set<Socket>();

  static async open(server: PostgresServer): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(server);
    proxy.#server.listen(join(proxy.#folder, socketName));
    await once(proxy.#server, "listening");
    return proxy;
  }

  private constructor(server: PostgresServer) {
    this.#target = join(server.folder, socketName);
    this.#server = createServer((client) => this.#link(client));
  }

  url(database: string): string {
    return `postgres:///${database}?host=${encodeURIComponent(this.#folder)}&user=${superuser}`;
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#links) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #link(client: Socket): void {
    if (this.isClosed) {
      client.destroy();
      return;
    }
    this.connections++;
    const server = connect(this.#target);
    let losesAnswer = false;
    let isSilent = false;
    let isBroken = false;
    const end = (): void => {
      if (isBroken || this.isSilent) return;
      client.destroy();
      if (!isSilent) server.destroy();
    };
    /** false: lost. All later data of this connection is lost as well. */
    const passes = (): boolean => {
      isBroken ||= this.isSilent;
      return !isBroken;
    };
    const lose = (): void => {
      this.isClosed = this.closesAfterLoss;
      end();
    };
    for (const socket of [client, server]) {
      this.#links.add(socket);
      socket.on("error", end);
      socket.on("close", () => {
        this.#links.delete(socket);
        end();
      });
    }
    const toServer = this.#delayed((chunk) => server.write(chunk));
    const toClient = this.#delayed((chunk) => client.write(chunk));
    client.on("data", (chunk: Buffer) => {
      if (!passes()) return;
      if (chunk.includes("COMMIT\0")) {
        const { behaviour } = this;
        this.behaviour = "passes";
        if (behaviour === "request lost" || behaviour === "request lost silently") {
          isSilent = behaviour === "request lost silently";
          lose();
          return;
        }
        losesAnswer = behaviour === "answer lost";
      }
      toServer(chunk);
    });
    server.on("data", (chunk: Buffer) => {
      if (!passes()) return;
      if (losesAnswer) lose();
      else toClient(chunk);
    });
  }

  /** Delivers in order, for any delays. */
  #delayed(send: (chunk: Buffer) => void): (chunk: Buffer) => void {
    const waiting: Buffer[] = [];
    return (chunk) => {
      if (this.delayMs === 0 && waiting.length === 0) {
        send(chunk);
        return;
      }
      waiting.push(chunk);
      systemClock.after(this.delayMs, () => {
        const next = waiting.shift();
        if (next) send(next);
      });
    };
  }
}
