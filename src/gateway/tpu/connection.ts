// One QUIC connection to one leader, with one stream per transaction, closed immediately.
//
// leader.ts creates it in the process of the sockets. It reports the result of every accepted
// transaction. quiche forgets a stream when the remote side acknowledged its last byte, or stopped
// it. Stopped streams are looked up after every received packet, so the other finished ones were
// acknowledged (an exception: docs/tpu.md).
//
// Each transaction is sent in packets of its own; one that fits one packet is in one frame. There
// is no queue here: the leader keeps what `send` refuses. All received data is untrusted, and
// nothing here throws to the caller.

import type { Clock, Timer } from "../../core/clock.ts";
import { DueTimer } from "../../core/quic/due-timer.ts";
import {
  packetBytesMax,
  type Quiche,
  type QuicheConfig,
  type QuicheConnection,
} from "../../core/quic/quiche.ts";
import { closeConnection, endNameOf, takePacket } from "../../core/quic/quiche-calls.ts";
import { Emissions } from "./emissions.ts";
import type { TpuAddress } from "./types.ts";

interface ConnectionOptions {
  readonly quiche: Quiche;
  readonly config: QuicheConfig;
  readonly clock: Clock;
  readonly local: TpuAddress;
  readonly remote: TpuAddress;
  /** Our connection id, contained in every received packet. */
  readonly scid: Uint8Array;
  /** Time-out of the handshake and of each acknowledgement. */
  readonly timeoutMs: number;
  /** Sends the bytes over the socket; they must not change afterwards. */
  readonly transmit: (packet: Uint8Array) => void;
  readonly listener: ConnectionListener;
}

/** A transaction to send. */
export interface Outgoing {
  readonly id: number;
  readonly bytes: Uint8Array;
  /** Monotonic. */
  readonly deadlineNs: bigint;
}

/** Events of the connection. Only `sent` can occur inside `send`. */
export interface ConnectionListener {
  established(): void;
  /** The connection may accept transactions again. */
  usable(): void;
  sent(outgoing: Outgoing): void;
  acknowledged(outgoing: Outgoing, tookNs: bigint): void;
  /** The remote side stopped the stream. `isSent`: after all of it was sent. */
  stopped(outgoing: Outgoing, isSent: boolean): void;
  failed(outgoing: Outgoing, reason: string): void;
  /** The transaction was not sent completely; for a closed connection, called before `closed`. */
  unsent(outgoing: Outgoing): void;
  /** The last event. */
  closed(name: string): void;
}

interface Stream {
  readonly outgoing: Outgoing;
  readonly streamId: number;
  /** Bytes that quiche accepted. */
  accepted: number;
  /** End of its accepted bytes in `Emissions`. */
  end: number;
  /** Packets of the connection when its last byte was sent. */
  packets: number;
  /** Monotonic; null: not sent completely. */
  sentNs: bigint | null;
}

const firstStreamId = 2;
const streamIdStep = 4;
/**
 * Acknowledgements arrive in order except after packet loss: after so many unacknowledged streams,
 * the scan stops.
 */
const streamsAheadMax = 8;
/**
 * A transaction of legacy or v0 format is sent completely or not at all, in one frame of one
 * packet.
 */
const transactionBytesMax = 1232;
/** Among non-incremental streams of equal urgency, quiche finishes the oldest first. */
const urgency = 127;
/** Longest packet without a transaction: acknowledgements, and keep-alives, which are rare. */
const emptyBytesMax = 100;
const sweepMs = 50;
/**
 * After this process was blocked, timers run before sockets are read. This delay lets the received
 * packets be processed before a time-out applies.
 */
const recheckMs = 20;
const keepAliveMs = 1000;
/**
 * Unanswered keep-alives after which the connection is closed: a restarted leader does not know it,
 * and the idle time-out is too long. They are counted, because a blocked process is not a silent
 * leader.
 */
const unansweredMax = 5;
export const idleTimeoutMs = 10_000;
const nsPerMs = 1_000_000n;

