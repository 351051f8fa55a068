// Subscriptions: the WebSocket that stock clients open beside HTTP.
//
// Mounted by the gateway on its ports. Passes signature, slot, root, account and logs subscriptions on
// to the node and nothing else; ordinary methods are answered by the gateway's own dispatcher when it
// is handed in. Bounds what one key and one connection may cost. A client that loses the node is
// closed with 1013 and finds out at once; it reconnects as it does with any node.

import type { Clock } from "../../core/clock.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { NodeSockets } from "../../core/json-rpc/node.ts";
import type { ReportFault } from "../../core/json-rpc/refusal.ts";
import type { ApiKey } from "../accounts/types.ts";
import type { MessageLimits } from "../http/message-allowance.ts";
import type { HttpHead, WebSocketPeer, WebSocketRoute } from "../http/types.ts";
import type { Authorise } from "../methods/dependencies.ts";
import { answerOf, handshakeRefusal, pauseRefusal, prefixOf } from "./answers.ts";
import { HandshakePauses } from "./handshake-pauses.ts";
import {
  type SessionLimits,
  SubscriptionSession,
  subscriptionKinds,
} from "./subscription-session.ts";

interface SubscriptionLimits extends SessionLimits {
  readonly socketsPerKey: number;
}

const defaults: SubscriptionLimits = {
  subscriptionsMax: 100,
  underWayMax: 256,
  heldBytesMax: 8 * 1024 * 1024,
  socketsPerKey: 32,
};
const messageLimits = {
  messagesPerSecond: 50,
  messagesBurst: 250,
  bytesPerSecond: 1024 * 1024,
} as const;
const messageBytesMax = 64 * 1024;
const backpressureBytesMax = 16 * 1024 * 1024;
const idleSeconds = 120;
const batchMax = 25;

interface Caller {
  readonly key: ApiKey;
}

export interface SubscriptionOptions {
  /** null: every subscription is refused with "upstream_missing". */
  readonly node: NodeSockets | null;
  readonly authorise: Authorise;
  readonly clock: Pick<Clock, "monotonicNs">;
  /** Counts a handshake against the key's limit. Throws ShredwayError "rate_limited". */
  readonly countHandshake: (key: ApiKey) => void;
  readonly report: ReportFault;
  /** Ordinary methods over the WebSocket; absent: there are none. */
  readonly dispatch?: (caller: Caller, method: string, params: readonly Json[]) => unknown;
  /** Asked before every call; throws ShredwayError "rate_limited". */
  readonly admit?: (caller: Caller, method: string) => void;
  readonly limits?: Partial<SubscriptionLimits>;
  readonly messageLimits?: MessageLimits;
}

interface Row {
  readonly caller: Caller;
  readonly head: HttpHead;
  readonly session: SubscriptionSession;
}

class Sockets {
  readonly #options: SubscriptionOptions;
  readonly #limits: SubscriptionLimits;
  readonly #callers = new WeakMap<HttpHead, Caller>();
  readonly #rows = new Map<WebSocketPeer, Row>();
  /** By key. */
  readonly #counts = new Map<string, number>();
  readonly #pauses = new HandshakePauses();

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    this.#limits = { ...defaults, ...options.limits };
  }

  accept(head: HttpHead): ReturnType<NonNullable<WebSocketRoute["accept"]>> {
    const answer = this.#options.authorise(head);
    if ("status" in answer) return answer;
    const { socketsPerKey } = this.#limits;
    if ((this.#counts.get(answer.key.id) ?? 0) >= socketsPerKey) {
      return answerOf(
        new ShredwayError(
          "rate_limited",
          `too many WebSockets with this key; at most ${socketsPerKey} are allowed; close one first`,
        ),
      );
    }
    const pausedSeconds = this.#pauses.secondsLeft(
      answer.key.id,
      this.#options.clock.monotonicNs(),
    );
    const refusal =
      pauseRefusal(pausedSeconds) ??
      handshakeRefusal(() => this.#options.countHandshake(answer.key));
    if (!refusal) this.#callers.set(head, answer);
    return refusal;
  }

  open(peer: WebSocketPeer, head: HttpHead): void {
    const caller = this.#callers.get(head);
    if (!caller) throw new ShredwayError("internal", "a WebSocket that was not accepted");
    this.#counts.set(caller.key.id, (this.#counts.get(caller.key.id) ?? 0) + 1);
    this.#rows.set(peer, {
      caller,
      head,
      session: this.#newSession(peer, caller),
    });
  }

  exceeded(peer: WebSocketPeer): void {
    const row = this.#rows.get(peer);
    if (row) this.#pauses.begin(row.caller.key.id, this.#options.clock.monotonicNs());
  }

  message(peer: WebSocketPeer, text: string): void {
    const row = this.#rows.get(peer);
    if (!row) return;
    if (this.#isStillAllowed(row)) row.session.message(text);
    else peer.close(1008, "the API key does not hold any more");
  }

  /** A key may have been revoked, have expired, or have got other limits since. */
  #isStillAllowed({ caller, head }: Row): boolean {
    const answer = this.#options.authorise(head);
    return !("status" in answer) && answer.key.id === caller.key.id;
  }

  closed(peer: WebSocketPeer): void {
    const row = this.#rows.get(peer);
    if (!row) return;
    this.#rows.delete(peer);
    const { id } = row.caller.key;
    const left = (this.#counts.get(id) ?? 1) - 1;
    if (left > 0) this.#counts.set(id, left);
    else this.#counts.delete(id);
    row.session.closed();
  }

  #newSession(peer: WebSocketPeer, caller: Caller): SubscriptionSession {
    const { node, report, admit } = this.#options;
    return new SubscriptionSession(peer, {
      node,
      jsonRpc: {
        report,
        prefixOf,
        batchMax,
        ...(admit && { admit: (method: string) => admit(caller, method) }),
      },
      checkScope: (method) => checkScope(caller, method),
      dispatch: (method, params) => this.#dispatch(caller, method, params),
      limits: this.#limits,
    });
  }

  #dispatch(caller: Caller, method: string, params: readonly Json[]): unknown {
    const { dispatch } = this.#options;
    if (dispatch && !/(Subscribe|Unsubscribe)$/.test(method)) {
      return dispatch(caller, method, params);
    }
    const kinds = subscriptionKinds.map((kind) => `${kind}Subscribe`).join(", ");
    throw new ShredwayError(
      "method_unknown",
      `Method not found: expected ${kinds} or the same with Unsubscribe, got ${quote(method)}`,
    );
  }
}

function checkScope({ key }: Caller, method: string): void {
  if (key.scopes.includes("read")) return;
  throw new ShredwayError(
    "scope_missing",
    `${method}: expected a key with the scope read, got ${key.scopes.join(", ") || "none"}`,
  );
}

export function subscriptionRoute(options: SubscriptionOptions): WebSocketRoute {
  const sockets = new Sockets(options);
  return {
    messageBytesMax,
    messageLimits: options.messageLimits ?? messageLimits,
    backpressureBytesMax,
    idleSeconds,
    accept: (head) => sockets.accept(head),
    open: (peer, head) => sockets.open(peer, head),
    message: (peer, text) => sockets.message(peer, text),
    exceeded: (peer) => sockets.exceeded(peer),
    closed: (peer) => sockets.closed(peer),
  };
}
