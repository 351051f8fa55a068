// One QUIC connection of the client: handshake, one bidirectional stream for each submission, keep-alive.
//
// Created by quic-client.ts for each attempt to connect, with a connected socket that it closes. It calls
// nothing before `start`. A response is read up to its end. Received data is untrusted.

import { randomBytes } from "node:crypto";
import type { Socket } from "node:dgram";
import type { Clock, Timer } from "../../core/clock.ts";
import type { Dialect } from "../../core/quic/dialects.ts";
import { DueTimer } from "../../core/quic/due-timer.ts";
import type {
  Quiche,
  QuicheAddress,
  QuicheConfig,
  QuicheConnection,
} from "../../core/quic/quiche.ts";
import {
  closeConnection,
  packetsOf,
  takePacket,
  withoutZone,
} from "../../core/quic/quiche-calls.ts";
import { type ConnectionEnd, endHere, endOf } from "./connection-end.ts";
import type { ServerCheck } from "./server-check.ts";

/** Events; none occurs inside a call of the connection, except `ended` inside `close`. */
export interface ConnectionEvents {
  established(): void;
  /** Further streams may be open now. */
  usable(): void;
  /** The last event. Streams without a response have failed before. */
  ended(end: ConnectionEnd): void;
}

interface ConnectionOptions {
  readonly quiche: Quiche;
  readonly config: QuicheConfig;
  readonly clock: Clock;
  readonly dialect: Dialect;
  readonly check: ServerCheck;
  readonly socket: Socket;
  readonly remote: QuicheAddress;
  readonly timeoutMs: number;
  readonly keepAliveMs: number;
  readonly events: ConnectionEvents;
}

/** The result of one stream; exactly one of them is called. */
interface StreamResult {
  responded(bytes: Uint8Array): void;
  /** The connection ended, or the service reset the stream (`end` null). */
  failed(end: ConnectionEnd | null): void;
}

interface Stream {
  /** Bytes that quiche has not accepted. */
  rest: Uint8Array;
  readonly parts: Buffer[];
  length: number;
  readonly result: StreamResult;
}

/** A response frame has at most 1,030 bytes. */
export const responseBytesMax = 2048;
const streamIdStep = 4;
/** While responses are missing, and after an unanswered keep-alive, the service is asked so often. */
const tickMs = 1000;
/** Ticks without any packet after which the connection counts as lost. */
const silentTicksMax = 5;
const scidBytes = 16;
const nsPerMs = 1_000_000n;
const scratch = Buffer.alloc(responseBytesMax);

export class ClientConnection {
  readonly #options: ConnectionOptions;
  readonly #quic: QuicheConnection;
  readonly #path: { readonly from: QuicheAddress; readonly to: QuicheAddress };
  readonly #streams = new Map<number, Stream>();
  #nextStreamId = 0;
  readonly #timer: DueTimer;
  #handshakeTimer: Timer | undefined;
  #ticks: Timer | undefined;
  #silentTicks = 0;
  #silentMs = 0;
  #isEstablished = false;
  #isOver = false;

