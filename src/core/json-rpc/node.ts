// A node as those see it who pass calls on to it.
//
// Only types. solana/upstream.ts is the real one; the gateway's read methods, preflight and
// subscriptions ask it. Results are the text that the node wrote.

import type { ShredwayError } from "../errors.ts";
import type { Json, JsonText } from "./json-text.ts";
import type { PassedError } from "./refusal.ts";

export type NodeError = PassedError["error"];
export type NodeAnswer = { readonly result: JsonText } | { readonly error: NodeError };

export interface NodeCalls {
  /**
   * The node's own answer, be it a result or an error. Rejects with ShredwayError "rpc_failed" (no
   * answer, none in time, none that is JSON-RPC) or "overloaded". May ask twice: for methods that
   * change nothing.
   */
  call(method: string, params: readonly Json[]): Promise<NodeAnswer>;
}

export interface NodeNotification {
  readonly method: string;
  /** Number of the subscription, as the node wrote it. */
  readonly subscription: string;
  /** The subscription is gone with it: the result of a signature. */
  readonly isLast: boolean;
  /** The whole message. */
  readonly text: string;
}

export interface NodeSocketListener {
  notified(notification: NodeNotification): void;
  /** Once, unless `close` was called before. Questions that were open have been answered with it. */
  lost(error: ShredwayError): void;
}

export interface NodeSocket {
  readonly isOpen: boolean;
  /** `done` is called once, and before any notification that came after the answer. */
  ask(
    method: string,
    params: readonly Json[],
    done: (answer: NodeAnswer | ShredwayError) => void,
  ): void;
  /** At once; open questions are never answered. Idempotent. */
  close(): void;
}

export interface NodeSockets {
  /** Connects; questions that are asked meanwhile wait. */
  openSocket(listener: NodeSocketListener): NodeSocket;
}
