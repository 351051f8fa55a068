// Decoded streams on WebSockets of a real gateway, and clients of the package ws for them.

import { type ClientOptions, WebSocket } from "ws";
import { streamNotification } from "../../../src/gateway/endpoints/description/stream-schemas.ts";
import type { EngineName } from "../../../src/gateway/http/types.ts";
import { closing } from "../closing.ts";
import { schemaCheck } from "../gateway/described-answers.ts";
import { apiKey, GatewayRun } from "../gateway/gateway.ts";
import { until } from "../network/udp-receiver.ts";
import { type RunningStreams, runningStreams } from "./stream-clients.ts";

/** A key in the form of real ones, which a path may contain. */
export const streamKey = "sw_4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM";

const isDescribed = schemaCheck(streamNotification);

export interface SocketRun extends RunningStreams {
  readonly gateway: GatewayRun;
  /** "ws://ip:port". */
  readonly url: string;
}

/** `section`: as of runningStreams. The key belongs to an account of tier-1 with the scope stream. */
export async function streamSockets(
  section = "",
  engine: EngineName = "node",
  relayOptions: Parameters<typeof runningStreams>[1] = {},
): Promise<SocketRun> {
  const running = await runningStreams(section, relayOptions);
  const parts = { streams: () => running.service };
  const gateway = await GatewayRun.open({}, parts, engine);
  const key = apiKey(streamKey, { scopes: ["stream"] });
  gateway.keys.set(streamKey, key);
  running.keys.set(streamKey, key);
  running.tiers.set(key.accountId, "tier-1");
  return { ...running, gateway, url: gateway.url("").replace("http", "ws") };
}

interface Answer {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface Notification {
  readonly method: string;
  readonly params: { readonly subscription: number; readonly result: SocketResult };
}

/** The members of `result` in both dialects. */
export interface SocketResult {
  readonly context?: { readonly slot: number };
  readonly value?: {
    readonly slot: number;
    readonly signature: string;
    readonly withdrawnSignatures?: readonly string[];
  };
  readonly slot?: number;
  readonly signature?: string;
  readonly transaction?: unknown;
}

export class StreamSocket {
  readonly #socket: WebSocket;
  readonly #answers: Answer[] = [];
  readonly notifications: Notification[] = [];
  /** Texts in the order of their arrival. */
  readonly texts: string[] = [];
  end: { readonly code: number; readonly reason: string } | undefined;
  pings = 0;
  #id = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (bytes: Buffer) => this.#received(bytes.toString()));
    socket.on("ping", () => void this.pings++);
    socket.on("close", (code, reason) => {
      this.end = { code, reason: reason.toString() };
    });
  }

  static async open(url: string, options: ClientOptions = {}): Promise<StreamSocket> {
    const socket = new WebSocket(url, { perMessageDeflate: false, ...options });
    closing({ close: () => socket.terminate() });
    const opened = new StreamSocket(socket);
    await new Promise((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("unexpected-response", (_, response) =>
        reject(new Error(`HTTP ${response.statusCode}`)),
      );
      socket.once("error", reject);
    });
    return opened;
  }

  /** The response to a call. */
  async ask(method: string, params?: unknown): Promise<Answer> {
    const id = ++this.#id;
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    const found = (): Answer | undefined => this.#answers.find((answer) => answer.id === id);
    await until(() => found() !== undefined || this.end !== undefined, `the response to ${method}`);
    return found() ?? { error: { code: this.end?.code ?? 0, message: "closed" } };
  }

  /** The number of a new subscription. */
  async subscribe(method: string, params?: unknown): Promise<number> {
    const { result, error } = await this.ask(method, params);
    if (typeof result === "number") return result;
    throw new Error(`expected a subscription, got ${JSON.stringify(error)}`);
  }

  send(text: string): void {
    this.#socket.send(text);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.close();
  }

  /** Signatures of one slot that a subscription received, in their order. */
  signatures(slot: number, subscription?: number): string[] {
    return this.notifications.flatMap(({ method, params }) => {
      const { context, value, ...own } = params.result;
      const isWanted = subscription === undefined || params.subscription === subscription;
      const isTransaction = method !== "shredUpdateParentNotification";
      const signature = own.signature ?? value?.signature;
      return isWanted && isTransaction && (own.slot ?? context?.slot) === slot && signature
        ? [signature]
        : [];
    });
  }

  #received(text: string): void {
    this.texts.push(text);
    const message: Answer & Notification = JSON.parse(text);
    if (message.method === undefined) {
      this.#answers.push(message);
      return;
    }
    if (!isDescribed(message)) throw new Error(`expected the described form, got ${text}`);
    this.notifications.push(message);
  }
}

export function connectTo(
  { url }: SocketRun,
  path = `/stream?api-key=${streamKey}`,
): Promise<StreamSocket> {
  return StreamSocket.open(`${url}${path}`);
}

/** Waits until the relay uses the filters of this number of streams. */
export async function inForce({ service }: RunningStreams, streams: number): Promise<void> {
  await until(() => {
    const { accounts, filters } = service.status();
    const open = accounts.reduce((sum, each) => sum + each.open, 0);
    return open === streams && filters.isCurrent;
  }, `the filters of ${streams} streams`);
}
