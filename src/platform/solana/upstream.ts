// Upstream: the node that receives forwarded calls of clients.
//
// Opened by the service with `solana.rpc` and `solana.websocket`; called by the gateway's read methods,
// preflight and subscriptions. It returns the node's results and errors unchanged, and limits concurrent
// and queued calls, time and size. Nothing is cached, because a stale answer would be wrong. URLs may
// contain keys, so errors name only the host.

import { Pool } from "undici";
import type { Clock } from "../../core/clock.ts";
import { isShredwayError, messageOf, ShredwayError } from "../../core/errors.ts";
import { type CallParams, writeJson } from "../../core/json-rpc/json-text.ts";
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

/** Validating an answer blocks the event loop, up to 10 ms per MB. */
export const answerBytesMax = 8 * 1024 * 1024;
const connectionsMax = 64;
const waitingMax = 1024;
const timeoutMsDefault = 10_000;
const keepAliveMs = 30_000;
const warnEveryMs = 10_000;

export interface UpstreamOptions {
  /** http or https. */
  readonly rpc: string;
  /** ws or wss; absent: derived from `rpc` as in @solana/web3.js. */
  readonly websocket?: string;
  readonly log?: Logger;
  readonly clock: Clock;
  /** Time limit of one call, including its time in the queue. Default 10 s. */
  readonly timeoutMs?: number;
  /** Concurrent calls, each on its own keep-alive connection. Default 64. */
  readonly connectionsMax?: number;
  /** Calls that wait for a connection; more are rejected with "overloaded". Default 1,024. */
  readonly waitingMax?: number;
}

function codeOf(thrown: unknown): string {
  const code = isObject(thrown) ? thrown["code"] : undefined;
  return typeof code === "string" ? code : "no connection";
}

/** The connection ended before an answer; the node may have closed it while it was idle. */
function isCut(thrown: unknown): boolean {
  return ["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"].includes(codeOf(thrown));
}

export class Upstream implements NodeCalls, NodeSockets {
  /** Host and port for messages; never the whole URL. */
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

  /** Does not connect yet. Throws ShredwayError "value_invalid". */
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

  async call(method: string, params: CallParams): Promise<NodeAnswer> {
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

  /** Connects; a failure is reported to the listener. */
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
          this.#options.log?.warn({ error: messageOf(error) }, "a WebSocket to the node was lost");
          listener.lost(error);
        },
      },
    });
    this.#sockets.add(socket);
    return socket;
  }

  /** Rejects pending calls and closes sockets. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const socket of this.#sockets) socket.close();
    for (const wake of this.#waiting.splice(0)) wake();
    await this.#pool.destroy();
  }

  /** Waits for a free connection. */
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
        signal.removeEventListener("abort", release);
        if (this.#isClosed) reject(new Error("closed already"));
        else resolve();
      };
      const release = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(wake), 1);
        reject(new Error("no connection was free"));
      };
      signal.addEventListener("abort", release, { once: true });
      this.#waiting.push(wake);
    });
  }

  /** The next call in the queue uses the connection. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#underWay--;
  }

  async #request(method: string, params: CallParams, signal: AbortSignal): Promise<NodeAnswer> {
    const id = this.#nextId++;
    const text = await this.#post(writeJson({ jsonrpc: "2.0", id, method, params }), signal);
    const { id: answered, answer } = readNodeMessage(text, this.#address.mask);
    // An error without an id can only belong to this call.
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
    // An exception that leaves the loop closes the connection.
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
    // An error for several addresses has no message, only a code.
    const detail = messageOf(thrown) || codeOf(thrown);
    const text = isLate ? `no answer within ${this.#timeoutMs} ms` : detail;
    // Without the cause, whose text and stack may contain the whole URL.
    this.#warn(method, this.#address.mask(text));
    return new ShredwayError(
      "rpc_failed",
      `${method} at ${this.host}: ${this.#address.mask(text)}`,
    );
  }

  /** At most one line in ten seconds, because every call fails while the node is unreachable. */
  #warn(method: string, text: string): void {
    if (!this.#warnings.begin()) return;
    this.#options.log?.warn(
      { method, host: this.host, error: text },
      "the node did not answer a call",
    );
  }
}
