// Upstream: the node that calls of clients are passed on to.
//
// Opened by the service with `solana.rpc` and `solana.websocket`; asked by the gateway's read methods,
// preflight and subscriptions. Gives the node's own results and errors back as they are, and bounds
// all the rest: calls at once, calls that wait, time, size. Nothing is cached: an answer that a caller
// could tell from a fresh one is a wrong one. Addresses may hold keys, so errors name the host only.

import { Pool } from "undici";
import type { Clock } from "../../core/clock.ts";
import { isShredwayError, messageOf, ShredwayError } from "../../core/errors.ts";
import { type Json, writeJson } from "../../core/json-rpc/json-text.ts";
import type {
  NodeAnswer,
  NodeCalls,
  NodeSocket,
  NodeSocketListener,
  NodeSockets,
} from "../../core/json-rpc/node.ts";
import type { Logger } from "../../core/log.ts";
import { WarningInterval } from "../../core/rare-warning.ts";
import { isObject } from "../../core/values.ts";
import { httpAddress, type NodeAddress, webSocketAddress } from "./upstream-address.ts";
import { readNodeMessage } from "./upstream-answer.ts";
import { UpstreamSocket } from "./upstream-socket.ts";

/** Checking an answer stops everything else for a while, up to 10 ms per MB. */
export const answerBytesMax = 8 * 1024 * 1024;
const connectionsMax = 64;
const waitingMax = 1024;
const timeoutMsDefault = 10_000;
const keepAliveMs = 30_000;
const warnEveryMs = 10_000;

export interface UpstreamOptions {
  /** http or https. */
  readonly rpc: string;
  /** ws or wss; absent: as @solana/web3.js derives it from `rpc`. */
  readonly websocket?: string;
  readonly log?: Logger;
  readonly clock: Clock;
  /** For one call, its time in the queue included. Default 10 s. */
  readonly timeoutMs?: number;
  /** Calls at once, each on a kept-alive connection of its own. Default 64. */
  readonly connectionsMax?: number;
  /** Calls that wait for a connection; more are refused with "overloaded". Default 1,024. */
  readonly waitingMax?: number;
}

function codeOf(thrown: unknown): string {
  const code = isObject(thrown) ? thrown["code"] : undefined;
  return typeof code === "string" ? code : "no connection";
}

/** The connection ended before an answer: the node may have closed it while it was idle. */
function isCut(thrown: unknown): boolean {
  return ["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"].includes(codeOf(thrown));
}

export class Upstream implements NodeCalls, NodeSockets {
  /** Host and port, for messages; never the whole address. */
  readonly host: string;
  readonly #options: UpstreamOptions;
  readonly #address: NodeAddress;
  readonly #webSocketAddress: NodeAddress;
  readonly #timeoutMs: number;
  readonly #pool: Pool;
  readonly #connectionsMax: number;
  readonly #warnings: WarningInterval;
  readonly #waiting: (() => void)[] = [];
  readonly #sockets = new Set<NodeSocket>();
  #underWay = 0;
  #nextId = 1;
  #isClosed = false;

  /** Connects to nobody yet. Throws ShredwayError "value_invalid". */
  static open(options: UpstreamOptions): Upstream {
    return new Upstream(options);
  }

  private constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#warnings = new WarningInterval(options.clock, warnEveryMs);
    this.#address = httpAddress(options.rpc);
    this.#webSocketAddress = webSocketAddress(options.rpc, options.websocket);
    this.host = this.#address.host;
    this.#timeoutMs = options.timeoutMs ?? timeoutMsDefault;
    this.#connectionsMax = options.connectionsMax ?? connectionsMax;
    this.#pool = new Pool(this.#address.origin, {
      connections: this.#connectionsMax,
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      connect: { timeout: this.#timeoutMs },
      // The clock's own timer ends a call.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  async call(method: string, params: readonly Json[]): Promise<NodeAnswer> {
    const late = new AbortController();
    const timer = this.#options.clock.after(this.#timeoutMs, () => late.abort());
    try {
      await this.#enter(method, late.signal);
      try {
        return await this.#request(method, params, late.signal);
      } finally {
        this.#leave();
      }
    } catch (thrown) {
      throw this.#failure(method, thrown, late.signal.aborted);
    } finally {
      timer.cancel();
    }
  }

