// WebSocket peers: connects the library's sockets with the route that handles their path.
//
// Called by server.ts for every socket event. Limits the messages of every peer. Guarantees that
// `closed` is called once for every `open`, that an exception of a route closes only its own peer,
// and that a closed peer can be used safely (the library would throw).

import type { Clock } from "../../core/clock.ts";
import { MessageAllowance } from "./message-allowance.ts";
import type { HttpHead, WebSocketPeer, WebSocketRoute } from "./types.ts";

/** The part of the library's WebSocket that is used here. */
export interface RawSocket {
  getUserData(): Socket;
  /** Returns 2 if the message was dropped because too many bytes are queued. */
  send(message: string | Uint8Array, isBinary: boolean): number;
  /** Bytes that wait for the peer. */
  getBufferedAmount(): number;
  /** Writes what `call` sends together. */
  cork(call: () => void): unknown;
  end(code: number, reason: string): void;
  close(): void;
}

/** User data of a WebSocket in the web server. */
export interface Socket {
  /** Path of the route; "*": it serves every path without an entry. */
  readonly path: string;
  readonly route: WebSocketRoute;
  readonly head: HttpHead;
  readonly peer: Peer;
}

interface Message {
  readonly socket: Socket;
  /** A text, or the bytes of a binary message. */
  readonly content: string | Uint8Array;
}

/** The most expensive messages take about a millisecond together. */
const messagesPerTurn = 16;
const dropped = 2;
/** Peers of one address that got a close frame and keep the connection; further ones are cut. */
const closingPerAddressMax = 8;
/** Code of the close frames while the server goes away. */
const goingAway = 1001;
/** A close frame has 125 bytes, including two for the code. */
const reasonBytesMax = 123;

class Peer implements WebSocketPeer {
  readonly remoteAddress: string;
  readonly allowance: MessageAllowance;
  raw: RawSocket | undefined;
  isOverLimit = false;
  /** The server sent a close frame. */
  isClosing = false;
  readonly #closing: Map<string, number>;

  /** `closing`: number of closing peers by address. */
  constructor(remoteAddress: string, allowance: MessageAllowance, closing: Map<string, number>) {
    this.remoteAddress = remoteAddress;
    this.allowance = allowance;
    this.#closing = closing;
  }

  send(text: string): boolean {
    return this.#send(text, false);
  }

  sendBytes(bytes: Uint8Array): boolean {
    return this.#send(bytes, true);
  }

  sendTexts(texts: readonly Uint8Array[]): boolean {
    let isSent = true;
    this.raw?.cork(() => {
      isSent = texts.every((text) => this.#send(text, false));
    });
    return isSent && this.raw !== undefined;
  }

  get waitingBytes(): number {
    return this.raw?.getBufferedAmount() ?? 0;
  }

  #send(message: string | Uint8Array, isBinary: boolean): boolean {
    const { raw } = this;
    if (!raw) return false;
    if (raw.send(message, isBinary) !== dropped) return true;
    // end() would queue its close frame behind everything that the peer does not read.
    raw.close();
    return false;
  }

  close(code: number, reason: string): void {
    const { raw } = this;
    if (!raw) return;
    const closing = this.#closing.get(this.remoteAddress) ?? 0;
    if (closing >= closingPerAddressMax && code !== goingAway) {
      raw.close();
      return;
    }
    this.#closing.set(this.remoteAddress, closing + 1);
    this.isClosing = true;
    const isCode = Number.isInteger(code) && code >= 1000 && code <= 4999;
    raw.end(isCode ? code : 1011, fitting(reason));
  }

  /** Closes the TCP connection without a close frame; no further data of the peer is read. */
  cut(): void {
    this.raw?.close();
  }
}

export class WebSocketPeers {
  readonly #clock: Pick<Clock, "monotonicNs">;
  readonly #onFault: (thrown: unknown) => void;
  readonly #open = new Set<Peer>();
  readonly #overLimit = new Map<string, number>();
  readonly #waiting: Message[] = [];
  readonly #closing = new Map<string, number>();
  #handledThisTurn = 0;

  /** `onFault` receives everything that a route throws. */
  constructor(clock: Pick<Clock, "monotonicNs">, onFault: (thrown: unknown) => void) {
    this.#clock = clock;
    this.#onFault = onFault;
  }

  /** Sockets closed since the start because the peer sent too much, by path. */
  get overLimit(): ReadonlyMap<string, number> {
    return this.#overLimit;
  }

