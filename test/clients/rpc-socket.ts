// A bare WebSocket client: sends arbitrary texts, and waits for responses and notifications.

import Client from "ws";
import { isRpcAnswer, type RpcAnswer } from "./cluster.ts";

export interface Notification {
  readonly method: string;
  readonly params: { readonly subscription: number; readonly result: unknown };
}

function isNotification(value: unknown): value is Notification {
  return typeof value === "object" && value !== null && "method" in value;
}

export class RpcSocket {
  readonly raw: Client;
  /** Settles with the code when the connection ends. */
  readonly closed: Promise<number>;
  /** Messages that `next` has not returned yet. */
  readonly notifications: Notification[] = [];
  /** Received messages, in order. */
  readonly received: ("answer" | "notification")[] = [];
  readonly #answers = new Map<unknown, (answer: RpcAnswer) => void>();
  #wake: () => void = () => {};
  #nextId = 0;

  static async open(url: string): Promise<RpcSocket> {
    const socket = new RpcSocket(url);
    await new Promise((resolve, reject) => {
      socket.raw.once("open", resolve);
      socket.raw.once("error", reject);
    });
    return socket;
  }

  private constructor(url: string) {
    this.raw = new Client(url);
    this.closed = new Promise((resolve) => {
      this.raw.once("close", (code: number) => resolve(code));
    });
    this.raw.on("message", (data: Buffer) => this.#hear(JSON.parse(data.toString())));
  }

  #hear(value: unknown): void {
    if (isNotification(value)) {
      this.received.push("notification");
      this.notifications.push(value);
      this.#wake();
    } else if (isRpcAnswer(value)) {
      this.received.push("answer");
      this.#answers.get(value.id)?.(value);
      this.#answers.delete(value.id);
    }
  }

  /** The response with the id of `text`. */
  answerTo(text: string, id: unknown): Promise<RpcAnswer> {
    const answer = new Promise<RpcAnswer>((resolve) => this.#answers.set(id, resolve));
    this.raw.send(text);
    return answer;
  }

  call(method: string, params: readonly unknown[] = []): Promise<RpcAnswer> {
    const id = `call ${this.#nextId++}`;
    return this.answerTo(JSON.stringify({ jsonrpc: "2.0", id, method, params }), id);
  }

  /** The number of a new subscription. */
  async subscribe(kind: string, params: readonly unknown[] = []): Promise<number> {
    const { result, error } = await this.call(`${kind}Subscribe`, params);
    if (typeof result === "number") return result;
    throw new Error(`expected a subscription, got ${JSON.stringify(error)}`);
  }

  /** The result of the next notification of `subscription`, which is removed from the queue. */
  async next(subscription: number): Promise<unknown> {
    for (;;) {
      const at = this.notifications.findIndex((each) => each.params.subscription === subscription);
      const [found] = at < 0 ? [] : this.notifications.splice(at, 1);
      if (found) return found.params.result;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Stops reading. (The library can; its type declarations are older.) */
  pause(): void {
    const pause: unknown = Reflect.get(this.raw, "pause");
    if (typeof pause !== "function") throw new Error("expected a socket that can pause");
    Reflect.apply(pause, this.raw, []);
  }

  close(): void {
    this.raw.terminate();
  }
}
