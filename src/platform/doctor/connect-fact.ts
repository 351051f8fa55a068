// Whether a TCP connection to the host of a URL is possible, and from which local address.
//
// Used by service-facts.ts and shredstream-facts.ts. It connects and sends nothing.

import { connect } from "node:net";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";

interface ConnectFact {
  /** null: connected. */
  readonly error: string | null;
  readonly connectMs: number;
  /** This end of the connection; null: not connected. */
  readonly localAddress: string | null;
}

const timeoutMs = 3000;

/** Host and port of a URL of http or https. */
export function hostAndPortOf(url: string): { readonly host: string; readonly port: number } {
  const { protocol, hostname, port } = new URL(url);
  return {
    host: hostname.replaceAll(/[[\]]/g, ""),
    port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
  };
}

/** `family`: address family for a host name; absent: the first address of the name. */
export function connectFact(url: string, clock: Clock, family?: 4 | 6): Promise<ConnectFact> {
  const beganNs = clock.monotonicNs();
  return new Promise((resolve) => {
    const socket = connect({ ...hostAndPortOf(url), ...(family !== undefined && { family }) });
    const end = (error: string | null) => {
      timer.cancel();
      const localAddress = error === null ? (socket.localAddress ?? null) : null;
      socket.destroy();
      const connectMs = Number(clock.monotonicNs() - beganNs) / 1e6;
      resolve({ error, connectMs, localAddress });
    };
    const timer = clock.after(timeoutMs, () => end(`no connection within ${timeoutMs} ms`));
    socket.once("connect", () => end(null));
    socket.once("error", (error) => end(messageOf(error)));
  });
}
