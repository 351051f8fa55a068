// The UDP sockets of the TPU route: one per address family for all leaders.
//
// Owned by endpoint.ts. Addresses are always numeric, so sending needs no DNS lookup. A packet that
// the kernel refuses is counted; QUIC treats it as lost.

import type { RemoteInfo, Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import { openUdpSocket } from "../../relay/data-plane/udp-socket.ts";
import type { TpuAddress, TpuSettings } from "./types.ts";

type PacketListener = (packet: Uint8Array, from: RemoteInfo) => void;

interface BoundSocket {
  /** Bound address: QUIC's local address of the path. */
  readonly local: TpuAddress;
  send(packet: Uint8Array, to: TpuAddress): void;
}

/** Requested buffer size; the kernel may grant less. */
const bufferBytes = 4 * 1024 * 1024;

function bound(host: string, family: 4 | 6, listener: PacketListener): Socket {
  const socket = openUdpSocket({
    host,
    port: 0,
    recvBufferSize: bufferBytes,
    sendBufferSize: bufferBytes,
    // The default lookup is slow even for numeric addresses.
    lookup: (hostname, _options, callback) => callback(null, hostname, family),
  });
  return socket.on("message", listener);
}

export interface TpuSocketTable {
  /** Number of packets that could not be sent. */
  readonly failed: number;
  readonly lastFailure: string;
  /** null: this machine does not support the address family. */
  socketFor(remote: TpuAddress): BoundSocket | null;
  close(): void;
}

/** Opens the sockets of one endpoint. Throws if none can be opened. */
export type OpenTpuSockets = (
  bind: TpuSettings["bind"],
  listener: (packet: Uint8Array) => void,
) => TpuSocketTable;

class TpuSockets implements TpuSocketTable {
  #ipv4: Socket | null = null;
  #ipv6: Socket | null = null;
  #failed = 0;
  #lastFailure = "";
  /** Shared callback of all packets; without it, errors of the kernel would be ignored. */
  readonly #sent = (error: Error | null): void => {
    if (error) this.#fail(error);
  };

  /** Opens both families. One may be missing; throws if both are. */
  static open(bind: TpuSettings["bind"], listener: PacketListener): TpuSockets {
    const opened = new TpuSockets();
    let refusal: unknown;
    try {
      opened.#ipv4 = opened.#watched(bound(bind.ipv4, 4, listener));
    } catch (error) {
      refusal = error;
    }
    try {
      opened.#ipv6 = opened.#watched(bound(bind.ipv6, 6, listener));
    } catch {
      if (!opened.#ipv4) throw refusal;
    }
    return opened;
  }

  /** Number of packets that the kernel refused. */
  get failed(): number {
    return this.#failed;
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** null: this machine does not support the address family. */
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

export const openKernelSockets: OpenTpuSockets = (bind, listener) =>
  TpuSockets.open(bind, listener);