export class TpuConnection {
  readonly #options: ConnectionOptions;
  readonly #quiche: QuicheConnection;
  readonly #startedNs: bigint;
  /** Streams in sending order. */
  readonly #streams = new Map<number, Stream>();
  /** Streams that quiche accepted in part, or that are not in packets yet; oldest first. */
  #unfinished: Stream[] = [];
  #nextStreamId = firstStreamId;
  /** A stream that is open in quiche and counts against the leader's limit, but has no data yet. */
  #preparedStreamId: number | null = null;
  readonly #timer: DueTimer;
  #handshakeTimer: Timer | undefined;
  #sweepTimer: Timer | undefined;
  #keepAlive: Timer | undefined;
  #handshakeMs: number | null = null;
  readonly #emissions = new Emissions();
  /** Stream bytes may have been lost and sent again since quiche was last asked for their sum. */
  #mayHaveRepeated = false;
  /** The sum that quiche reported last. */
  #repeatedBytes = 0;
  /** Buffer of the next packet. */
  #nextPacket = Buffer.allocUnsafe(packetBytesMax);
  /** Packets that the remote side acknowledges. */
  #packets = 0;
  /** Keep-alives since the last received packet. */
  #unanswered = 0;
  /** The last keep-alive left: a full congestion window delays it. */
  #isKeepAliveSent = false;
  #isClosed = false;

