// A TCP proxy in front of a gateway that counts, cuts and rejects connections.

import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class CutProxy {
  /** Number of accepted connections. */
  accepted = 0;
  /** Closes new connections immediately. */
  refuses = false;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(to: URL) {
    this.#server = createServer((caller) => {
      this.accepted++;
      if (this.refuses) {
        caller.destroy();
        return;
      }
      const service = connect(Number(to.port), to.hostname);
      for (const [socket, other] of [
        [caller, service],
        [service, caller],
      ] as const) {
        this.#open.add(socket);
        socket.setNoDelay(true);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          this.#open.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
  }

  static async open(to: string): Promise<CutProxy> {
    const proxy = new CutProxy(new URL(to));
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** Returns `url` with the address of this proxy. */
  through(url: string): string {
    const address = this.#server.address();
    const through = new URL(url);
    if (address !== null && typeof address === "object") through.port = String(address.port);
    return through.href;
  }

  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.cut();
    await closed;
  }
}
