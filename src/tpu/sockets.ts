// The UDP sockets of the direct route: one for each address family, for all leaders.
//
// Owned by endpoint.ts. Sends at once: the address is never looked up, for it is always a number. What
// the kernel refuses is counted and otherwise a lost packet, which QUIC knows how to deal with.

import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import type { TpuAddress } from "./types.ts";

export type PacketListener = (packet: Uint8Array, from: RemoteInfo) => void;

export interface BoundSocket {
  /** Where it is bound: what QUIC calls this end of the path. */
  readonly local: TpuAddress;
  send(packet: Uint8Array, to: TpuAddress): void;
}

/** Asked for; the kernel gives what it allows. */
const bufferBytes = 4 * 1024 * 1024;

function bound(host: string, family: 4 | 6, listener: PacketListener): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket({
      type: family === 4 ? "udp4" : "udp6",
      ipv6Only: family === 6,
      recvBufferSize: bufferBytes,
      sendBufferSize: bufferBytes,
      // The default one takes its time, for numbers, too.
      lookup: (hostname, _options, callback) => callback(null, hostname, family),
    });
    const fail = (error: Error): void => {
      socket.close();
      reject(error);
    };
    socket.once("error", fail);
    socket.bind({ address: host, port: 0, exclusive: true }, () => {
      socket.off("error", fail);
      socket.on("message", listener);
      resolve(socket);
    });
  });
}

export class TpuSockets {
  #ipv4: Socket | null = null;
  #ipv6: Socket | null = null;
  #failed = 0;
  #lastFailure = "";
  /** One for all packets. Without it the kernel's refusals would be heard by nobody. */
  readonly #sent = (error: Error | null): void => {
    if (error) this.#fail(error);
  };

  /** A machine without one of the families goes on without it; rejects when it has neither. */
  static async open(
    bind: { readonly ipv4: string; readonly ipv6: string },
    listener: PacketListener,
  ): Promise<TpuSockets> {
    const opened = new TpuSockets();
    const [ipv4, ipv6] = await Promise.allSettled([
      bound(bind.ipv4, 4, listener),
      bound(bind.ipv6, 6, listener),
    ]);
    if (ipv4.status === "fulfilled") opened.#ipv4 = opened.#watched(ipv4.value);
    if (ipv6.status === "fulfilled") opened.#ipv6 = opened.#watched(ipv6.value);
    if (ipv4.status === "rejected" && ipv6.status === "rejected") throw ipv4.reason;
    return opened;
  }

  /** Packets that the kernel refused. */
  get failed(): number {
    return this.#failed;
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Null: this machine has no such family. */
  socketFor({ host }: TpuAddress): BoundSocket | null {
    const socket = isIPv6(host) ? this.#ipv6 : this.#ipv4;
    if (!socket) return null;
    const { address, port } = socket.address();
    return {
      local: { host: address, port },
      send: (packet, to) => {
        try {
          socket.send(packet, to.port, to.host, this.#sent);
        } catch (error) {
          this.#fail(error);
        }
      },
    };
  }

  close(): void {
    this.#ipv4?.close();
    this.#ipv6?.close();
    this.#ipv4 = null;
    this.#ipv6 = null;
  }

  #watched(socket: Socket): Socket {
    socket.on("error", (error: Error) => this.#fail(error));
    return socket;
  }

  #fail(error: unknown): void {
    this.#failed++;
    this.#lastFailure = error instanceof Error ? error.message : String(error);
  }
}
