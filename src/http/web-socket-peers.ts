// WebSocket peers: what happens between a WebSocket of the web server and the route it belongs to.
//
// Called by server.ts for every event of a socket. Holds that `closed` comes once for every `open`,
// that a route that throws costs its own peer only, and that a peer is safe to use when it is gone:
// the library throws then.

import type { HttpHead, WebSocketPeer, WebSocketRoute } from "./types.ts";

/** The part of a WebSocket of the library that is used here. */
export interface RawSocket {
  getUserData(): Socket;
  /** 2: dropped, for too much is waiting. */
  send(text: string, isBinary: boolean): number;
  end(code: number, reason: string): void;
  close(): void;
}

/** What the web server keeps with a WebSocket. */
export interface Socket {
  readonly route: WebSocketRoute;
  readonly head: HttpHead;
  readonly peer: Peer;
}

const dropped = 2;
/** A close frame has 125 bytes, two of them for the code. */
const reasonBytesMax = 123;

class Peer implements WebSocketPeer {
  readonly remoteAddress: string;
  raw: RawSocket | undefined;

  constructor(remoteAddress: string) {
    this.remoteAddress = remoteAddress;
  }

  send(text: string): boolean {
    const { raw } = this;
    if (!raw) return false;
    if (raw.send(text, false) !== dropped) return true;
    // Not end(): its close frame would wait behind everything the peer does not read.
    raw.close();
    return false;
  }

  close(code: number, reason: string): void {
    const { raw } = this;
    if (!raw) return;
    const isCode = Number.isInteger(code) && code >= 1000 && code <= 4999;
    raw.end(isCode ? code : 1011, fitting(reason));
  }
}

export class WebSocketPeers {
  readonly #onFault: (thrown: unknown) => void;
  readonly #open = new Set<Peer>();

  /** `onFault`: hears of everything that a route throws. */
  constructor(onFault: (thrown: unknown) => void) {
    this.#onFault = onFault;
  }

  newSocket(route: WebSocketRoute, head: HttpHead): Socket {
    return { route, head, peer: new Peer(head.remoteAddress) };
  }

  opened(raw: RawSocket): void {
    const { route, head, peer } = raw.getUserData();
    peer.raw = raw;
    this.#open.add(peer);
    this.#guard(peer, () => route.open(peer, head));
  }

  message(raw: RawSocket, message: ArrayBuffer, isBinary: boolean): void {
    const { route, peer } = raw.getUserData();
    if (isBinary) {
      peer.close(1003, "expected text messages");
    } else if (message.byteLength > route.messageBytesMax) {
      peer.close(1009, `expected at most ${route.messageBytesMax} bytes`);
    } else {
      // Copied by the decoding: the bytes are gone when this returns.
      const text = Buffer.from(message).toString("utf8");
      this.#guard(peer, () => route.message(peer, text));
    }
  }

  closed(raw: RawSocket): void {
    const { route, peer } = raw.getUserData();
    peer.raw = undefined;
    this.#open.delete(peer);
    this.#guard(peer, () => route.closed(peer));
  }

  closeAll(code: number, reason: string): void {
    for (const peer of this.#open) peer.close(code, reason);
  }

  #guard(peer: Peer, call: () => unknown): void {
    const failed = (thrown: unknown): void => {
      this.#onFault(thrown);
      peer.close(1011, "a fault of the server");
    };
    try {
      const returned = call();
      if (returned instanceof Promise) returned.catch(failed);
    } catch (thrown) {
      failed(thrown);
    }
  }
}

/** `reason`, cut to what a close frame holds, never inside a character. */
function fitting(reason: string): string {
  let text = reason.slice(0, reasonBytesMax);
  while (Buffer.byteLength(text) > reasonBytesMax) text = text.slice(0, -1);
  return text.replace(/[\ud800-\udbff]$/, "");
}
