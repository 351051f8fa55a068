// One QUIC connection to one leader: one stream for each transaction, closed at once.
//
// Made by leader.ts, on the thread of the sockets. Knows what became of every transaction it took:
// quiche forgets a stream of ours when the other side has acknowledged its last byte, and not before,
// so that `streamFinished` is the acknowledgement. (Of a stream that was told to stop after all of it had
// been sent, quiche says no more than whether it arrived.) Each transaction leaves in packets of its own (what
// fits one packet lies in one frame). Knows no queue: what it does not take now, its leader keeps.
// Whatever comes in is hostile; nothing here throws at the caller.

import type { Clock, Timer } from "../../core/clock.ts";
import { closeName } from "./close-names.ts";
import { packetBytesMax, type Quiche, type QuicheConfig, type QuicheConnection } from "./quiche.ts";
import type { TpuAddress } from "./types.ts";

interface ConnectionOptions {
  readonly quiche: Quiche;
  readonly config: QuicheConfig;
  readonly clock: Clock;
  readonly local: TpuAddress;
  readonly remote: TpuAddress;
  /** Our id of it, in every packet that comes. */
  readonly scid: Uint8Array;
  /** For the handshake, and for each acknowledgement. */
  readonly timeoutMs: number;
  /** Gives the bytes to the socket; they are not changed afterwards. */
  readonly transmit: (packet: Uint8Array) => void;
  readonly listener: ConnectionListener;
}

/** A transaction on its way. */
export interface Outgoing {
  readonly id: number;
  readonly bytes: Uint8Array;
  /** Monotonic. */
  readonly deadlineNs: bigint;
}

/** What the connection says; never inside `send` except `sent`. */
export interface ConnectionListener {
  established(): void;
  /** It may take something again. */
  usable(): void;
  sent(outgoing: Outgoing): void;
  acknowledged(outgoing: Outgoing, tookNs: bigint): void;
  /** The other side wants no more of it, which never left as a whole. */
  stopped(outgoing: Outgoing): void;
  failed(outgoing: Outgoing, reason: string): void;
  /** Never left as a whole; of a closed connection, before `closed`. */
  unsent(outgoing: Outgoing): void;
  /** The last word. */
  closed(name: string): void;
}

interface Stream {
  readonly outgoing: Outgoing;
  readonly streamId: number;
  /** Given to quiche so far. */
  accepted: number;
  /** Bytes of packets that left since the first of it was given to quiche. */
  emitted: number;
  /** Monotonic; null: not sent as a whole. */
  sentNs: bigint | null;
}

const firstStreamId = 2;
const streamIdStep = 4;
/** Acknowledgements come in order but for what was lost: after so many that are not, wait. */
const lookAheadMax = 8;
/** A transaction of the older formats leaves whole or not at all: in one frame of one packet. */
const wholeBytesMax = 1232;
/** Among streams of one urgency that are not incremental, quiche finishes the oldest first. */
const urgency = 127;
const sweepMs = 50;
/**
 * Timers run before sockets are read: after a standstill of this process the answers lie there unread. Long
 * enough for other timers to be through, so that what came is read before anybody is given up.
 */
const secondLookMs = 20;
const keepAliveMs = 1000;
/**
 * So many in a row that nothing came back for: a leader that started anew knows nothing of the connection,
 * and the idle time-out is too long to wait for. Counted, not measured: a standstill of this process is
 * no silence of the other side.
 */
const unansweredMax = 5;
export const idleTimeoutMs = 10_000;
const nsPerMs = 1_000_000n;

export class TpuConnection {
  readonly #options: ConnectionOptions;
  readonly #quiche: QuicheConnection;
  readonly #startedNs: bigint;
  /** In the order of sending. */
  readonly #streams = new Map<number, Stream>();
  /** Given to quiche in part, or not yet in packets; the first is the oldest. */
  #unfinished: Stream[] = [];
  #nextStreamId = firstStreamId;
  /** Quiche has it open, so that the leader's permission for it is used up; nothing was sent on it. */
  #preparedStreamId: number | null = null;
  #timer: Timer | undefined;
  #timerDueNs = 0n;
  #handshakeTimer: Timer | undefined;
  #sweepTimer: Timer | undefined;
  #keepAlive: Timer | undefined;
  #handshakeMs: number | null = null;
  /** Since something came. */
  #unanswered = 0;
  #isClosed = false;

