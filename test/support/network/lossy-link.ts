// A bad link before a UDP port: loses packets both ways, by seeded chance, and delays them.
//
// For kernels whose traffic control has no netem. One socket towards each sender, so that the port
// behind sees as many addresses as there are senders.

import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";

export interface LinkQuality {
  /** Of the packets of each direction, 0 to 1. */
  loss: number;
  /** One way, ms. */
  delayMs: number;
}

export class LossyLink {
  /** May be changed at any time. */
  readonly quality: LinkQuality;
  passed = 0;
  lost = 0;
  readonly #random: SeededRandom;
  readonly #behind: number;
  readonly #outer: Socket;
  readonly #inner = new Map<string, Socket>();
  #isClosed = false;

  /** `behind`: "127.0.0.1:port". */
  static async open(behind: string, quality: LinkQuality, seed = 1): Promise<LossyLink> {
    const outer = createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
    outer.bind(0, "127.0.0.1");
    await once(outer, "listening");
    return new LossyLink(outer, parseEndpoint(behind).port, quality, seed);
  }

  private constructor(outer: Socket, behind: number, quality: LinkQuality, seed: number) {
    this.quality = { ...quality };
    this.#random = new SeededRandom(BigInt(seed));
    this.#behind = behind;
    this.#outer = outer;
    outer.on("message", (packet, from) => this.#inward(packet, from));
    outer.on("error", () => undefined);
  }

  get address(): string {
    return `127.0.0.1:${this.#outer.address().port}`;
  }

  close(): void {
    this.#isClosed = true;
    this.#outer.close();
    for (const socket of this.#inner.values()) socket.close();
  }

  #inward(packet: Buffer, from: RemoteInfo): void {
    const key = `${from.address} ${from.port}`;
    let inner = this.#inner.get(key);
    if (!inner) {
      inner = createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
      inner.on("message", (answer) =>
        this.#pass(() => this.#outer.send(answer, from.port, from.address)),
      );
      inner.on("error", () => undefined);
      this.#inner.set(key, inner);
    }
    const socket = inner;
    this.#pass(() => socket.send(packet, this.#behind, "127.0.0.1"));
  }

  #pass(send: () => void): void {
    if (this.#random.share() < this.quality.loss) {
      this.lost++;
      return;
    }
    this.passed++;
    setTimeout(() => {
      if (!this.#isClosed) send();
    }, this.quality.delayMs);
  }
}
