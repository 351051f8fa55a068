// One WebSocket to a node: requests with own ids, and the notifications between the answers.
//
// Opened by upstream.ts for forwarded subscriptions. Messages of the node are untrusted: their size is
// limited, and answers without a request are ignored. A silent or slow node, or one that sends invalid
// JSON-RPC, loses the socket. Nothing is sent twice: requests on a lost socket have failed.

import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { buildConnector, Client, ping, WebSocket } from "undici";
import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { type Json, writeJson } from "../../core/json-rpc/json-text.ts";
import type { NodeAnswer, NodeSocket, NodeSocketListener } from "../../core/json-rpc/node.ts";
import { isObject } from "../../core/values.ts";
import type { NodeAddress } from "./upstream-address.ts";
import { fieldsOf, type NodeMessage, readNodeMessage } from "./upstream-answer.ts";

/** An account of 3 MB in base64. A larger message closes the socket. */
export const socketMessageBytesMax = 4 * 1024 * 1024;
const fragmentsMax = 1024;
/** Requests that wait for the connection or for a node that does not read. */
const unsentBytesMax = 1024 * 1024;
const pingMs = 15_000;
/** Pings without an answer. */
const silentPingsMax = 3;

/** Reports pongs; the library reports them nowhere else. */
const pongs = new WeakMap<object, () => void>();
subscribe("undici:websocket:pong", (message) => {
  const socket = isObject(message) ? message["websocket"] : undefined;
  if (typeof socket === "object" && socket !== null) pongs.get(socket)?.();
});

/** A signature notification "received"; its result follows later. */
function isReceipt(result: string | undefined): boolean {
  const notified: unknown = result === undefined ? null : JSON.parse(result);
  return isObject(notified) && notified["value"] === "receivedSignature";
}

interface Question {
  readonly text: string;
  readonly timer: Timer;
  readonly done: (answer: NodeAnswer | ShredwayError) => void;
}

interface UpstreamSocketOptions {
  readonly address: NodeAddress;
  readonly listener: NodeSocketListener;
  readonly clock: Clock;
  /** Called once when it ends for any reason. */
  readonly ended: () => void;
  /** Time limit of an answer, including the time to connect. */
  readonly timeoutMs: number;
}

export class UpstreamSocket implements NodeSocket {
  readonly #options: UpstreamSocketOptions;
  readonly #client: Client;
  readonly #socket: WebSocket;
  readonly #pinging: Timer;
  readonly #questions = new Map<string, Question>();
  #tcp: Socket | undefined;
  #unsentBytes = 0;
  #silentPings = 0;
  #nextId = 1;
  #isOver = false;

  constructor(options: UpstreamSocketOptions) {
    const { address, clock, timeoutMs } = options;
    this.#options = options;
    this.#client = this.#newClient(address.origin.replace(/^ws/, "http"), timeoutMs);
    this.#socket = new WebSocket(`${address.origin}${address.path}`, {
      dispatcher: this.#client,
      headers: { ...address.headers },
    });
    this.#socket.binaryType = "arraybuffer";
    this.#listen(this.#socket);
    this.#pinging = clock.every(pingMs, () => this.#ping());
    pongs.set(this.#socket, () => {
      this.#silentPings = 0;
    });
  }

  get isOpen(): boolean {
    return !this.#isOver;
  }

  ask(method: string, params: readonly Json[], done: Question["done"]): void {
    const id = this.#nextId++;
    const text = writeJson({ jsonrpc: "2.0", id, method, params });
    const { clock, timeoutMs } = this.#options;
    if (this.#isOver || this.#socket.bufferedAmount + this.#unsentBytes > unsentBytesMax) {
      done(this.#failure("the connection accepts no more requests"));
      return;
    }
    // A late answer to a subscription would leave the subscription open, so a late node loses the
    // socket.
    const timer = clock.after(timeoutMs, () => this.#lose(`no answer within ${timeoutMs} ms`));
    this.#questions.set(String(id), { text, timer, done });
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text);
    else this.#unsentBytes += text.length;
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#pinging.cancel();
    for (const { timer } of this.#questions.values()) timer.cancel();
    this.#questions.clear();
    pongs.delete(this.#socket);
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close(1000);
    // Without waiting for the node's close frame, which may never arrive.
    this.#tcp?.destroySoon();
    this.#client.destroy().catch(() => undefined);
    this.#options.ended();
  }

  #listen(socket: WebSocket): void {
    socket.addEventListener("open", () => this.#opened());
    socket.addEventListener("message", ({ data }) => this.#message(data));
    socket.addEventListener("error", ({ error, message }) =>
      this.#lose(messageOf(error ?? message ?? "no connection")),
    );
    socket.addEventListener("close", ({ code }) =>
      this.#lose(`the node closed the connection with ${code}`),
    );
  }

  #newClient(origin: string, timeoutMs: number): Client {
    const connect = buildConnector({ timeout: timeoutMs });
    return new Client(origin, {
      webSocket: { maxPayloadSize: socketMessageBytesMax, maxFragments: fragmentsMax },
      connect: (options, done) =>
        connect(options, (...outcome) => {
          const [, tcp] = outcome;
          this.#tcp = tcp ?? undefined;
          if (this.#isOver) tcp?.destroy();
          done(...outcome);
        }),
    });
  }

  #opened(): void {
    if (this.#isOver) return;
    this.#unsentBytes = 0;
    for (const { text } of this.#questions.values()) this.#socket.send(text);
  }

  #message(data: unknown): void {
    if (this.#isOver) return;
    this.#silentPings = 0;
    if (typeof data !== "string") {
      this.#lose("expected text messages, got a binary one");
      return;
    }
    try {
      this.#receive(readNodeMessage(data, this.#options.address.mask));
    } catch (thrown) {
      if (!(thrown instanceof ShredwayError)) throw thrown;
      this.#lose(thrown.message);
    }
  }

  #receive({ id, method, params, answer }: NodeMessage): void {
    if (method !== undefined) {
      if (params) this.#notify(method, params.text);
      return;
    }
    const question = id === undefined ? undefined : this.#questions.get(id);
    if (!question || id === undefined) return;
    this.#questions.delete(id);
    question.timer.cancel();
    question.done(answer ?? this.#failure("expected a result or an error, got neither"));
  }

  #notify(method: string, params: string): void {
    const fields = params.startsWith("{") ? fieldsOf(params) : null;
    const subscription = fields?.get("subscription");
    if (subscription === undefined) return;
    this.#options.listener.notified({
      method,
      subscription,
      isLast: method === "signatureNotification" && !isReceipt(fields?.get("result")),
      text: `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${params}}`,
    });
  }

  #ping(): void {
    if (++this.#silentPings > silentPingsMax) {
      this.#lose(`no message or pong for ${(silentPingsMax * pingMs) / 1000} s`);
    } else if (this.#socket.readyState === WebSocket.OPEN) {
      ping(this.#socket);
    }
  }

  #lose(why: string): void {
    if (this.#isOver) return;
    const error = this.#failure(why);
    const open = [...this.#questions.values()];
    this.close();
    for (const { done } of open) done(error);
    this.#options.listener.lost(error);
  }

  #failure(why: string): ShredwayError {
    const { address } = this.#options;
    return new ShredwayError("rpc_failed", `WebSocket at ${address.host}: ${address.mask(why)}`);
  }
}
