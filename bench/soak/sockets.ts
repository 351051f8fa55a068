// WebSockets of the load: each kind is open all the time, and opened again after a random time.

import { WebSocket } from "ws";
import { systemClock } from "../../src/core/clock.ts";
import { SeededRandom } from "../../src/core/seeded-random.ts";

export interface SocketCounts {
  opened: number;
  failed: number;
  /** Closed by the service. */
  closed: number;
  messages: number;
}

interface SocketKind {
  readonly path: string;
  /** Sent after the opening. */
  readonly request?: string;
}

const lifeMsMax = 30_000;
const retryMs = 500;

export class Sockets {
  readonly counts = new Map<string, SocketCounts>();
  readonly #url: string;
  readonly #apiKey: string;
  readonly #random: SeededRandom;

  constructor(options: { readonly url: string; readonly apiKey: string; readonly seed: number }) {
    this.#url = options.url.replace(/^http/, "ws");
    this.#apiKey = options.apiKey;
    this.#random = new SeededRandom(options.seed);
  }

  async run(stopped: AbortSignal): Promise<void> {
    const key = `api-key=${this.#apiKey}`;
    const subscribe = (method: string) =>
      JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] });
    const kinds: Record<string, SocketKind> = {
      "/status": { path: `/status?${key}` },
      "/tip_stream": { path: "/tip_stream" },
      slotSubscribe: { path: `/relay?${key}`, request: subscribe("slotSubscribe") },
      rootSubscribe: { path: `/?${key}`, request: subscribe("rootSubscribe") },
    };
    const all = Object.entries(kinds).map(([name, kind]) => this.#keep({ name, ...kind }, stopped));
    await Promise.all(all);
  }

  async #keep(kind: SocketKind & { readonly name: string }, stopped: AbortSignal): Promise<void> {
    const counts: SocketCounts = { opened: 0, failed: 0, closed: 0, messages: 0 };
    this.counts.set(kind.name, counts);
    while (!stopped.aborted) {
      const isOpened = await this.#use(kind, counts, stopped);
      if (!isOpened) await systemClock.sleep(retryMs, stopped);
    }
  }

  /** One connection from its opening to its end. */
  #use(kind: SocketKind, counts: SocketCounts, stopped: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = new WebSocket(`${this.#url}${kind.path}`, { handshakeTimeout: 10_000 });
      let isOpened = false;
      let isOurs = false;
      const end = () => {
        isOurs = true;
        socket.close();
      };
      const life = systemClock.after(lifeMsMax * (0.1 + 0.9 * this.#random.share()), end);
      stopped.addEventListener("abort", end);
      socket.on("open", () => {
        isOpened = true;
        counts.opened++;
        if (kind.request !== undefined) socket.send(kind.request);
      });
      socket.on("message", () => counts.messages++);
      socket.on("error", () => {});
      socket.on("close", () => {
        life.cancel();
        stopped.removeEventListener("abort", end);
        if (!isOurs) counts[isOpened ? "closed" : "failed"]++;
        resolve(isOpened);
      });
    });
  }
}
