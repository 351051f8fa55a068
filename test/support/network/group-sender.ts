// A sender to multicast groups on loopback, for tests without privileges.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { closing } from "../closing.ts";

export class GroupSender {
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async open(): Promise<GroupSender> {
    const socket = createSocket("udp4");
    closing({ close: () => void socket.close() });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    socket.setMulticastInterface("127.0.0.1");
    return new GroupSender(socket);
  }

  /** Settles when the kernel has all packets. */
  async send(packets: readonly Uint8Array[], group: string, port: number): Promise<void> {
    for (const packet of packets) {
      await new Promise<void>((resolve, reject) =>
        this.#socket.send(packet, port, group, (error) => (error ? reject(error) : resolve())),
      );
    }
  }
}
