// HttpServerGroup: several HTTP servers of one service, each with its own listeners and handlers.
//
// Its owner opens, drains and closes them together.

import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/log.ts";
import { HttpServer } from "./server.ts";
import type { HttpServerOptions } from "./types.ts";

export class HttpServerGroup {
  readonly #servers: readonly HttpServer[];

  private constructor(servers: readonly HttpServer[]) {
    this.#servers = servers;
  }

  /** Throws like HttpServer.open and then leaves no server open. */
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

  /** In the order of the servers and of `listen`, with the bound ports. */
  get addresses(): readonly string[] {
    return this.#servers.flatMap(({ addresses }) => addresses);
  }

  /** The same for each server. */
  get addressesByServer(): readonly (readonly string[])[] {
    return this.#servers.map(({ addresses }) => addresses);
  }

  /** The same for TLS listeners. */
  get tlsAddresses(): readonly string[] {
    return this.#servers.flatMap(({ tlsAddresses }) => tlsAddresses);
  }

  /** HTTP and WebSocket together. */
  get connections(): number {
    return this.#servers.reduce((total, { connections }) => total + connections, 0);
  }

  /** Connections closed since the start because too many were open. */
  get connectionsOverLimit(): number {
    return this.#servers.reduce((total, server) => total + server.connectionsOverLimit, 0);
  }

  /** Open WebSockets by path. */
  get webSockets(): ReadonlyMap<string, number> {
    return this.#summed(({ webSockets }) => webSockets);
  }

  /** WebSockets closed since the start because the peer sent too much, by path. */
  get webSocketsOverLimit(): ReadonlyMap<string, number> {
    return this.#summed(({ webSocketsOverLimit }) => webSocketsOverLimit);
  }

  /** Drains all servers concurrently; see HttpServer. */
  async drain(graceMs: number, clock: Clock): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.drain(graceMs, clock)));
  }

  /** Closes immediately. Idempotent. */
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
