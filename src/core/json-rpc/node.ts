// Interface to a Solana node for calls that are forwarded: read methods, preflight, subscriptions.
//
// Only types; implemented by platform/solana/upstream.ts. Results are the node's own JSON text.

import type { ShredwayError } from "../errors.ts";
import type { CallParams, Json, JsonText } from "./json-text.ts";
import type { ForwardedError } from "./refusal.ts";

export type NodeError = ForwardedError["error"];
export type NodeAnswer = { readonly result: JsonText } | { readonly error: NodeError };

export interface NodeCalls {
  /**
   * The node's response, a result or an error. It may send the request twice, so use it only for
   * methods that change nothing. Rejects with ShredwayError "rpc_failed" (no response, timeout, or
   * not JSON-RPC) or "overloaded".
   */
  call(method: string, params: CallParams): Promise<NodeAnswer>;
}

export interface NodeNotification {
  readonly method: string;
  /** Subscription number of the node. */
  readonly subscription: string;
  /** The notification ends the subscription, as the result of a signature does. */
  readonly isLast: boolean;
  /** The whole text of the message. */
  readonly text: string;
}

export interface NodeSocketListener {
  notified(notification: NodeNotification): void;
  /** Called once, unless `close` was called before. Pending requests have failed by then. */
  lost(error: ShredwayError): void;
}

export interface NodeSocket {
  readonly isOpen: boolean;
  /** Calls `done` once, before any notification that follows the answer. */
  ask(
    method: string,
    params: readonly Json[],
    done: (answer: NodeAnswer | ShredwayError) => void,
  ): void;
  /** Closes immediately; pending requests are never answered. Idempotent. */
  close(): void;
}

export interface NodeSockets {
  /** Connects. Requests wait until the connection is open. */
  openSocket(listener: NodeSocketListener): NodeSocket;
}
