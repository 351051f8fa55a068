// Closes open WebSockets whose API key was revoked, has expired, or may no longer be used from their address.
//
// Used by status-feed.ts and subscriptions.ts. A client that only listens sends nothing at which its key could
// be checked, so each open WebSocket is checked once a second.

import type { Clock, Timer } from "../../core/clock.ts";
import type { HttpHead, WebSocketPeer } from "../http/types.ts";

const checkMs = 1_000;
const policyViolation = 1008;

/** Whether the key with that id is valid now for the address and the scopes of the WebSocket. */
export type IsKeyValid = (keyId: string, head: HttpHead) => boolean;

interface OpenSocket {
  readonly keyId: string;
  readonly head: HttpHead;
  /** Another part closes it when its key ends, with a reason of its own. Absent: never. */
  readonly isCheckedElsewhere?: () => boolean;
}

export class SocketKeyChecks {
  readonly #clock: Clock;
  readonly #isKeyValid: IsKeyValid;
  readonly #sockets = new Map<WebSocketPeer, OpenSocket>();
  #timer: Timer | null = null;

  constructor({
    clock,
    isKeyValid,
  }: {
    readonly clock: Clock;
    readonly isKeyValid: IsKeyValid;
  }) {
    this.#clock = clock;
    this.#isKeyValid = isKeyValid;
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

  /** False: it is closed, because its key has ended. */
  check(peer: WebSocketPeer): boolean {
    const socket = this.#sockets.get(peer);
    if (socket && this.#isKeyValid(socket.keyId, socket.head)) return true;
    closeForKey(peer);
    return false;
  }

  #checkAll(): void {
    for (const [peer, { isCheckedElsewhere }] of this.#sockets) {
      if (!isCheckedElsewhere?.()) this.check(peer);
    }
  }
}

export function closeForKey(peer: WebSocketPeer): void {
  peer.close(policyViolation, "the API key is no longer valid");
}
