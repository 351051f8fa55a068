// A lossy link in front of a UDP port on loopback: it loses packets in both directions, by seeded
// random numbers, and delays them.
//
// For kernels whose traffic control has no netem. Each sender gets its own socket towards the port,
// so that the port sees one address per sender. DelayLink is for TCP, between namespaces.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { SeededRandom } from "../../../src/core/seeded-random.ts";

export interface LinkQuality {
  /** Share of lost packets in each direction, 0 to 1. */
  loss: number;
  /** One-way delay in ms; default 0: packets are forwarded immediately. */
  delayMs?: number;
}

const answersMax = 100;

async function bound(): Promise<Socket> {
  const socket = createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
  socket.on("error", () => undefined);
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}

export class LossyLink {
  /** These values may change at any time. */
  readonly quality: LinkQuality;
  passed = 0;
  lost = 0;
  /** The first packets from the port, including lost ones. */
  readonly answers: Buffer[] = [];
  readonly #random: SeededRandom;
  readonly #targetPort: number;
  readonly #front: Socket;
  readonly #backs = new Map<number, Promise<Socket>>();
  #isClosed = false;

  /** `targetPort`: on 127.0.0.1. */
  static async open(targetPort: number, quality: LinkQuality, seed = 1): Promise<LossyLink> {
    return new LossyLink(await bound(), targetPort, quality, seed);
  }

  private constructor(front: Socket, targetPort: number, quality: LinkQuality, seed: number) {
    this.quality = { ...quality };
    this.#random = new SeededRandom(seed);
    this.#targetPort = targetPort;
    this.#front = front;
    front.on("message", (packet, { port }) => void this.#forward(packet, port));
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.#front.address().port };
  }

  /** Ports of the senders. */
  get callers(): number[] {
    return [...this.#backs.keys()];
  }

  close(): void {
    this.#isClosed = true;
    this.#front.close();
    for (const back of this.#backs.values()) void back.then((socket) => socket.close());
  }

  async #forward(packet: Buffer, port: number): Promise<void> {
    let back = this.#backs.get(port);
    if (!back) {
      back = this.#openBack(port);
      this.#backs.set(port, back);
    }
    const socket = await back;
    this.#pass(() => socket.send(packet, this.#targetPort, "127.0.0.1"));
  }

  async #openBack(port: number): Promise<Socket> {
    const socket = await bound();
    socket.on("message", (answer) => {
      if (this.answers.length < answersMax) this.answers.push(answer);
      this.#pass(() => this.#front.send(answer, port, "127.0.0.1"));
    });
    return socket;
  }

  #pass(send: () => void): void {
    const { loss, delayMs = 0 } = this.quality;
    if (this.#random.happens(loss)) {
      this.lost++;
      return;
    }
    this.passed++;
    const sendIfOpen = (): void => {
      if (!this.#isClosed) send();
    };
    if (delayMs > 0) setTimeout(sendIfOpen, delayMs);
    else sendIfOpen();
  }
}
