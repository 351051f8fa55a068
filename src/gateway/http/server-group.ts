// HttpServerGroup: several HTTP servers of one service as one, each with its own listeners and handlers.
//
// Opened, drained and closed by its user as if it were one server.

import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/log.ts";
import { HttpServer } from "./server.ts";
import type { HttpServerOptions } from "./types.ts";

export class HttpServerGroup {
  readonly #servers: readonly HttpServer[];

  private constructor(servers: readonly HttpServer[]) {
    this.#servers = servers;
  }

  /** Throws as HttpServer.open; nothing stays open then. */
  static async open(options: readonly HttpServerOptions[], log?: Logger): Promise<HttpServerGroup> {
    const servers: HttpServer[] = [];
    try {
      for (const one of options) servers.push(await HttpServer.open(one, log));
    } catch (error) {
      for (const server of servers) server.close();
      throw error;
    }
    return new HttpServerGroup(servers);
  }

  /** In the order of the servers and of `listen`, with the real ports. */
  get addresses(): readonly string[] {
    return this.#servers.flatMap(({ addresses }) => addresses);
  }

  /** HTTP and WebSocket together. */
  get connections(): number {
    return this.#servers.reduce((total, { connections }) => total + connections, 0);
  }

  /** Open ones, by path. */
  get webSockets(): ReadonlyMap<string, number> {
    return this.#summed(({ webSockets }) => webSockets);
  }

  /** Closed because their peer sent too much, by path, since the start. */
  get webSocketsOverLimit(): ReadonlyMap<string, number> {
    return this.#summed(({ webSocketsOverLimit }) => webSocketsOverLimit);
  }

  /** All at once; see HttpServer. */
  async drain(graceMs: number, clock: Clock): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.drain(graceMs, clock)));
  }

  /** At once. Idempotent. */
  close(): void {
    for (const server of this.#servers) server.close();
  }

  #summed(countsOf: (server: HttpServer) => ReadonlyMap<string, number>): Map<string, number> {
    const all = new Map<string, number>();
    for (const server of this.#servers) {
      for (const [path, count] of countsOf(server)) all.set(path, (all.get(path) ?? 0) + count);
    }
    return all;
  }
}
