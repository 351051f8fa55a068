// Session: one WebSocket and its subscriptions.
//
// Created by the endpoint for every connection. It answers messages one at a time, in order. A
// caller that sends faster than it is answered, or reads too slowly, is disconnected. Closing
// always removes all watches from the hub.

import { ShredwayError } from "../../../core/errors.ts";
import { type Json, writeJson } from "../../../core/json-rpc/json-text.ts";
import type { WebSocketPeer } from "../../../gateway/http/types.ts";
import { unknownMethod } from "../dispatch.ts";
import { invalidParams, Params } from "../params.ts";
import type { SubscriptionHub, Watch } from "./hub.ts";
import type { SubscriptionKind } from "./kind.ts";
import { subscriptionKinds } from "./kinds.ts";

export const subscriptionsMax = 256;
/** Maximum number of queued messages of one connection. */
const waitingMax = 512;

/** Answers one text; the endpoint's framing with its faults. */
type AnswerText = (
  text: string,
  dispatch: (method: string, params: readonly Json[]) => unknown,
) => Promise<string>;

interface SessionOptions {
  readonly answer: AnswerText;
  /** Notifications are dropped while this returns true. */
  readonly dropsNotifications: () => boolean;
}

interface Row {
  readonly kindName: string;
  readonly watch: Watch;
}

export class RpcSession {
  readonly #peer: WebSocketPeer;
  readonly #hub: SubscriptionHub;
  readonly #options: SessionOptions;
  readonly #rows = new Map<number, Row>();
  /** Actions to run after the current response was sent. */
  #afterAnswer: (() => void)[] = [];
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  #isClosed = false;

  constructor(peer: WebSocketPeer, hub: SubscriptionHub, options: SessionOptions) {
    this.#peer = peer;
    this.#hub = hub;
    this.#options = options;
  }

  get subscriptions(): number {
    return this.#rows.size;
  }

  message(text: string): void {
    if (this.#waiting >= waitingMax) {
      this.#peer.close(1008, `expected at most ${waitingMax} pending messages`);
      return;
    }
    this.#waiting++;
    this.#tail = this.#tail.then(() => this.#handle(text));
  }

  closed(): void {
    this.#isClosed = true;
    for (const { watch } of this.#rows.values()) this.#hub.remove(watch);
    this.#rows.clear();
  }

  async #handle(text: string): Promise<void> {
    const answer = await this.#options.answer(text, (method, params) =>
      this.#dispatch(method, params),
    );
    this.#waiting--;
    const after = this.#afterAnswer;
    this.#afterAnswer = [];
    if (this.#isClosed) return;
    if (answer !== "") this.#peer.send(answer);
    for (const action of after) action();
  }

  #dispatch(method: string, values: readonly Json[]): unknown {
    const [, name = "", verb] = /^(\w+?)(Subscribe|Unsubscribe)$/.exec(method) ?? [];
    const kind = Object.hasOwn(subscriptionKinds, name) ? subscriptionKinds[name] : undefined;
    if (!kind || verb === undefined) throw unknownMethod(method);
    const params = new Params(values);
    if (verb === "Unsubscribe") return this.#unsubscribe(name, params);
    params.atMost(kind.paramsMax);
    return this.#subscribe(name, kind, params);
  }

  #subscribe(kindName: string, kind: SubscriptionKind, params: Params): number {
    if (this.#rows.size >= subscriptionsMax) {
      throw new ShredwayError(
        "request_invalid",
        `expected at most ${subscriptionsMax} subscriptions on a connection, got one more`,
      );
    }
    const id = this.#hub.newId();
    const sink = {
      notify: (result: unknown) => this.#notify(id, kindName, result),
      end: () => void this.#remove(id),
    };
    const opened = kind.open(this.#hub.context, params, sink);
    this.#rows.set(id, { kindName, watch: opened });
    // The watch starts after the response: the caller needs the number to assign the first
    // notification.
    this.#afterAnswer.push(() => this.#start(id, opened));
    return id;
  }

  #start(id: number, watch: Watch): void {
    if (!this.#rows.has(id) || this.#isClosed) return;
    this.#hub.add(watch);
  }

  #unsubscribe(kindName: string, params: Params): boolean {
    params.atMost(1);
    const value = params.at(0, "subscription");
    const id = Number(value.integer());
    if (this.#rows.get(id)?.kindName !== kindName || !this.#remove(id)) {
      throw invalidParams("subscription", `the number of a ${kindName} subscription`, id);
    }
    return true;
  }

  #remove(id: number): boolean {
    const row = this.#rows.get(id);
    if (!row) return false;
    this.#hub.remove(row.watch);
    return this.#rows.delete(id);
  }

  #notify(id: number, kindName: string, result: unknown): void {
    if (!this.#rows.has(id) || this.#options.dropsNotifications()) return;
    const params = { result, subscription: id };
    this.#peer.send(writeJson({ jsonrpc: "2.0", method: `${kindName}Notification`, params }));
  }
}
