// The subscriptions of one WebSocket share its connection: a common queue in front of the socket.
//
// Only a bounded part is given to the socket, so that a close frame reaches a client that reads slowly.
// The end of one subscription with an error closes the connection, with the reason in the close frame.

import type { GrpcStatus } from "../../core/grpc/status.ts";
import type { EndReason } from "./end-reasons.ts";
import type { StreamTransport } from "./stream-transport.ts";

/** The part of a WebSocket that is used here. */
export interface ClientSocket {
  /** Bytes that were sent and wait for the client. */
  readonly waitingBytes: number;
  /** Sends texts in UTF-8. Returns false if the socket is closed. */
  sendTexts(texts: readonly Uint8Array[]): boolean;
  /** Reports the end before it returns. */
  close(code: number, reason: string): void;
}

/** Bytes that are given to the socket at once. */
const writeBytes = 256 * 1024;
const closeCodes: Readonly<Partial<Record<EndReason, number>>> = {
  closing: 1001, // going away
  revoked: 1008, // policy violation
};
const tryAgainLater = 1013;

interface Queued {
  readonly transport: SocketTransport;
  readonly message: Uint8Array;
}

export class SocketConnection {
  readonly #socket: ClientSocket;
  readonly #open = new Set<SocketTransport>();
  #queue: Queued[] = [];

  constructor(socket: ClientSocket) {
    this.#socket = socket;
  }

  /** `announce` is called with the reason before the connection closes. */
  newTransport(announce: (reason: EndReason) => void): SocketTransport {
    const transport = new SocketTransport(this, announce);
    this.#open.add(transport);
    return transport;
  }

  queue(transport: SocketTransport, message: Uint8Array): void {
    // A small message is a view of a pool. While it waits, it would keep all of the pool.
    const isWaiting = this.#socket.waitingBytes >= writeBytes;
    this.#queue.push({ transport, message: isWaiting ? new Uint8Array(message) : message });
  }

  flush(): void {
    while (this.#queue.length > 0 && this.#socket.waitingBytes < writeBytes) {
      let bytes = 0;
      let count = 0;
      for (; count < this.#queue.length && bytes < writeBytes; count++) {
        bytes += this.#queue[count]?.message.length ?? 0;
      }
      const parts = this.#queue.splice(0, count);
      for (const { transport, message } of parts) transport.left(message.length);
      if (!this.#socket.sendTexts(parts.map(({ message }) => message))) return;
      for (const { transport } of parts) transport.handedOver();
    }
  }

  remove(transport: SocketTransport): void {
    this.#open.delete(transport);
    this.#queue = this.#queue.filter((queued) => queued.transport !== transport);
  }

  end(reason: EndReason, detail: string): void {
    for (const transport of this.#open) transport.announce(reason);
    this.#queue = [];
    this.#socket.close(closeCodes[reason] ?? tryAgainLater, detail);
    this.closed();
  }

  /** The socket is closed. */
  closed(): void {
    for (const transport of this.#open) transport.close();
  }
}

export class SocketTransport implements StreamTransport {
  readonly announce: (reason: EndReason) => void;
  /** The gateway ends connections with silent clients. */
  readonly silence = "";
  /** An invalid request ends no subscription. */
  readonly refusal = "";
  readonly #connection: SocketConnection;
  #onClose: () => void = () => {};
  #onHandedOver: (messages: number) => void = () => {};
  /** Messages until the response to the subscription was sent. */
  #held: Uint8Array[] | null = [];
  #waitingBytes = 0;
  #waitingMessages = 0;
  #isEnded = false;

  constructor(connection: SocketConnection, announce: (reason: EndReason) => void) {
    this.#connection = connection;
    this.announce = announce;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  get waitingMessages(): number {
    return this.#waitingMessages;
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  onHandedOver(listener: (messages: number) => void): void {
    this.#onHandedOver = listener;
  }

  send(message: Uint8Array): void {
    if (this.#isEnded) return;
    this.#waitingBytes += message.length;
    this.#waitingMessages++;
    if (this.#held) this.#held.push(message);
    else this.#connection.queue(this, message);
  }

  flush(): void {
    if (!this.#held) this.#connection.flush();
  }

  /** The response to the subscription was sent; notifications may follow. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    if (this.#isEnded) return;
    for (const message of held) this.#connection.queue(this, message);
    this.#connection.flush();
  }

  /** A message was given to the socket. */
  left(bytes: number): void {
    this.#waitingBytes -= bytes;
    this.#waitingMessages--;
  }

  /** The kernel, or the memory of the socket, has got a message. */
  handedOver(): void {
    if (!this.#isEnded) this.#onHandedOver(1);
  }

  end(_status: GrpcStatus, detail: string, reason: EndReason): void {
    if (!this.#isEnded) this.#connection.end(reason, detail);
  }

  /** Ends this subscription only. */
  close(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#connection.remove(this);
    this.#onClose();
  }
}
