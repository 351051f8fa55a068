// A lossy link in front of a UDP port on loopback: it loses packets in both directions, by seeded
// random numbers, delays them, and changes their order.
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
  /** Maximum of a random addition to the delay, which changes the order of packets; default 0. */
  jitterMs?: number;
  /** Longest payload that passes, as on a path whose MTU is smaller; default: no limit. */
  bytesMax?: number;
}

const answersMax = 100;

async function bound(host = "127.0.0.1"): Promise<Socket> {
  const type = host.includes(":") ? "udp6" : "udp4";
  const socket = createSocket({ type, recvBufferSize: 4 << 20 });
  socket.on("error", () => undefined);
  socket.bind(0, host);
  await once(socket, "listening");
  return socket;
}

export class LossyLink {
  /** These values may change at any time. */
  readonly quality: LinkQuality;
  passed = 0;
  lost = 0;
  /** Packets that were longer than `bytesMax`. */
  tooLong = 0;
  /** The first packets from the port, including lost ones. */
  readonly answers: Buffer[] = [];
  readonly #random: SeededRandom;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #front: Socket;
  readonly #backs = new Map<number, Promise<Socket>>();
  #isClosed = false;

  /** `target`: a port on 127.0.0.1, or a port of ::1. The link's own address is on 127.0.0.1. */
  static async open(
    target: number | { readonly host: "::1"; readonly port: number },
    quality: LinkQuality,
    seed = 1,
  ): Promise<LossyLink> {
    const to = typeof target === "number" ? { host: "127.0.0.1", port: target } : target;
    return new LossyLink(await bound(), to, quality, seed);
  }

  private constructor(
    front: Socket,
    target: { readonly host: string; readonly port: number },
    quality: LinkQuality,
    seed: number,
  ) {
    this.quality = { ...quality };
    this.#random = new SeededRandom(seed);
    this.#target = target;
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
    const { host, port: targetPort } = this.#target;
    this.#pass(packet, () => socket.send(packet, targetPort, host));
  }

  async #openBack(port: number): Promise<Socket> {
    const socket = await bound(this.#target.host);
    socket.on("message", (answer) => {
      if (this.answers.length < answersMax) this.answers.push(answer);
      this.#pass(answer, () => this.#front.send(answer, port, "127.0.0.1"));
    });
    return socket;
  }

  #pass(packet: Buffer, send: () => void): void {
    const { loss, delayMs = 0, jitterMs = 0, bytesMax = Number.POSITIVE_INFINITY } = this.quality;
    if (packet.length > bytesMax) {
      this.tooLong++;
      return;
    }
    if (this.#random.happens(loss)) {
      this.lost++;
      return;
    }
    this.passed++;
    const sendIfOpen = (): void => {
      if (!this.#isClosed) send();
    };
    const addedMs = jitterMs > 0 ? this.#random.below(jitterMs + 1) : 0;
    if (delayMs + addedMs > 0) setTimeout(sendIfOpen, delayMs + addedMs);
    else sendIfOpen();
  }
}
