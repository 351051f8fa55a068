// One client's WebSocket and the node's WebSocket that belongs to it.
//
// Made by subscriptions.ts for every connection. Each client has a connection to the node of its own,
// opened with its first subscription: numbers of subscriptions are the node's, nothing is shared, and
// the end of either side is the end of the other. Answers go out before the notifications that came
// after them, whatever else is under way; nothing is told twice and nothing is left out.

import { quote, ShredwayError } from "../../core/errors.ts";
import { answerJsonRpc, type JsonRpcOptions } from "../../core/json-rpc/handle.ts";
import type { Json, JsonText } from "../../core/json-rpc/json-text.ts";
import type {
  NodeAnswer,
  NodeNotification,
  NodeSocket,
  NodeSockets,
} from "../../core/json-rpc/node.ts";
import { PassedError } from "../../core/json-rpc/refusal.ts";
import type { WebSocketPeer } from "../http/types.ts";
import { upstreamMissing } from "./read-methods.ts";

/** The names before Subscribe, Unsubscribe and Notification. */
export const subscriptionKinds = ["account", "logs", "root", "signature", "slot"] as const;
const methodShape = new RegExp(`^(${subscriptionKinds.join("|")})(Subscribe|Unsubscribe)$`);
const notificationShape = new RegExp(`^(${subscriptionKinds.join("|")})Notification$`);

export interface SessionLimits {
  /** Live and asked for. */
  readonly subscriptionsMax: number;
  /** Messages of the client that are not answered yet. */
  readonly underWayMax: number;
  /** Notifications that wait for an answer to go out. */
  readonly heldBytesMax: number;
}

interface SessionOptions {
  readonly node: NodeSockets | null;
  /** Everything but `dispatch`. */
  readonly jsonRpc: Omit<JsonRpcOptions, "dispatch">;
  /** Throws ShredwayError unless the caller may subscribe. */
  checkScope(method: string): void;
  /** All other methods; throws ShredwayError. */
  dispatch(method: string, params: readonly Json[]): unknown;
  readonly limits: SessionLimits;
}

/** A message of the client on its way. */
interface Message {
  /** It waits for the node, or the node's answer for being sent. */
  asksNode: boolean;
}

export class SubscriptionSession {
  readonly #peer: WebSocketPeer;
  readonly #options: SessionOptions;
  readonly #subscriptions = new Set<string>();
  readonly #underWay = new Set<Message>();
  /** Answers of the node that have not gone out: what follows them waits. */
  readonly #answered = new Set<Message>();
  #held: string[] = [];
  #heldBytes = 0;
  #asked = 0;
  #node: NodeSocket | null = null;
  #loss: ShredwayError | null = null;
  #isClosed = false;

  constructor(peer: WebSocketPeer, options: SessionOptions) {
    this.#peer = peer;
    this.#options = options;
  }

  message(text: string): void {
    if (this.#underWay.size >= this.#options.limits.underWayMax) {
      const { underWayMax } = this.#options.limits;
      this.#peer.close(1008, `expected at most ${underWayMax} messages under way`);
      return;
    }
    void this.#handle(text);
  }

  closed(): void {
    this.#isClosed = true;
    this.#held = [];
    this.#node?.close();
    this.#node = null;
  }

  /** Never rejects: answerJsonRpc does not. */
  async #handle(text: string): Promise<void> {
    const message: Message = { asksNode: false };
    this.#underWay.add(message);
    const { jsonRpc } = this.#options;
    const answer = await answerJsonRpc(text, {
      ...jsonRpc,
      dispatch: (method, params) => this.#dispatch(message, method, params),
    });
    this.#underWay.delete(message);
    this.#answered.delete(message);
    if (this.#isClosed) return;
    if (answer.text !== "") this.#peer.send(answer.text);
    this.#release();
  }

  #dispatch(message: Message, method: string, params: readonly Json[]): unknown {
    if (this.#isClosed) throw new ShredwayError("request_invalid", "the connection is closed");
    const [, kind, verb] = methodShape.exec(method) ?? [];
    if (kind === undefined) return this.#options.dispatch(method, params);
    this.#options.checkScope(method);
    if (!this.#options.node) throw upstreamMissing(method);
    if (verb === "Unsubscribe") return this.#unsubscribe(message, method, params);
    const { subscriptionsMax } = this.#options.limits;
    if (this.#subscriptions.size + this.#asked >= subscriptionsMax) {
      throw new ShredwayError(
        "request_invalid",
        `${method}: expected at most ${subscriptionsMax} subscriptions on a connection, got one more`,
      );
    }
    return this.#subscribe(message, method, params);
  }

  async #subscribe(message: Message, method: string, params: readonly Json[]): Promise<JsonText> {
    this.#asked++;
    return this.#ask(message, method, params, (answer) => {
      this.#asked--;
      if ("result" in answer) this.#subscriptions.add(answer.result.text);
    });
  }

  async #unsubscribe(message: Message, method: string, params: readonly Json[]): Promise<JsonText> {
    const [number] = params;
    const name = typeof number === "number" || typeof number === "bigint" ? String(number) : "";
    // The node would say the same; asking it would open a connection for nothing.
    if (!this.#subscriptions.has(name)) {
      throw new ShredwayError(
        "value_invalid",
        `${method}: expected the number of a subscription of this connection, got ${quote(number)}`,
      );
    }
    return this.#ask(message, method, params, (answer) => {
      if ("result" in answer) this.#subscriptions.delete(name);
    });
  }

  /** `settled` hears of an answer, also of a failure, before anything that the node says next. */
  #ask(
    message: Message,
    method: string,
    params: readonly Json[],
    settled: (answer: NodeAnswer | ShredwayError) => void,
  ): Promise<JsonText> {
    const socket = this.#connected();
    message.asksNode = true;
    return new Promise((resolve, reject) => {
      socket.ask(method, params, (answer) => {
        settled(answer);
        this.#answered.add(message);
        if (answer instanceof ShredwayError) reject(answer);
        else if ("error" in answer) reject(new PassedError(answer.error));
        else resolve(answer.result);
      });
    });
  }

  #connected(): NodeSocket {
    if (this.#loss) throw this.#loss;
    if (this.#node?.isOpen) return this.#node;
    const { node } = this.#options;
    if (!node) throw upstreamMissing("a subscription");
    this.#node = node.openSocket({
      notified: (notification) => this.#notified(notification),
      lost: (error) => this.#lost(error),
    });
    return this.#node;
  }

  #notified({ method, subscription, isLast, text }: NodeNotification): void {
    if (this.#isClosed || !notificationShape.test(method)) return;
    if (isLast) this.#subscriptions.delete(subscription);
    if (this.#answered.size === 0) {
      this.#peer.send(text);
      return;
    }
    this.#held.push(text);
    this.#heldBytes += text.length;
    const { heldBytesMax } = this.#options.limits;
    if (this.#heldBytes > heldBytesMax) {
      this.#peer.close(1013, `expected at most ${heldBytesMax} bytes behind an answer`);
    }
  }

  /** What waited for answers, once all of them are out. */
  #release(): void {
    if (this.#answered.size > 0) return;
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    for (const text of held) if (!this.#peer.send(text)) return;
    this.#closeWhenLost();
  }

  #lost(error: ShredwayError): void {
    this.#loss = error;
    this.#closeWhenLost();
  }

  /** Not before everybody who asked was told. */
  #closeWhenLost(): void {
    if (!this.#loss || this.#isClosed) return;
    for (const message of this.#underWay) if (message.asksNode) return;
    this.#peer.close(1013, "the connection to the node was lost");
  }
}