  /** Throws quiche's Error for an address that is none. */
  constructor(options: ConnectionOptions) {
    const { quiche, config, clock, local, remote, scid, timeoutMs } = options;
    this.#options = options;
    this.#startedNs = clock.monotonicNs();
    this.#quiche = quiche.Connection.connect(null, scid, local, remote, config);
    this.#handshakeTimer = clock.after(timeoutMs, () => {
      this.#handshakeTimer = clock.after(secondLookMs, () => this.#end("handshake_timeout"));
    });
  }

  /** The first packet. Apart from the constructor, so that the listener knows the connection. */
  start(): void {
    this.#flush();
  }

  get isEstablished(): boolean {
    return this.#handshakeMs !== null && !this.#isClosed;
  }

  get handshakeMs(): number | null {
    return this.#handshakeMs;
  }

  /** Taken, and neither acknowledged nor given up. */
  get inFlight(): number {
    return this.#streams.size;
  }

  /** False: no stream or no room for it now; `usable` tells when there may be. */
  send(outgoing: Outgoing): boolean {
    if (!this.isEstablished || this.#unfinished.length > 0) return false;
    const streamId = this.#nextStreamId;
    if (!this.#prepare(streamId)) return false;
    const stream: Stream = { outgoing, streamId, accepted: 0, emitted: 0, sentNs: null };
    if (!this.#write(stream)) return false;
    this.#nextStreamId += streamIdStep;
    this.#streams.set(streamId, stream);
    this.#unfinished.push(stream);
    this.#flush();
    this.#sweepTimer ??= this.#options.clock.after(sweepMs, () => this.#sweep(null));
    return true;
  }

  /** Setting its order opens a stream: asked for once, also when nothing could be sent on it as yet. */
  #prepare(streamId: number): boolean {
    if (this.#preparedStreamId === streamId) return true;
    if (this.#quiche.peerStreamsLeftUni() < 1) return false;
    try {
      this.#quiche.streamPriority(streamId, urgency, false);
    } catch {
      return false; // the connection is lost; the next packet or timer shows it
    }
    this.#preparedStreamId = streamId;
    return true;
  }

  receive(packet: Uint8Array): void {
    if (this.#isClosed) return;
    this.#unanswered = 0;
    const { remote, local } = this.#options;
    try {
      this.#quiche.recv(packet, { from: remote, to: local });
    } catch {
      // A packet that cannot be read. What is wrong with the connection itself shows below.
    }
    this.#afterwards();
  }

  /** Says so to the other side; what is under way is reported as failed. */
  close(name = "closed_here"): void {
    this.#end(name);
  }

  #afterwards(): void {
    this.#flush();
    if (this.#quiche.isClosed() || this.#quiche.isDraining()) {
      this.#over(this.#closeName());
      return;
    }
    if (this.#handshakeMs === null && this.#quiche.isEstablished()) this.#established();
    this.#readAcknowledged(lookAheadMax);
    this.#finishWriting();
    if (this.isEstablished && this.#unfinished.length === 0) this.#options.listener.usable();
  }

  #established(): void {
    const { clock, listener } = this.#options;
    this.#handshakeMs = Number(clock.monotonicNs() - this.#startedNs) / 1e6;
    this.#handshakeTimer?.cancel();
    this.#handshakeTimer = undefined;
    this.#keepAlive = clock.every(keepAliveMs, () => {
      if (this.#unanswered++ >= unansweredMax) {
        this.#end("silent");
        return;
      }
      this.#guarded(() => this.#quiche.sendAckEliciting());
    });
    listener.established();
  }

  /**
   * Gives quiche what it takes now. False: nothing, also where there is room for a little only: a
   * window that is filled in small pieces is answered in small pieces for ever.
   */
  #write(stream: Stream): boolean {
    const { streamId, accepted } = stream;
    const { bytes } = stream.outgoing;
    const rest = accepted === 0 ? bytes : bytes.subarray(accepted);
    try {
      if (this.#quiche.streamCapacity(streamId) < Math.min(rest.length, wholeBytesMax)) {
        return false;
      }
      const taken = this.#quiche.streamSend(streamId, rest, true);
      stream.accepted += taken ?? 0;
      return taken !== null;
    } catch {
      // Stopped by the other side, or the connection is lost: both are seen with the next packet.
      return false;
    }
  }

  #finishWriting(): void {
    const [first] = this.#unfinished;
    if (!first || first.accepted === first.outgoing.bytes.length) return;
    if (this.#write(first)) this.#flush();
  }

  /** Everything that quiche has to say, as packets; then the timer for what it waits for. */
  #flush(): void {
    let emitted = 0;
    try {
      for (;;) {
        const packet = Buffer.allocUnsafe(packetBytesMax);
        const written = this.#quiche.send(packet);
        if (written === null) break;
        emitted += written[0];
        this.#options.transmit(packet.subarray(0, written[0]));
      }
    } catch {
      // Only of a connection that is lost; whoever calls finds it closed.
    }
    if (emitted > 0) this.#noteEmitted(emitted);
    this.#arm();
  }

  /**
   * Quiche takes no more of a stream than its window lets out at once, but for the packets' heads: so
   * what was taken as a whole has left when as many bytes did.
   */
  #noteEmitted(bytes: number): void {
    if (this.#unfinished.length === 0) return;
    const nowNs = this.#options.clock.monotonicNs();
    this.#unfinished = this.#unfinished.filter((stream) => {
      stream.emitted += bytes;
      const { length } = stream.outgoing.bytes;
      if (stream.accepted < length || stream.emitted < length) return true;
      this.#markSent(stream, nowNs);
      return false;
    });
  }

  #markSent(stream: Stream, nowNs: bigint): void {
    if (stream.sentNs !== null) return;
    stream.sentNs = nowNs;
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
      this.#forget(stream);
      if (accepted < outgoing.bytes.length) {
        // Finished before its end: the other side told to stop, and has all that it was given.
        listener.stopped(outgoing);
        continue;
      }
      const nowNs = clock.monotonicNs();
      this.#markSent(stream, nowNs);
      listener.acknowledged(outgoing, nowNs - (stream.sentNs ?? nowNs));
    }
  }

  #forget(stream: Stream): void {
    this.#streams.delete(stream.streamId);
    if (this.#unfinished.includes(stream)) {
      this.#unfinished = this.#unfinished.filter((one) => one !== stream);
    }
  }

  /**
   * Looks at everything under way, and gives up what had waited too long for an acknowledgement when it
   * was looked at before, at `asOfNs`.
   */
  #sweep(asOfNs: bigint | null): void {
    this.#sweepTimer = undefined;
    if (this.#isClosed) return;
    this.#readAcknowledged(Number.POSITIVE_INFINITY);
    const { clock, listener } = this.#options;
    const nowNs = clock.monotonicNs();
    const late = [...this.#streams.values()].filter((one) => this.#isLate(one, asOfNs ?? nowNs));
    if (late.length > 0 && asOfNs === null) {
      this.#sweepTimer = clock.after(secondLookMs, () => this.#sweep(nowNs));
      return;
    }
    for (const stream of late) {
      this.#giveUp(stream);
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

  /** The other side need not wait for the rest of it, nor this one repeat it. */
  #giveUp(stream: Stream): void {
    this.#forget(stream);
    const { quiche } = this.#options;
    try {
      this.#quiche.streamShutdown(stream.streamId, quiche.Shutdown.Write, 0);
    } catch {
      // Known to be over already.
    }
  }

  #arm(): void {
    if (this.#isClosed) return;
    const restMs = this.#quiche.timeout();
    if (restMs === null) return;
    const { clock } = this.#options;
    const dueNs = clock.monotonicNs() + BigInt(Math.ceil(restMs)) * nsPerMs;
    if (this.#timer) {
      // One that is too early looks again; most are: every acknowledgement moves the end on.
      if (this.#timerDueNs <= dueNs) return;
      this.#timer.cancel();
    }
    this.#timerDueNs = dueNs;
    this.#timer = clock.after(Math.max(1, restMs), () => {
      this.#timer = undefined;
      this.#guarded(() => {
        if (this.#quiche.timeout() === 0) this.#quiche.onTimeout();
      });
    });
  }

  /** Of timers: nobody above them would catch anything. */
  #guarded(action: () => void): void {
    try {
      action();
    } catch {
      this.#end("lost");
      return;
    }
    this.#afterwards();
  }

  #closeName(): string {
    const { isApp, errorCode } = this.#quiche.peerError() ?? {};
    if (isApp !== undefined && errorCode !== undefined) return closeName({ isApp, errorCode });
    const local = this.#quiche.localError();
    if (local) return `here_${closeName(local)}`;
    return this.#quiche.isTimedOut() ? "idle_timeout" : "lost";
  }

  #end(name: string): void {
    if (this.#isClosed) return;
    try {
      this.#quiche.close(true, 0, new Uint8Array(0));
    } catch {
      // Closed already.
    }
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
