// FaultInjector: a TCP proxy before a server that can cut and reject connections.
//
// Opened by partner-endpoint.ts. The web server itself can only close permanently; this proxy cuts
// existing connections, rejects new ones for a time, and accepts again on the same port.

import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import {
  type Endpoint,
  formatAddress,
  formatEndpoint,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";

export class FaultInjector {
  readonly #inner: { readonly host: string; readonly port: number };
  #outer: Endpoint;
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();

  /** `listen`: "ip:port", with port 0 the kernel chooses; `inner`: "ip:port" of the server. */
  static async open(listen: string, inner: string): Promise<FaultInjector> {
    const gate = new FaultInjector(listen, inner);
    await gate.start();
    return gate;
  }

  private constructor(listen: string, inner: string) {
    const { bytes, port } = parseEndpoint(inner);
    this.#inner = { host: formatAddress(bytes), port };
    this.#outer = parseEndpoint(listen, { allowPortZero: true });
  }

  get address(): string {
    return formatEndpoint(this.#outer);
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts all connections and rejects new ones from now on. */
  stop(): void {
    this.#server?.close();
    this.#server = undefined;
    this.cut();
  }

  /** Listens on the same port as before. Throws ShredwayError "http_open". */
  async start(): Promise<void> {
    if (this.#server) return;
    const server = createServer({ noDelay: true }, (socket) => this.#pass(socket));
    this.#server = server;
    server.listen(this.#outer.port, formatAddress(this.#outer.bytes));
    try {
      await once(server, "listening");
    } catch (cause) {
      this.#server = undefined;
      const message = `cannot listen on ${this.address}: ${messageOf(cause)}`;
      throw new ShredwayError("http_open", message, { cause });
    }
    const address = server.address();
    if (typeof address === "object" && address)
      this.#outer = { ...this.#outer, port: address.port };
  }

  #pass(outside: Socket): void {
    const inside = connect({ ...this.#inner, noDelay: true });
    for (const [one, other] of [
      [outside, inside],
      [inside, outside],
    ] as const) {
      this.#sockets.add(one);
      // Errors end in "close". If one side closes, the other side is closed.
      one.on("error", () => undefined);
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}
