// Forwards the subscriptions of one client's WebSocket over a node connection of its own.
//
// subscriptions.ts creates one per client connection. The first subscription opens the node
// connection. Connections are not shared, because the node assigns the subscription numbers; if one
// side closes, the other is closed too. A response is always sent before the notifications that the
// node sent after it; none is lost or duplicated.

import type { Clock } from "../../core/clock.ts";
import { quote, type Reason, ShredwayError } from "../../core/errors.ts";
import { answerJsonRpc, type JsonRpcOptions } from "../../core/json-rpc/handle.ts";
import type { Json, JsonText } from "../../core/json-rpc/json-text.ts";
import type {
  NodeAnswer,
  NodeNotification,
  NodeSocket,
  NodeSockets,
} from "../../core/json-rpc/node.ts";
import { ForwardedError, reasonOf } from "../../core/json-rpc/refusal.ts";
import type { WebSocketPeer } from "../http/types.ts";
import { upstreamMissing } from "./read-methods.ts";

/** Prefixes of Subscribe, Unsubscribe and Notification. */
export const subscriptionKinds = ["account", "logs", "root", "signature", "slot"] as const;
export const subscriptionMethods: readonly string[] = subscriptionKinds.flatMap((kind) => [
  `${kind}Subscribe`,
  `${kind}Unsubscribe`,
]);
const methodShape = new RegExp(`^(${subscriptionKinds.join("|")})(Subscribe|Unsubscribe)$`);
const notificationShape = new RegExp(`^(${subscriptionKinds.join("|")})Notification$`);

export interface SessionLimits {
  /** Active and requested subscriptions. */
  readonly subscriptionsMax: number;
  /** Unanswered messages of the client. */
  readonly underWayMax: number;
  /** Size of the notifications that wait until an earlier response is sent. */
  readonly heldBytesMax: number;
}

/**
 * @solana/web3.js repeats a refused subscription as soon as it has the response. After the first refusals of a
 * connection, each response waits, so that the connection stays within its message rate.
 */
const refusalsAtOnce = 10;
const refusalPauseMs = 1000;
/** Reasons that hold for every subscription of this kind on the connection, whatever its parameters are. */
const lastingReasons: ReadonlySet<Reason> = new Set([
  "method_unknown",
  "upstream_missing",
  "scope_missing",
  "request_invalid", // too many subscriptions
]);

interface SessionOptions {
  readonly clock: Pick<Clock, "sleep">;
  readonly node: NodeSockets | null;
  /** All options except `dispatch`. */
  readonly jsonRpc: Omit<JsonRpcOptions, "dispatch">;
  /** Throws ShredwayError unless the caller may subscribe. */
  checkScope(method: string): void;
  /**
   * Runs all other methods; throws ShredwayError. `afterResponse` calls its argument when the response
   * was sent.
   */
  dispatch(
    method: string,
    params: readonly Json[],
    afterResponse: (call: () => void) => void,
  ): unknown;
  readonly limits: SessionLimits;
}

/** A client message that is being processed. */
interface Message {
  /** It waits for the node, or its response is not sent yet. */
  asksNode: boolean;
  /** It contains a subscription that was refused for a lasting reason. */
  isRefused: boolean;
  /** To call when its response was sent. */
  readonly afterResponse: (() => void)[];
}

export class SubscriptionSession {
  readonly #peer: WebSocketPeer;
  readonly #options: SessionOptions;
  readonly #subscriptions = new Set<string>();
  readonly #underWay = new Set<Message>();
  /** Messages whose node response is not sent yet; later notifications wait for them. */
  readonly #answered = new Set<Message>();
  #held: string[] = [];
  #heldBytes = 0;
  #asked = 0;
  #node: NodeSocket | null = null;
  #loss: ShredwayError | null = null;
  #refusals = 0;
  readonly #ended = new AbortController();

  constructor(peer: WebSocketPeer, options: SessionOptions) {
    this.#peer = peer;
    this.#options = options;
  }

  message(text: string): void {
    if (this.#underWay.size >= this.#options.limits.underWayMax) {
      const { underWayMax } = this.#options.limits;
      this.#peer.close(1008, `expected at most ${underWayMax} unanswered messages`);
      return;
    }
    void this.#handle(text);
  }

  closed(): void {
    this.#ended.abort();
    this.#held = [];
    this.#node?.close();
    this.#node = null;
  }

  /** Never rejects, because answerJsonRpc never does. */
  async #handle(text: string): Promise<void> {
    const message: Message = { asksNode: false, isRefused: false, afterResponse: [] };
    this.#underWay.add(message);
    const { jsonRpc } = this.#options;
    const answer = await answerJsonRpc(text, {
      ...jsonRpc,
      dispatch: (method, params) =>
        method.endsWith("Subscribe")
          ? this.#noteRefusal(message, () => this.#dispatch(message, method, params))
          : this.#dispatch(message, method, params),
    });
    // A message that asked the node must not wait: notifications wait for its response.
    if (message.isRefused && !message.asksNode) await this.#pause();
    this.#underWay.delete(message);
    this.#answered.delete(message);
    if (this.#isClosed) return;
    if (answer.text !== "") this.#peer.send(answer.text);
    for (const call of message.afterResponse) call();
    this.#release();
  }

  async #noteRefusal(message: Message, subscribe: () => unknown): Promise<unknown> {
    try {
      return await subscribe();
    } catch (thrown) {
      if (lastingReasons.has(reasonOf(thrown))) message.isRefused = true;
      throw thrown;
    }
  }

  async #pause(): Promise<void> {
    this.#refusals++;
    if (this.#refusals <= refusalsAtOnce) return;
    await this.#options.clock.sleep(refusalPauseMs, this.#ended.signal);
  }

  get #isClosed(): boolean {
    return this.#ended.signal.aborted;
  }

  #dispatch(message: Message, method: string, params: readonly Json[]): unknown {
    if (this.#isClosed) throw new ShredwayError("request_invalid", "the connection is closed");
    const [, kind, verb] = methodShape.exec(method) ?? [];
    if (kind === undefined) {
      return this.#options.dispatch(method, params, (call) => message.afterResponse.push(call));
    }
    this.#options.checkScope(method);
    if (!this.#options.node) throw upstreamMissing(method);
    if (verb === "Unsubscribe") return this.#unsubscribe(message, method, params);
    const { subscriptionsMax } = this.#options.limits;
    if (this.#subscriptions.size + this.#asked >= subscriptionsMax) {
      throw new ShredwayError(
        "request_invalid",
        `${method}: too many subscriptions on this connection: at most ${subscriptionsMax}; unsubscribe one first`,
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
    // The node would refuse as well; a query could open a connection unnecessarily.
    if (!this.#subscriptions.has(name)) {
      throw new ShredwayError(
        "value_invalid",
        `${method}: expected the number of a subscription on this connection, got ${quote(number)}`,
      );
    }
    return this.#ask(message, method, params, (answer) => {
      if ("result" in answer) this.#subscriptions.delete(name);
    });
  }

  /**
   * Calls `settled` with the response or failure before any later message of the node is handled.
   */
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
        else if ("error" in answer) reject(new ForwardedError(answer.error));
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
      this.#peer.close(
        1013,
        `expected at most ${heldBytesMax} bytes of notifications behind a response`,
      );
    }
  }

  /** Sends the waiting notifications once all responses are sent. */
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

  /** Waits until all messages that wait for the node are answered. */
  #closeWhenLost(): void {
    if (!this.#loss || this.#isClosed) return;
    for (const message of this.#underWay) if (message.asksNode) return;
    this.#peer.close(1013, "the connection to the node was lost; reconnect");
  }
}