  newSocket(path: string, route: WebSocketRoute, head: HttpHead): Socket {
    const { messageLimits, messageBytesMax } = route;
    const nowNs = this.#clock.monotonicNs();
    const allowance = new MessageAllowance(messageLimits, messageBytesMax, nowNs);
    return { path, route, head, peer: new Peer(head.remoteAddress, allowance, this.#closing) };
  }

  opened(raw: RawSocket): void {
    const { route, head, peer } = raw.getUserData();
    peer.raw = raw;
    this.#open.add(peer);
    this.#guard(peer, () => route.open(peer, head));
  }

  message(raw: RawSocket, message: ArrayBuffer | Uint8Array, isBinary: boolean): void {
    const socket = raw.getUserData();
    const { route, peer } = socket;
    if (!this.#admits(raw, message.byteLength)) return;
    if (isBinary && !route.binaryMessage) {
      peer.close(1003, "expected text messages");
    } else if (message.byteLength > route.messageBytesMax) {
      peer.close(1009, `expected at most ${route.messageBytesMax} bytes`);
    } else {
      // Both copy the bytes; the library reuses them after this call.
      this.#handle({ socket, content: isBinary ? copyOf(message) : textOf(message) });
    }
  }

  /**
   * Messages of all sockets share a bounded part of each event-loop turn, so that bursts on many
   * sockets do not delay HTTP requests. Messages stay in order; the message limits bound the queue.
   */
  #handle(message: Message): void {
    if (this.#handledThisTurn === 0) setImmediate(() => this.#beginTurn());
    if (this.#handledThisTurn < messagesPerTurn && this.#waiting.length === 0) {
      this.#handledThisTurn += 1;
      this.#deliver(message);
    } else {
      this.#waiting.push(message);
    }
  }

  #beginTurn(): void {
    const due = this.#waiting.splice(0, messagesPerTurn);
    this.#handledThisTurn = due.length;
    if (due.length > 0) setImmediate(() => this.#beginTurn());
    for (const message of due) this.#deliver(message);
  }

  #deliver({ socket, content }: Message): void {
    const { route, peer } = socket;
    if (!peer.raw) return;
    if (typeof content === "string") this.#guard(peer, () => this.#deliverText(socket, content));
    else this.#guard(peer, () => route.binaryMessage?.(peer, content));
  }

  #deliverText(socket: Socket, text: string): unknown {
    const { route, peer } = socket;
    const reason = route.limitReason?.(peer, text);
    if (reason === undefined) return route.message(peer, text);
    this.#exceeded(socket);
    return peer.close(1008, reason);
  }

  /** Counts a ping or a pong; the library answers pings itself. */
  control(raw: RawSocket, message: ArrayBuffer | Uint8Array): void {
    this.#admits(raw, message.byteLength);
  }

  drained(raw: RawSocket): void {
    const { route, peer } = raw.getUserData();
    if (peer.raw) this.#guard(peer, () => route.drained?.(peer));
  }

  closed(raw: RawSocket): void {
    const { route, peer } = raw.getUserData();
    peer.raw = undefined;
    this.#open.delete(peer);
    this.#guard(peer, () => route.closed(peer));
  }

  /** The TCP connection of a closed peer has ended. */
  gone({ peer: { isClosing, remoteAddress } }: Socket): void {
    if (!isClosing) return;
    const left = (this.#closing.get(remoteAddress) ?? 1) - 1;
    if (left > 0) this.#closing.set(remoteAddress, left);
    else this.#closing.delete(remoteAddress);
  }

  closeAll(code: number, reason: string): void {
    for (const peer of this.#open) peer.close(code, reason);
  }

  /** Returns false if the frame must not be handled; its peer is then closed, or about to be. */
  #admits(raw: RawSocket, bytes: number): boolean {
    const socket = raw.getUserData();
    const { route, peer } = socket;
    const verdict = peer.allowance.take(bytes, this.#clock.monotonicNs());
    if (verdict === "taken") return true;
    if (!peer.isOverLimit) {
      peer.isOverLimit = true;
      this.#exceeded(socket);
      // Close after the frames that came with this one: they may make it a flood.
      setImmediate(() => peer.close(1008, limitText(route)));
    }
    if (verdict === "flood") peer.cut();
    return false;
  }

  #exceeded({ path, route, peer }: Socket): void {
    this.#guard(peer, () => route.exceeded?.(peer));
    this.#overLimit.set(path, (this.#overLimit.get(path) ?? 0) + 1);
  }

  #guard(peer: Peer, call: () => unknown): void {
    const failed = (thrown: unknown): void => {
      this.#onFault(thrown);
      peer.close(1011, "internal error");
    };
    try {
      const returned = call();
      if (returned instanceof Promise) returned.catch(failed);
    } catch (thrown) {
      failed(thrown);
    }
  }
}

function viewOf(message: ArrayBuffer | Uint8Array): Uint8Array {
  return message instanceof Uint8Array ? message : new Uint8Array(message);
}

function copyOf(message: ArrayBuffer | Uint8Array): Uint8Array {
  return Uint8Array.from(viewOf(message));
}

function textOf(message: ArrayBuffer | Uint8Array): string {
  const bytes = viewOf(message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

function limitText({ messageLimits }: WebSocketRoute): string {
  const { messagesPerSecond, bytesPerSecond } = messageLimits;
  return (
    `message limit exceeded: at most ${messagesPerSecond} messages and ${bytesPerSecond} bytes ` +
    "per second"
  );
}

/** Cuts `reason` to the size of a close frame, without splitting a character. */
function fitting(reason: string): string {
  let text = reason.slice(0, reasonBytesMax);
  while (Buffer.byteLength(text) > reasonBytesMax) text = text.slice(0, -1);
  return text.replace(/[\ud800-\udbff]$/, "");
}
