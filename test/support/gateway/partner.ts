// A test partner: a real HTTP server controlled by the test, and outbound transactions that record
// their events.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { RouteConfig } from "../../../src/core/configuration/configuration.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import type { OutboundTransaction, RouteEvent } from "../../../src/gateway/submission/types.ts";

export interface PartnerRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  readonly socket: Socket;
}

export type Behaviour = (request: PartnerRequest, response: ServerResponse) => void | Promise<void>;

/** A normal partner's response to one call or an array of calls. */
export function signaturesOf(body: Buffer): unknown {
  const parsed: unknown = JSON.parse(body.toString());
  const answer = (call: unknown): unknown => {
    const id = typeof call === "object" && call !== null && "id" in call ? call.id : null;
    return { jsonrpc: "2.0", id, result: "accepted" };
  };
  return Array.isArray(parsed) ? parsed.map(answer) : answer(parsed);
}

export const accepts: Behaviour = ({ method, body }, response) => {
  if (method === "POST") response.end(JSON.stringify(signaturesOf(body)));
  else response.writeHead(405).end();
};

export class Partner {
  readonly requests: PartnerRequest[] = [];
  readonly sockets = new Set<Socket>();
  behaviour: Behaviour = accepts;
  onConnection: () => void = () => undefined;
  readonly #server: Server;
  #waiting: { count: number; resolve: () => void }[] = [];

  static async open(port = 0): Promise<Partner> {
    const partner = new Partner();
    await new Promise<void>((resolve, reject) => {
      partner.#server.once("error", reject).listen(port, "127.0.0.1", resolve);
    });
    return partner;
  }

  private constructor() {
    this.#server = createServer((message, response) => {
      const chunks: Buffer[] = [];
      message.on("data", (chunk: Buffer) => chunks.push(chunk));
      message.on("error", () => undefined);
      message.on("end", () => {
        const { method = "", url = "", headers, socket } = message;
        const request = { method, url, headers, socket, body: Buffer.concat(chunks) };
        this.requests.push(request);
        this.#waiting = this.#waiting.filter(({ count, resolve }) => {
          if (this.requests.length < count) return true;
          resolve();
          return false;
        });
        void this.behaviour(request, response);
      });
    });
    this.#server.on("connection", (socket) => {
      this.sockets.add(socket);
      this.onConnection();
      socket.on("close", () => this.sockets.delete(socket));
      socket.on("error", () => undefined);
    });
  }

  get port(): number {
    const address: AddressInfo | string | null = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** POST requests only: probes are GETs. */
  get posts(): PartnerRequest[] {
    return this.requests.filter(({ method }) => method === "POST");
  }

  async received(count: number): Promise<void> {
    if (this.requests.length >= count) return;
    await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A complete configuration, with the schema's defaults. */
export function routeConfig(config: Partial<RouteConfig> & Pick<RouteConfig, "kind">): RouteConfig {
  return {
    name: "partner",
    headers: {},
    format: "json-rpc",
    bundles: true,
    transactions: true,
    mevSafe: false,
    minimumTipLamports: 0,
    callsPerRequest: 1,
    connectAheadSlots: 16,
    fanout: 2,
    connections: 8,
    queueMax: 1024,
    timeoutMs: 2000,
    ...config,
  };
}

/** An outbound transaction that records its events. */
export class TestOutbound implements OutboundTransaction {
  readonly mode: OutboundTransaction["mode"];
  readonly transactions: readonly TransactionFacts[];
  readonly revertProtection: boolean;
  readonly attempt = 1;
  readonly leader: string | null;
  readonly deniedLeaders: ReadonlySet<string>;
  readonly deadlineNs: bigint;
  readonly events: RouteEvent[] = [];
  /** The last event. */
  readonly ended: Promise<RouteEvent>;
  readonly sent: Promise<void>;
  onReport: (() => void) | undefined;
  #end: (event: RouteEvent) => void = () => undefined;
  #sent: () => void = () => undefined;

  constructor(
    transactions: readonly TransactionFacts[],
    options: Partial<
      Pick<
        OutboundTransaction,
        "mode" | "revertProtection" | "leader" | "deniedLeaders" | "deadlineNs"
      >
    > = {},
  ) {
    this.transactions = transactions;
    this.mode = options.mode ?? "transaction";
    this.revertProtection = options.revertProtection ?? false;
    this.leader = options.leader ?? null;
    this.deniedLeaders = options.deniedLeaders ?? new Set();
    this.deadlineNs = options.deadlineNs ?? 2n ** 63n;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.sent = new Promise((resolve) => {
      this.#sent = resolve;
    });
  }

  report(event: RouteEvent): void {
    this.events.push(event);
    if (event.kind === "sent") this.#sent();
    else this.#end(event);
    this.onReport?.();
  }

  get kinds(): string {
    return this.events.map(({ kind }) => kind).join(" ");
  }
}
