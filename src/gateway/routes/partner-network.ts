// Partner network: how connections to partners are made.
//
// open-route.ts passes it to everything that connects. The kernel's is used, except in the simulation of the
// whole system (docs/simulation.md), which has one in memory.

import { connect as connectTcp, isIP, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { buildConnector } from "undici";

interface ConnectAttempt {
  /** Ends the attempt without a call of its listener. */
  cancel(): void;
}

/** The part of a socket of node:net that connections to partners use. */
export interface PartnerSocket extends Duplex {
  /** Its number for the fast path; absent: the descriptor of a socket of node:net. */
  readonly descriptor?: number;
  setNoDelay(noDelay?: boolean): this;
  setKeepAlive(enable?: boolean): this;
}

export interface PartnerNetwork {
  /**
   * Begins to connect. The socket emits "connect", or "secureConnect" for https. `session`: the TLS session of
   * an earlier connection.
   */
  connect(origin: URL, session: Buffer | undefined): PartnerSocket;
  /** Connects and closes the connection again. Calls `done` once, with null if the partner accepted it. */
  probe(url: URL, timeoutMs: number, done: (error: Error | null) => void): ConnectAttempt;
}

/** The host name without the brackets of an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replaceAll(/^\[|\]$/g, "");
}

export const kernelNetwork: PartnerNetwork = {
  connect: (origin, session) => {
    const { port, protocol } = origin;
    const host = hostOf(origin);
    if (protocol !== "https:") return connectTcp({ host, port: Number(port || 80) });
    return connectTls({
      host,
      port: Number(port || 443),
      ...(isIP(host) === 0 && { servername: host }),
      ...(session && { session }),
      ALPNProtocols: ["http/1.1"],
    });
  },
  probe: (url, timeoutMs, done) => {
    const { protocol, host, port } = url;
    const connect = buildConnector({ timeout: timeoutMs, allowH2: false });
    const options = { protocol, host, hostname: hostOf(url), port };
    let isOver = false;
    const socket: unknown = connect(options, (...[error]) => {
      if (!isOver) done(error);
    });
    return {
      cancel: () => {
        isOver = true;
        if (socket instanceof Socket) socket.destroy();
      },
    };
  },
};
