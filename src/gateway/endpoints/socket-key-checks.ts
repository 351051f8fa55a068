// Closes open WebSockets whose API key was revoked, has expired, or may no longer be used from their address.
//
// Used by status-feed.ts, subscriptions.ts and submission-sockets.ts. A client that only listens sends nothing at
// which its key could be checked, so each open WebSocket is checked twice a second.

import type { Clock, Timer } from "../../core/clock.ts";
import type { ApiKey } from "../accounts/types.ts";
import type { HttpHead, WebSocketPeer } from "../http/types.ts";

const checkMs = 500;
const policyViolation = 1008;

/** The key in its present state; null: it has ended, lacks the scopes, or is not allowed from this address. */
export type CurrentKey = (keyId: string, head: HttpHead) => ApiKey | null;

interface SocketKeyChecksOptions {
  readonly clock: Clock;
  readonly currentKey: CurrentKey;
  /** For the close frame. */
  readonly reason?: string;
}

interface OpenSocket {
  readonly keyId: string;
  readonly head: HttpHead;
  /** Another part closes it when its key ends, with a reason of its own. Absent: never. */
  readonly isCheckedElsewhere?: () => boolean;
}

export class SocketKeyChecks {
  readonly #clock: Clock;
  readonly #currentKey: CurrentKey;
  readonly #reason: string;
  readonly #sockets = new Map<WebSocketPeer, OpenSocket>();
  #timer: Timer | null = null;

  constructor({
    clock,
    currentKey,
    reason = "the API key is no longer valid",
  }: SocketKeyChecksOptions) {
    this.#clock = clock;
    this.#currentKey = currentKey;
    this.#reason = reason;
  }

  add(peer: WebSocketPeer, socket: OpenSocket): void {
    this.#sockets.set(peer, socket);
    this.#timer ??= this.#clock.every(checkMs, () => this.#checkAll());
  }

  remove(peer: WebSocketPeer): void {
    this.#sockets.delete(peer);
    if (this.#sockets.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** null: it is closed, because its key has ended. */
  check(peer: WebSocketPeer): ApiKey | null {
    const socket = this.#sockets.get(peer);
    const key = socket ? this.#currentKey(socket.keyId, socket.head) : null;
    if (!key) this.close(peer);
    return key;
  }

  /** Closes a WebSocket whose key has ended. */
  close(peer: WebSocketPeer): void {
    peer.close(policyViolation, this.#reason);
  }

  #checkAll(): void {
    for (const [peer, { isCheckedElsewhere }] of this.#sockets) {
      if (!isCheckedElsewhere?.()) this.check(peer);
    }
  }
}
