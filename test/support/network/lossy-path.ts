// A path that loses packets: a UDP relay on loopback, both ways, with repeatable chance.

import { createSocket, type Socket } from "node:dgram";
import { SeededRandom } from "../../../src/core/seeded-random.ts";

function bound(): Promise<Socket> {
  const socket = createSocket({ type: "udp4", recvBufferSize: 1 << 22 });
  return new Promise((resolve) => socket.bind(0, "127.0.0.1", () => resolve(socket)));
}

export class LossyPath {
  /** Packets that were lost. */
  lost = 0;
  passed = 0;
  /** Some of what came back from the target. */
  readonly seen: Buffer[] = [];
  /** Of 1. */
  loss: number;
  readonly #front: Socket;
  readonly #random: SeededRandom;
  readonly #targetPort: number;
  readonly #backs = new Map<number, Promise<Socket>>();

  static async open(targetPort: number, loss: number, seed: number): Promise<LossyPath> {
    return new LossyPath(await bound(), { targetPort, loss, seed });
  }

  private constructor(
    front: Socket,
    { targetPort, loss, seed }: { targetPort: number; loss: number; seed: number },
  ) {
    this.#front = front;
    this.#targetPort = targetPort;
    this.#random = new SeededRandom(seed);
    this.loss = loss;
    front.on("message", (packet, from) => void this.#forward(packet, from.port));
  }

  get address(): { host: string; port: number } {
    return { host: "127.0.0.1", port: this.#front.address().port };
  }

  /** Ports of those who sent something. */
  get callers(): number[] {
    return [...this.#backs.keys()];
  }

  close(): void {
    this.#front.close();
    for (const back of this.#backs.values()) void back.then((socket) => socket.close());
  }

  async #forward(packet: Buffer, port: number): Promise<void> {
    let back = this.#backs.get(port);
    if (!back) {
      back = this.#backOf(port);
      this.#backs.set(port, back);
    }
    const socket = await back;
    if (this.#passes()) socket.send(packet, this.#targetPort, "127.0.0.1");
  }

  async #backOf(port: number): Promise<Socket> {
    const socket = await bound();
    socket.on("message", (answer) => {
      if (this.seen.length < 100) this.seen.push(answer);
      if (this.#passes()) this.#front.send(answer, port, "127.0.0.1");
    });
    return socket;
  }

  #passes(): boolean {
    const isLost = this.#random.happens(this.loss);
    if (isLost) this.lost++;
    else this.passed++;
    return !isLost;
  }
}
