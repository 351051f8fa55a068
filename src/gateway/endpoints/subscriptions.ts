// Subscriptions: the WebSocket that standard clients open in addition to HTTP.
//
// Mounted by the gateway on its ports. It forwards signature, slot, root, account and logs
// subscriptions to the node, opens decoded streams, and the gateway's dispatcher runs other methods. It
// limits the cost of one key and one connection. If the node connection is lost, the client is closed
// with 1013 and can reconnect immediately.

import { formatAddress } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import { arrayExpected, type JsonRpcOptions } from "../../core/json-rpc/handle.ts";
import type { Json, JsonObject } from "../../core/json-rpc/json-text.ts";
import type { NodeSockets } from "../../core/json-rpc/node.ts";
import type { ReportFault } from "../../core/json-rpc/refusal.ts";
import { KeyedBudgets } from "../../core/keyed-budgets.ts";
import { type SocketStreams, socketStreamMethods } from "../../relay/streams/socket-streams.ts";
import type { StreamService } from "../../relay/streams/stream-service.ts";
import type { ApiKey } from "../accounts/types.ts";
import type { MessageLimits } from "../http/message-allowance.ts";
import {
  type HttpHead,
  type WebSocketPeer,
  type WebSocketRoute,
  webSocketIdleSeconds,
} from "../http/types.ts";
import type { Authorise } from "../methods/dependencies.ts";
import { answerOf, handshakeRefusal, pauseRefusal, prefixOf } from "./answers.ts";
import { HandshakePauses } from "./handshake-pauses.ts";
import { messageCost } from "./message-cost.ts";
import { checkNames, Query } from "./query.ts";
import { submissionNames } from "./request-context.ts";
import { type CurrentKey, SocketKeyChecks } from "./socket-key-checks.ts";
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
/** Bytes of all sockets of a key: four at the rate of one socket. The burst contains six of the longest messages. */
const keyMessageRate = { perSecond: 4 * 1024 * 1024, burst: 16 * 1024 * 1024 } as const;
const keyLimitText = "message limit exceeded: too many bytes or values on the key's WebSockets";
const messageBytesMax = 64 * 1024;
/** On paths for streams: a filter of 50,000 accounts fits. */
const streamMessageBytesMax = 2560 * 1024;
const streamValuesMax = 60_000;
const backpressureBytesMax = 16 * 1024 * 1024;
const batchMax = 25;
/** @solana/web3.js and @solana/kit send it every 5 s without an id. Nodes do not answer it. */
const heartbeatMethod = "ping";
const subscriptionShape = /(Subscribe|Unsubscribe)$/;

/** Parameters that the URL of the handshake may have; `api_key` as in socket-keys.ts. */
export const subscriptionNames = [...submissionNames, "api_key"] as const;

/** Opens decoded streams on a WebSocket. */
type StreamSockets = Pick<StreamService, "openSocket">;

export interface Caller {
  readonly key: ApiKey;
  /** Options in the handshake's URL, which apply to every call. */
  readonly query: Query;
}

export interface SubscriptionOptions {
  /** null: every subscription is refused with "upstream_missing". */
  readonly node: NodeSockets | null;
  readonly authorise: Authorise;
  readonly currentKey: CurrentKey;
  readonly clock: Clock;
  /** Counts a handshake against the key's limit. Throws ShredwayError "rate_limited". */
  readonly countHandshake: (key: ApiKey) => void;
  readonly report: ReportFault;
  /** Runs other methods over the WebSocket; absent: they are refused. */
  readonly dispatch?: (caller: Caller, method: string, params: readonly Json[]) => unknown;
  /** As `dispatch`, for parameters with names; absent: such calls are refused. */
  readonly dispatchNamed?: (caller: Caller, method: string, params: JsonObject) => unknown;
  /** Called before every call; throws ShredwayError "rate_limited". */
  readonly admit?: (caller: Caller, method: string) => void;
  /** Called after every call; `reason` null: it was accepted. */
  readonly ended?: JsonRpcOptions["ended"];
  /** Decoded streams; undefined: they are off. */
  readonly streams?: () => StreamSockets | undefined;
  /** The client's address; required with `streams`. */
  readonly addressOf?: (head: HttpHead) => Uint8Array;
  /** Messages may be as long as filters of streams. */
  readonly takesLongFilters?: boolean;
  readonly limits?: Partial<SubscriptionLimits>;
  readonly messageLimits?: MessageLimits;
}

interface Connection {
  readonly caller: Caller;
  readonly head: HttpHead;
  readonly session: SubscriptionSession;
  /** Its decoded streams; undefined: it has opened none. */
  streams: SocketStreams | undefined;
}