  /** Throws quiche's Error. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { quiche, config, clock, check, socket } = options;
    const { address, port } = socket.address();
    const local = withoutZone({ host: address, port });
    const remote = withoutZone(options.remote);
    this.#path = { from: remote, to: local };
    const scid = randomBytes(scidBytes);
    this.#quic = quiche.Connection.connect(check.serverName, scid, local, remote, config);
    this.#timer = new DueTimer(clock, () => this.#expired());
  }

  /** Sends the first packet. */
  start(): void {
    const { socket, clock, timeoutMs } = this.#options;
    socket.on("message", (packet) => this.#receive(packet));
    socket.on("error", (error) => this.#refused(error));
    this.#handshakeTimer = clock.after(timeoutMs, () =>
      this.#over(endHere("handshake_timeout", `no handshake within ${timeoutMs} ms`)),
    );
    this.#flush();
  }

  get isEstablished(): boolean {
    return this.#isEstablished && !this.#isOver;
  }

  /** The number of the stream; null: the service permits no further one now. */
  open(bytes: Uint8Array, result: StreamResult): number | null {
    if (!this.isEstablished || this.#quic.peerStreamsLeftBidi() < 1) return null;
    const id = this.#nextStreamId;
    const stream: Stream = { rest: bytes, parts: [], length: 0, result };
    if (!this.#write(id, stream)) return null;
    this.#nextStreamId += streamIdStep;
    this.#streams.set(id, stream);
    this.#flush();
    return id;
  }

  /** Nobody waits for the response any more. */
  abandon(id: number): void {
    if (!this.#streams.delete(id) || this.#isOver) return;
    const { Read, Write } = this.#options.quiche.Shutdown;
    for (const direction of [Read, Write]) {
      try {
        this.#quic.streamShutdown(id, direction, 0);
      } catch {
        // This direction has already ended.
      }
    }
    this.#flush();
  }

  /** Sends a close packet. Idempotent. */
  close(): void {
    if (this.#isOver) return;
    closeConnection(this.#quic, true, 0, "");
    this.#flush();
    this.#over(endHere("closed_here", ""));
  }

  #receive(packet: Buffer): void {
    if (this.#isOver) return;
    this.#silentTicks = 0;
    this.#silentMs = 0;
    takePacket(this.#quic, packet, this.#path);
    this.#work();
  }

  #work(): void {
    const wasEstablished = this.#isEstablished;
    if (!wasEstablished && this.#quic.isEstablished() && !this.#establish()) return;
    this.#read();
    for (const [id, stream] of this.#streams) if (stream.rest.length > 0) this.#write(id, stream);
    this.#flush();
    if (this.#quic.isClosed() || this.#quic.isDraining()) {
      this.#over(endOf(this.#quic, this.#options.dialect));
      return;
    }
    const { events } = this.#options;
    if (this.#isEstablished && !wasEstablished) events.established();
    if (this.#isEstablished) events.usable();
  }

  /** Runs before the client's certificate is sent. false: the server is not the expected one. */
  #establish(): boolean {
    const [certificate] = this.#quic.peerCertChain() ?? [];
    const refusal = this.#options.check.refusal(certificate);
    if (refusal !== null) {
      this.#over(endHere("certificate_untrusted", refusal));
      return false;
    }
    this.#isEstablished = true;
    this.#handshakeTimer?.cancel();
    this.#ticks = this.#options.clock.every(tickMs, () => this.#tick());
    return true;
  }

  /** false: quiche accepts nothing of it now. */
  #write(id: number, stream: Stream): boolean {
    try {
      const written = this.#quic.streamSend(id, stream.rest, true);
      if (written === null) return false;
      stream.rest = stream.rest.subarray(written);
      return true;
    } catch {
      return false; // the service stopped the stream, or the connection has ended
    }
  }

  #read(): void {
    if (!this.#quic.isReadable()) return; // the list costs more than this question
    for (const id of this.#quic.readable()) {
      const stream = this.#streams.get(id);
      if (stream) this.#readStream(id, stream);
    }
  }

  #readStream(id: number, stream: Stream): void {
    for (;;) {
      let read: [number, boolean] | null;
      try {
        read = this.#quic.streamRecv(id, scratch);
      } catch {
        this.#streams.delete(id);
        stream.result.failed(null);
        return;
      }
      if (!read) return;
      const [length, isEnd] = read;
      stream.length += length;
      // A longer response is invalid in any case.
      if (stream.length <= responseBytesMax) {
        stream.parts.push(Buffer.from(scratch.subarray(0, length)));
      }
      if (!isEnd) continue;
      this.#streams.delete(id);
      stream.result.responded(Buffer.concat(stream.parts));
      return;
    }
  }

  /** Asks an idle or silent service for a packet, and gives up a silent one. */
  #tick(): void {
    this.#silentMs += tickMs;
    const { keepAliveMs } = this.#options;
    const isAsked = this.#silentTicks > 0 || this.#streams.size > 0;
    if (!isAsked && this.#silentMs < keepAliveMs) return;
    if (this.#silentTicks >= silentTicksMax) {
      const seconds = (silentTicksMax * tickMs) / 1000;
      this.#over(endHere("silent", `no packet from the service for ${seconds} s`));
      return;
    }
    this.#silentTicks++;
    try {
      this.#quic.sendAckEliciting();
    } catch {
      // The connection has ended; its timer reports it.
    }
    this.#flush();
  }

  #expired(): void {
    if (this.#isOver) return;
    if (this.#quic.timeout() === 0) this.#quic.onTimeout();
    this.#work();
  }

  /** The kernel reports that nobody listens. Such messages can be forged, so they end no connection. */
  #refused(error: Error): void {
    if (!this.#isEstablished) this.#over(endHere("refused", error.message));
  }

  #flush(): void {
    const { socket, clock } = this.#options;
    for (const { packet } of packetsOf(this.#quic)) {
      socket.send(packet, (error) => {
        if (error && !this.#isOver) this.#refused(error);
      });
    }
    const restMs = this.#isOver ? null : this.#quic.timeout();
    if (restMs !== null) this.#timer.set(clock.monotonicNs() + BigInt(Math.ceil(restMs)) * nsPerMs);
  }

  #over(end: ConnectionEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const timer of [this.#timer, this.#handshakeTimer, this.#ticks]) timer?.cancel();
    const { socket, events } = this.#options;
    setImmediate(() => socket.close()); // the last packets leave before
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const { result } of streams) result.failed(end);
    events.ended(end);
  }
}