  /** Connects; the listener hears when that fails. */
  openSocket(listener: NodeSocketListener): NodeSocket {
    if (this.#isClosed) throw new ShredwayError("rpc_failed", `${this.host}: closed already`);
    const socket: NodeSocket = new UpstreamSocket({
      address: this.#webSocketAddress,
      clock: this.#options.clock,
      timeoutMs: this.#timeoutMs,
      ended: () => this.#sockets.delete(socket),
      listener: {
        notified: (notification) => listener.notified(notification),
        lost: (error) => {
          this.#options.log?.warn({ error: error.message }, "a WebSocket to the node was lost");
          listener.lost(error);
        },
      },
    });
    this.#sockets.add(socket);
    return socket;
  }

  /** Calls under way are refused, sockets closed. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const socket of this.#sockets) socket.close();
    for (const wake of this.#waiting.splice(0)) wake();
    await this.#pool.destroy();
  }

  /** Waits for a connection that is free. */
  async #enter(method: string, signal: AbortSignal): Promise<void> {
    if (this.#isClosed) throw new Error("closed already");
    if (this.#underWay < this.#connectionsMax) {
      this.#underWay++;
      return;
    }
    const max = this.#options.waitingMax ?? waitingMax;
    if (this.#waiting.length >= max) {
      throw new ShredwayError(
        "overloaded",
        `${method}: expected at most ${max} calls that wait for the node, got one more`,
      );
    }
    await new Promise<void>((resolve, reject) => {
      const wake = (): void => {
        signal.removeEventListener("abort", leave);
        if (this.#isClosed) reject(new Error("closed already"));
        else resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(wake), 1);
        reject(new Error("no connection was free"));
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(wake);
    });
  }

  /** The next in the queue takes the place over. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#underWay--;
  }

  async #request(
    method: string,
    params: readonly Json[],
    signal: AbortSignal,
  ): Promise<NodeAnswer> {
    const id = this.#nextId++;
    const text = await this.#post(writeJson({ jsonrpc: "2.0", id, method, params }), signal);
    const { id: answered, answer } = readNodeMessage(text, this.#address.mask);
    // An error that names no call can only be about this one.
    const isOurs = answered === String(id) || (answered === "null" && answer && "error" in answer);
    if (answer && isOurs) return answer;
    throw new Error(`expected a JSON-RPC answer with id ${id}, got another`);
  }

  async #post(body: string, signal: AbortSignal): Promise<string> {
    const request = {
      path: this.#address.path,
      method: "POST",
      headers: { "content-type": "application/json", ...this.#address.headers },
      body,
      signal,
    } as const;
    const response = await this.#pool.request(request).catch((thrown: unknown) => {
      if (!isCut(thrown) || this.#isClosed) throw thrown;
      return this.#pool.request(request);
    });
    if (response.statusCode !== 200) {
      await response.body.dump();
      throw new Error(`expected HTTP status 200, got ${response.statusCode}`);
    }
    const chunks: Uint8Array[] = [];
    let length = 0;
    // Left by an exception, the loop closes the connection.
    for await (const chunk of response.body) {
      const bytes: Uint8Array = chunk;
      length += bytes.length;
      if (length > answerBytesMax) throw new Error(`expected at most ${answerBytesMax} bytes`);
      chunks.push(bytes);
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  #failure(method: string, thrown: unknown, isLate: boolean): ShredwayError {
    if (isShredwayError(thrown, "overloaded")) return thrown;
    // Several addresses that all refuse have no message, only a code.
    const said = messageOf(thrown) || codeOf(thrown);
    const text = isLate ? `no answer within ${this.#timeoutMs} ms` : said;
    // The cause is left behind: its text and its stack may hold the whole address.
    this.#warn(method, this.#address.mask(text));
    return new ShredwayError(
      "rpc_failed",
      `${method} at ${this.host}: ${this.#address.mask(text)}`,
    );
  }

  /** At most one line in ten seconds: a node that is away fails every call. */
  #warn(method: string, text: string): void {
    if (!this.#warnings.begin()) return;
    this.#options.log?.warn(
      { method, host: this.host, error: text },
      "the node did not answer a call",
    );
  }
}