class Sockets {
  readonly #options: SubscriptionOptions;
  readonly #limits: SubscriptionLimits;
  readonly #callers = new WeakMap<HttpHead, Caller>();
  readonly #connections = new Map<WebSocketPeer, Connection>();
  /** Open sockets by key. */
  readonly #counts = new Map<string, number>();
  readonly #pauses = new HandshakePauses();
  readonly #budgets: KeyedBudgets;
  readonly #keyChecks: SocketKeyChecks;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    this.#budgets = new KeyedBudgets(keyMessageRate, options.clock);
    this.#keyChecks = new SocketKeyChecks(options);
    this.#limits = { ...defaults, ...options.limits };
  }

  accept(head: HttpHead): ReturnType<NonNullable<WebSocketRoute["accept"]>> {
    const answer = this.#options.authorise(head);
    if ("status" in answer) return answer;
    const query = new Query(head.query);
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
      handshakeRefusal(() => {
        checkNames(query, subscriptionNames);
        this.#options.countHandshake(answer.key);
      });
    if (!refusal) this.#callers.set(head, { key: answer.key, query });
    return refusal;
  }

  open(peer: WebSocketPeer, head: HttpHead): void {
    const caller = this.#callers.get(head);
    if (!caller) throw new ShredwayError("internal", "WebSocket opened without accept");
    this.#counts.set(caller.key.id, (this.#counts.get(caller.key.id) ?? 0) + 1);
    this.#connections.set(peer, {
      caller,
      head,
      session: this.#newSession(peer, caller),
      streams: undefined,
    });
    this.#keyChecks.add(peer, {
      keyId: caller.key.id,
      head,
      isCheckedElsewhere: () => this.#connections.get(peer)?.streams?.hasOpen ?? false,
    });
  }

  exceeded(peer: WebSocketPeer): void {
    const connection = this.#connections.get(peer);
    if (connection) this.#pauses.begin(connection.caller.key.id, this.#options.clock.monotonicNs());
  }

  message(peer: WebSocketPeer, text: string): void {
    const connection = this.#connections.get(peer);
    if (!connection) return;
    if (this.#keyChecks.check(peer)) connection.session.message(text);
  }

  /** Why the message is not read: all sockets of the key share a rate. */
  limitReason(peer: WebSocketPeer, text: string): string | undefined {
    const connection = this.#connections.get(peer);
    if (!connection) return undefined;
    const budget = this.#budgets.open(connection.caller.key.id);
    budget?.spend(messageCost(text));
    return budget ? undefined : keyLimitText;
  }

  drained(peer: WebSocketPeer): void {
    this.#connections.get(peer)?.streams?.drained();
  }

  closed(peer: WebSocketPeer): void {
    const connection = this.#connections.get(peer);
    if (!connection) return;
    this.#connections.delete(peer);
    this.#keyChecks.remove(peer);
    const { id } = connection.caller.key;
    const left = (this.#counts.get(id) ?? 1) - 1;
    if (left > 0) this.#counts.set(id, left);
    else {
      this.#counts.delete(id);
      this.#budgets.forgetFull(id);
    }
    connection.session.closed();
    connection.streams?.closed();
  }

  #newSession(peer: WebSocketPeer, caller: Caller): SubscriptionSession {
    const { clock, node, report, admit, ended } = this.#options;
    return new SubscriptionSession(peer, {
      clock,
      node,
      jsonRpc: {
        report,
        prefixOf,
        batchMax,
        answersWithoutId: true,
        heartbeatMethod,
        ...(this.#options.takesLongFilters && { valuesMax: streamValuesMax }),
        ...(admit && { admit: (method: string) => admit(caller, method) }),
        ...(ended && { ended }),
        dispatchNamed: (method, params) => this.#dispatchNamed(caller, method, params),
      },
      checkScope: (method) => checkScope(caller, method),
      dispatch: (method, params, afterResponse) =>
        socketStreamMethods.includes(method)
          ? this.#streamsOf(peer, method).call(method, params, afterResponse)
          : this.#dispatch(caller, method, params),
      limits: this.#limits,
    });
  }

  #streamsOf(peer: WebSocketPeer, method: string): SocketStreams {
    const { streams, addressOf } = this.#options;
    const service = streams?.();
    const connection = this.#connections.get(peer);
    if (!service || !addressOf || !connection) {
      throw new ShredwayError(
        "method_unknown",
        `${method} needs decoded streams; the operator has not configured the section streams`,
      );
    }
    const { caller, head } = connection;
    connection.streams ??= service.openSocket(peer, {
      keyId: caller.key.id,
      peer: formatAddress(addressOf(head)),
    });
    return connection.streams;
  }

  #dispatchNamed(caller: Caller, method: string, params: JsonObject): unknown {
    const { dispatchNamed } = this.#options;
    if (!dispatchNamed || subscriptionShape.test(method)) throw arrayExpected(params);
    return dispatchNamed(caller, method, params);
  }

  #dispatch(caller: Caller, method: string, params: readonly Json[]): unknown {
    const { dispatch } = this.#options;
    if (dispatch && !subscriptionShape.test(method)) {
      return dispatch(caller, method, params);
    }
    const kinds = [...subscriptionKinds, "shred", "shredTransaction"]
      .map((kind) => `${kind}Subscribe`)
      .join(", ");
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
    messageBytesMax: options.takesLongFilters ? streamMessageBytesMax : messageBytesMax,
    messageLimits: options.messageLimits ?? messageLimits,
    backpressureBytesMax,
    idleSeconds: webSocketIdleSeconds,
    accept: (head) => sockets.accept(head),
    open: (peer, head) => sockets.open(peer, head),
    message: (peer, text) => sockets.message(peer, text),
    limitReason: (peer, text) => sockets.limitReason(peer, text),
    exceeded: (peer) => sockets.exceeded(peer),
    drained: (peer) => sockets.drained(peer),
    closed: (peer) => sockets.closed(peer),
  };
}