  /** Throws quiche's Error for an invalid address. */
  constructor(options: ConnectionOptions) {
    const { quiche, config, clock, local, remote, scid, timeoutMs } = options;
    this.#options = options;
    this.#startedNs = clock.monotonicNs();
    this.#quiche = quiche.Connection.connect(null, scid, local, remote, config);
    this.#timer = new DueTimer(clock, () => {
      this.#guarded(() => {
        if (this.#quiche.timeout() !== 0) return;
        this.#mayHaveRepeated = true;
        this.#quiche.onTimeout();
      });
    });
    this.#handshakeTimer = clock.after(timeoutMs, () => {
      this.#handshakeTimer = clock.after(recheckMs, () => this.#end("handshake_timeout"));
    });
  }

  /**
   * Sends the first packet. Separate from the constructor, so that the listener knows the
   * connection.
   */
  start(): void {
    this.#flush();
  }

  get isEstablished(): boolean {
    return this.#handshakeMs !== null && !this.#isClosed;
  }

  get handshakeMs(): number | null {
    return this.#handshakeMs;
  }

  /** Accepted transactions without a result. */
  get inFlight(): number {
    return this.#streams.size;
  }

  /** Returns false if no stream or buffer is available now; `usable` is called when one may be. */
  send(outgoing: Outgoing): boolean {
    if (!this.isEstablished || this.#unfinished.length > 0) return false;
    const streamId = this.#nextStreamId;
    if (!this.#prepare(streamId)) return false;
    const stream: Stream = { outgoing, streamId, accepted: 0, end: 0, packets: 0, sentNs: null };
    if (!this.#write(stream)) return false;
    this.#nextStreamId += streamIdStep;
    this.#streams.set(streamId, stream);
    this.#unfinished.push(stream);
    this.#flush();
    this.#sweepTimer ??= this.#options.clock.after(sweepMs, () => this.#sweep(null));
    return true;
  }

  /**
   * Opens a stream by setting its priority, once per stream, even if no data can be sent on it yet.
   */
  #prepare(streamId: number): boolean {
    if (this.#preparedStreamId === streamId) return true;
    if (this.#quiche.peerStreamsLeftUni() < 1) return false;
    try {
      this.#quiche.streamPriority(streamId, urgency, false);
    } catch {
      return false; // the connection is lost; the next packet or timer detects it
    }
    this.#preparedStreamId = streamId;
    return true;
  }

  receive(packet: Uint8Array): void {
    if (this.#isClosed) return;
    this.#unanswered = 0;
    const { remote, local } = this.#options;
    takePacket(this.#quiche, packet, { from: remote, to: local });
    this.#readStopped();
    const mayHaveRepeated = this.#mayHaveRepeated;
    if (this.#streams.size > 0) this.#mayHaveRepeated = true;
    this.#afterwards();
    // When everything was acknowledged, nothing is left that may be sent again.
    if (this.#streams.size === 0) this.#mayHaveRepeated = mayHaveRepeated;
    // Acknowledgements that were just sent need no answer.
    this.#isKeepAliveSent = false;
  }

  /** Must run before quiche sends: it then forgets the streams that the remote side stopped. */
  #readStopped(): void {
    if (this.#streams.size === 0) return;
    for (const streamId of this.#quiche.writable()) {
      const stream = this.#streams.get(streamId);
      if (stream && this.#isStopped(streamId)) this.#stop(stream);
    }
    const [only] = this.#streams.values();
    if (only && this.#streams.size === 1 && this.#isFinishedTooSoon(only)) this.#stop(only);
  }

  /**
   * quiche has already forgotten a stream whose stop came with an acknowledgement of a part. Its other
   * packets are still in flight then, so that quiche waits for them. This shows only while nothing else
   * is in flight.
   */
  #isFinishedTooSoon({ streamId, outgoing, packets }: Stream): boolean {
    if (outgoing.bytes.length <= transactionBytesMax || packets !== this.#packets) return false;
    if (!this.#quiche.streamFinished(streamId)) return false;
    const theirsMs = this.#quiche.stats().peerMaxIdleTimeout;
    const idleMs = theirsMs > 0 ? Math.min(idleTimeoutMs, theirsMs) : idleTimeoutMs;
    return (this.#quiche.timeout() ?? idleMs) < idleMs / 2;
  }

  #stop(stream: Stream): void {
    const isSent = stream.sentNs !== null;
    this.#mayHaveRepeated = true;
    this.#forget(stream);
    this.#options.listener.stopped(stream.outgoing, isSent);
  }

  #isStopped(streamId: number): boolean {
    try {
      this.#quiche.streamCapacity(streamId);
      return false;
    } catch {
      return true;
    }
  }

  /** Closes the connection; transactions in flight are reported as failed. */
  close(name = "closed_here"): void {
    this.#end(name);
  }

  #afterwards(): void {
    this.#flush();
    if (this.#quiche.isClosed() || this.#quiche.isDraining()) {
      this.#over(endNameOf(this.#quiche));
      return;
    }
    if (this.#handshakeMs === null && this.#quiche.isEstablished()) this.#established();
    this.#readAcknowledged(streamsAheadMax);
    this.#finishWriting();
    if (this.isEstablished && this.#unfinished.length === 0) this.#options.listener.usable();
  }

  #established(): void {
    const { clock, listener } = this.#options;
    this.#handshakeMs = Number(clock.monotonicNs() - this.#startedNs) / 1e6;
    this.#handshakeTimer?.cancel();
    this.#handshakeTimer = undefined;
    this.#keepAlive = clock.every(keepAliveMs, () => {
      if (this.#isKeepAliveSent) this.#unanswered++;
      if (this.#unanswered >= unansweredMax) {
        this.#end("silent");
        return;
      }
      this.#isKeepAliveSent = false;
      this.#packets++;
      this.#guarded(() => this.#quiche.sendAckEliciting());
    });
    listener.established();
  }

  /**
   * Writes as much as quiche accepts now. Returns false if nothing was written, including when only
   * a small part would fit: a window that is filled in small pieces is reopened in small pieces.
   */
  #write(stream: Stream): boolean {
    const { streamId, accepted } = stream;
    const { bytes } = stream.outgoing;
    const rest = accepted === 0 ? bytes : bytes.subarray(accepted);
    try {
      if (this.#quiche.streamCapacity(streamId) < Math.min(rest.length, transactionBytesMax)) {
        return false;
      }
      const written = this.#quiche.streamSend(streamId, rest, true);
      stream.accepted += written ?? 0;
      stream.end = this.#emissions.accept(written ?? 0);
      return written !== null;
    } catch {
      // The remote side stopped it, or the connection is lost: the next packet shows which.
      return false;
    }
  }

  #finishWriting(): void {
    const [first] = this.#unfinished;
    if (!first || first.accepted === first.outgoing.bytes.length) return;
    if (this.#write(first)) this.#flush();
  }

  /** Sends all of quiche's pending packets and schedules its next timer. */
  #flush(): void {
    let isEmpty = true;
    try {
      for (;;) {
        const packet = this.#nextPacket;
        const written = this.#quiche.send(packet);
        if (written === null) break;
        this.#nextPacket = Buffer.allocUnsafe(packetBytesMax);
        isEmpty = false;
        if (written[0] > emptyBytesMax) this.#packets++;
        this.#emissions.emit(written[0]);
        this.#options.transmit(packet.subarray(0, written[0]));
      }
    } catch {
      // Happens only for a lost connection; callers then find it closed.
    }
    if (!isEmpty) this.#noteEmitted();
    this.#arm();
  }

  #noteEmitted(): void {
    this.#isKeepAliveSent = true;
    if (this.#mayHaveRepeated) this.#repeatedBytes = this.#quiche.stats().streamRetransBytes;
    this.#mayHaveRepeated = false;
    this.#emissions.repeat(this.#repeatedBytes);
    if (this.#unfinished.length === 0) return;
    const nowNs = this.#options.clock.monotonicNs();
    this.#unfinished = this.#unfinished.filter((stream) => {
      const { length } = stream.outgoing.bytes;
      if (stream.accepted < length || !this.#emissions.isEmitted(stream.end)) return true;
      this.#markSent(stream, nowNs);
      return false;
    });
  }

  #markSent(stream: Stream, nowNs: bigint): void {
    if (stream.sentNs !== null) return;
    stream.sentNs = nowNs;
    stream.packets = this.#packets;
    this.#options.listener.sent(stream.outgoing);
  }

  #readAcknowledged(missesMax: number): void {
    const { clock, listener } = this.#options;
    let misses = 0;
    for (const stream of this.#streams.values()) {
      const { outgoing, streamId, accepted } = stream;
      if (!this.#quiche.streamFinished(streamId)) {
        misses++;
        if (misses >= missesMax) return;
        continue;
      }
      if (accepted < outgoing.bytes.length) {
        // Finished early: the remote side stopped the stream.
        this.#forget(stream);
        listener.stopped(outgoing, false);
        continue;
      }
      if (stream.sentNs === null) this.#emissions.arrive(stream.end);
      this.#forget(stream);
      const nowNs = clock.monotonicNs();
      this.#markSent(stream, nowNs);
      listener.acknowledged(outgoing, nowNs - (stream.sentNs ?? nowNs));
    }
  }

  #forget(stream: Stream): void {
    this.#streams.delete(stream.streamId);
    if (this.#unfinished.includes(stream)) {
      this.#emissions.discard(stream.accepted);
      this.#unfinished = this.#unfinished.filter((one) => one !== stream);
    }
  }

  /**
   * Checks all streams and gives up those whose acknowledgement was already late at the previous
   * check, at `asOfNs`.
   */
  #sweep(asOfNs: bigint | null): void {
    this.#sweepTimer = undefined;
    if (this.#isClosed) return;
    this.#readAcknowledged(Number.POSITIVE_INFINITY);
    const { clock, listener } = this.#options;
    const nowNs = clock.monotonicNs();
    const late = [...this.#streams.values()].filter((one) => this.#isLate(one, asOfNs ?? nowNs));
    if (late.length > 0 && asOfNs === null) {
      this.#sweepTimer = clock.after(recheckMs, () => this.#sweep(nowNs));
      return;
    }
    for (const stream of late) {
      this.#abandon(stream);
      if (stream.sentNs === null) listener.unsent(stream.outgoing);
      else listener.failed(stream.outgoing, "not_acknowledged");
    }
    this.#afterwards();
    if (this.#isClosed || this.#streams.size === 0 || this.#sweepTimer) return;
    this.#sweepTimer = clock.after(sweepMs, () => this.#sweep(null));
  }

  #isLate({ outgoing, sentNs }: Stream, nowNs: bigint): boolean {
    if (sentNs === null) return outgoing.deadlineNs <= nowNs;
    return sentNs + BigInt(this.#options.timeoutMs) * nsPerMs <= nowNs;
  }

  /** Resets the stream, so that neither side waits for or repeats the rest. */
  #abandon(stream: Stream): void {
    this.#forget(stream);
    this.#mayHaveRepeated = true;
    const { quiche } = this.#options;
    try {
      this.#quiche.streamShutdown(stream.streamId, quiche.Shutdown.Write, 0);
    } catch {
      // The stream has already ended.
    }
  }

  #arm(): void {
    if (this.#isClosed) return;
    const restMs = this.#quiche.timeout();
    if (restMs === null) return;
    const { clock } = this.#options;
    const dueNs = clock.monotonicNs() + BigInt(Math.ceil(restMs)) * nsPerMs;
    this.#timer.set(dueNs);
  }

  /** Runs a timer's action; no caller would catch its exceptions. */
  #guarded(action: () => void): void {
    try {
      action();
    } catch {
      this.#end("lost");
      return;
    }
    this.#afterwards();
  }

  #end(name: string): void {
    if (this.#isClosed) return;
    closeConnection(this.#quiche, true, 0, "");
    this.#flush();
    this.#over(name);
  }

  #over(name: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const timer of [this.#timer, this.#handshakeTimer, this.#sweepTimer, this.#keepAlive]) {
      timer?.cancel();
    }
    const { listener } = this.#options;
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    this.#unfinished = [];
    for (const { outgoing, sentNs } of streams) {
      if (sentNs === null) listener.unsent(outgoing);
      else listener.failed(outgoing, `connection_lost: ${name}`);
    }
    listener.closed(name);
  }
}
