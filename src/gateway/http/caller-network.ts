// Caller network: how connections of callers are accepted, and the time of their time-outs.
//
// node-engine.ts uses the kernel's, except in the simulation of the whole system (docs/simulation.md), which
// has one in memory.

import { createServer, type Server as TcpServer } from "node:net";
import type { Duplex } from "node:stream";
import { getSystemErrorMap } from "node:util";
import { systemClock, type Timer } from "../../core/clock.ts";
import { descriptorOf } from "../../core/socket-descriptor.ts";
import { native } from "../../relay/data-plane/native.ts";

/** Descriptors of a listening socket: libuv accepts one connection of each in a turn of the event loop. */
const acceptorsPerSocket = 16;

/** The part of a socket of node:net that connections of callers use. */
export interface CallerSocket extends Duplex {
  readonly remoteAddress?: string | undefined;
  /** Its number for the fast path; absent: the descriptor of a socket of node:net. */
  readonly descriptor?: number;
  /** Emits "timeout" after a time without activity; 0: never. */
  setTimeout(timeoutMs: number): this;
}

export interface CallerListener {
  readonly port: number;
  /** Stops accepting connections; open ones continue. */
  close(): void;
}

interface ListenAddress {
  readonly host: string;
  /** 0: the network chooses it. */
  readonly port: number;
  readonly isTls: boolean;
}

export interface CallerNetwork {
  /** Milliseconds since an arbitrary moment; never goes back. */
  nowMs(): number;
  /** Wall clock. */
  wallNs(): bigint;
  /** The timer does not keep the process alive. */
  every(periodMs: number, action: () => void): Timer;
  /** Why nothing can listen there; null: the port is free. */
  listenProblem(host: string, port: number): Promise<string | null>;
  /** null: the system refused. `connected` gets the socket of each connection, before TLS. */
  listen(
    address: ListenAddress,
    connected: (socket: CallerSocket) => void,
  ): Promise<CallerListener | null>;
}

function nothing(): void {}

/** Without them, new callers of a busy server wait for as many turns as connections are before them. */
function furtherAcceptors(server: TcpServer, acceptor: () => TcpServer): TcpServer[] {
  const listening = descriptorOf(server);
  if (listening === undefined) return [];
  const further: TcpServer[] = [];
  while (further.length < acceptorsPerSocket - 1) {
    const fd = native().duplicateDescriptor(listening);
    if (fd < 0) break;
    further.push(acceptor().on("error", nothing).listen({ fd }));
  }
  return further;
}

export const kernelCallers: CallerNetwork = {
  nowMs: () => performance.now(),
  wallNs: () => systemClock.nowNs(),
  every: (periodMs, action) => {
    const handle = setInterval(action, periodMs).unref();
    return { cancel: () => clearInterval(handle) };
  },
  listenProblem: (host, port) =>
    new Promise((resolve) => {
      const probe = createServer();
      probe.once("error", (error: NodeJS.ErrnoException) => {
        resolve(getSystemErrorMap().get(error.errno ?? 0)?.[1] ?? error.message);
      });
      probe.listen({ host, port, exclusive: true }, () => {
        probe.close(() => resolve(null));
      });
    }),
  listen: ({ host, port, isTls }, connected) => {
    const acceptor = (): TcpServer => {
      const server = createServer({ allowHalfOpen: !isTls, noDelay: true });
      server.on("connection", connected);
      return server;
    };
    const server = acceptor();
    return new Promise((resolve) => {
      server.once("error", () => resolve(null));
      server.listen({ host, port }, () => {
        const address = server.address();
        if (address === null || typeof address === "string") return resolve(null);
        const servers = [server, ...furtherAcceptors(server, acceptor)];
        const close = (): void => servers.forEach((each) => void each.close());
        return resolve({ port: address.port, close });
      });
    });
  },
};
