// A plain UDP receiver on loopback, like a customer's.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";

export class UdpReceiver {
  readonly packets: Buffer[] = [];
  readonly #socket: Socket;
  readonly address: string;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const { address, port } = socket.address();
    this.address = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
    socket.on("message", (packet) => this.packets.push(packet));
  }

  static async open(host = "127.0.0.1"): Promise<UdpReceiver> {
    const socket = createSocket({
      type: host.includes(":") ? "udp6" : "udp4",
      recvBufferSize: 16 << 20,
    });
    socket.bind(0, host);
    await once(socket, "listening");
    return new UdpReceiver(socket);
  }

  async close(): Promise<void> {
    const closed = once(this.#socket, "close");
    this.#socket.close();
    await closed;
  }
}

const pauseMinMs = 2;
const pauseMaxMs = 16;

/**
 * Settles when the condition is true; throws after `timeoutMs`. The pauses between its checks grow with the wait,
 * because a test that waits long would else take CPU time from what it waits for.
 */
export async function until(
  condition: () => boolean,
  what: string,
  timeoutMs = 60_000,
): Promise<void> {
  const begin = performance.now();
  while (!condition()) {
    const waitedMs = performance.now() - begin;
    if (waitedMs > timeoutMs) throw new Error(`timeout after ${timeoutMs} ms, expected: ${what}`);
    const pauseMs = Math.min(Math.max(waitedMs / 8, pauseMinMs), pauseMaxMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
