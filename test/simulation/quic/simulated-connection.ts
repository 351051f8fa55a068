// The gateway's side of a simulated QUIC connection, with the interface of quiche.
//
// It has streams, acknowledgements, repetition of lost packets, a congestion window, time-outs and closes. The
// product's own classes decide everything else. What it leaves out of QUIC: encryption, flow control of single
// streams, and migration.

import type { Clock } from "../../../src/core/clock.ts";
import type { QuicheConnection } from "../../../src/core/quic/quiche.ts";
import {
  type Frame,
  isAckEliciting,
  type PacketTable,
  type StreamFrame,
  streamBytesMax,
} from "./packets.ts";

const firstStreamId = 2;
const streamIdStep = 4;
/** Bytes of stream data that are under way at most. */
const windowBytes = 12_000;
const probeMs = 60;
const idleMs = 10_000;
/** A packet is lost when one that was sent so much later has arrived. */
const reorderingMax = 3;

interface SendStream {
  /** Accepted bytes that are in no packet yet. */
  unsent: Buffer;
  offset: number;
  isLast: boolean;
  unacknowledged: number;
  isStopped: boolean;
}

interface SentPacket {
  readonly number: number;
  readonly frames: readonly Frame[];
  readonly streamBytes: number;
}

interface SimulatedConnectionOptions {
  readonly clock: Clock;
  readonly table: PacketTable;
  readonly id: Uint8Array;
}

function streamBytesIn(frames: readonly Frame[]): number {
  return frames.reduce((sum, each) => sum + (each.kind === "stream" ? each.bytes.length : 0), 0);
}

export class SimulatedConnection implements QuicheConnection {
  readonly #options: SimulatedConnectionOptions;
  readonly #streams = new Map<number, SendStream>();
  readonly #underWay = new Map<number, SentPacket>();
  readonly #received = new Set<number>();
  /** To be sent, before new stream data. */
  #waiting: Frame[] = [{ kind: "hello" }];
  #acknowledgements: number[] = [];
  #nextNumber = 0;
  #newestAcknowledged = -1;
  #probes = 0;
  /** Monotonic, in ms: when it last sent something that is acknowledged, and last heard something. */
  #sentMs: number;
  #heardMs: number;
  #streamsMax = 0;
  #opened = 0;
  #repeatedBytes = 0;
  #isEstablished = false;
  #isOver = false;
  #isTimedOut = false;
  #closing: Extract<Frame, { kind: "close" }> | null = null;
  #peerError: ReturnType<QuicheConnection["peerError"]> = null;

  constructor(options: SimulatedConnectionOptions) {
    this.#options = options;
    this.#sentMs = this.#nowMs;
    this.#heardMs = this.#nowMs;
  }

  get #nowMs(): number {
    return Number(this.#options.clock.monotonicNs()) / 1e6;
  }

  recv(datagram: Uint8Array): number {
    const { packet } = this.#options.table.read(datagram);
    if (this.#isOver) return datagram.length;
    this.#heardMs = this.#nowMs;
    if (isAckEliciting(packet.frames)) this.#acknowledgements.push(packet.number);
    if (this.#received.has(packet.number)) return datagram.length;
    this.#received.add(packet.number);
    for (const frame of packet.frames) this.#take(frame);
    return datagram.length;
  }

  #take(frame: Frame): void {
    switch (frame.kind) {
      case "welcome":
        this.#isEstablished = true;
        return;
      case "streams":
        this.#streamsMax = Math.max(this.#streamsMax, frame.most);
        return;
      case "ack":
        for (const number of frame.packets) this.#acknowledged(number);
        this.#findLost();
        return;
      case "stop": {
        const stream = this.#streams.get(frame.id);
        if (stream) stream.isStopped = true;
        return;
      }
      case "close":
        this.#peerError = { isApp: frame.isApp, errorCode: frame.code, reason: Buffer.alloc(0) };
        this.#isOver = true;
        return;
      case "hello":
      case "stream":
      case "reset":
      case "ping":
    }
  }

  #acknowledged(number: number): void {
    const sent = this.#underWay.get(number);
    if (!sent) return;
    this.#underWay.delete(number);
    this.#newestAcknowledged = Math.max(this.#newestAcknowledged, number);
    this.#probes = 0;
    for (const frame of sent.frames) {
      if (frame.kind !== "stream") continue;
      const stream = this.#streams.get(frame.id);
      if (!stream) continue;
      stream.unacknowledged -= frame.bytes.length;
      const isWhole = stream.isLast && stream.unsent.length === 0 && stream.unacknowledged === 0;
      if (isWhole) this.#streams.delete(frame.id);
    }
  }

  #findLost(): void {
    for (const sent of this.#underWay.values())
      if (sent.number + reorderingMax <= this.#newestAcknowledged) this.#repeat(sent);
  }

  #repeat({ number, frames, streamBytes }: SentPacket): void {
    this.#underWay.delete(number);
    this.#repeatedBytes += streamBytes;
    const again = frames.filter(
      (frame) =>
        frame.kind === "hello" ||
        frame.kind === "reset" ||
        (frame.kind === "stream" && this.#streams.get(frame.id)?.isStopped === false),
    );
    this.#waiting.push(...again);
  }

  send(datagram: Uint8Array): ReturnType<QuicheConnection["send"]> {
    if (this.#isOver) return null;
    const frames = this.#nextFrames();
    if (frames.length === 0) return null;
    const { table, id } = this.#options;
    const number = this.#nextNumber++;
    const buffer = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.length);
    const length = table.write(id, { number, frames }, buffer);
    if (isAckEliciting(frames)) {
      this.#underWay.set(number, { number, frames, streamBytes: streamBytesIn(frames) });
      this.#sentMs = this.#nowMs;
    }
    const nowhere = { host: "", port: 0 };
    return [length, { from: nowhere, to: nowhere }];
  }

  #nextFrames(): Frame[] {
    if (this.#closing) {
      this.#isOver = true;
      return [this.#closing];
    }
    const frames: Frame[] = [];
    for (const [id, { isStopped }] of this.#streams)
      if (isStopped) {
        this.#streams.delete(id);
        this.#waiting.push({ kind: "reset", id });
      }
    if (this.#acknowledgements.length > 0)
      frames.push({ kind: "ack", packets: this.#acknowledgements.splice(0) });
    const firstStream = this.#waiting.findIndex(({ kind }) => kind === "stream");
    const count = firstStream < 0 ? this.#waiting.length : firstStream + 1;
    frames.push(...this.#waiting.splice(0, count));
    const next = firstStream < 0 ? this.#nextStreamFrame() : null;
    if (next) frames.push(next);
    return frames;
  }

  #nextStreamFrame(): StreamFrame | null {
    for (const [id, stream] of this.#streams) {
      const { unsent, offset, isLast } = stream;
      if (unsent.length === 0) continue;
      const bytes = unsent.subarray(0, streamBytesMax);
      stream.unsent = unsent.subarray(bytes.length);
      stream.offset += bytes.length;
      return { kind: "stream", id, offset, bytes, isLast: isLast && stream.unsent.length === 0 };
    }
    return null;
  }

  peerStreamsLeftUni(): number {
    return this.#streamsMax - this.#opened;
  }

  streamPriority(id: number): void {
    const number = (id - firstStreamId) / streamIdStep + 1;
    if (this.#isOver) throw new Error("Done");
    if (number > this.#streamsMax) throw new Error("StreamLimit");
    this.#opened = Math.max(this.#opened, number);
    this.#streams.set(id, {
      unsent: Buffer.alloc(0),
      offset: 0,
      isLast: false,
      unacknowledged: 0,
      isStopped: false,
    });
  }

  streamCapacity(id: number): number {
    const stream = this.#streams.get(id);
    if (!stream || stream.isStopped || this.#isOver) throw new Error("StreamStopped");
    let used = 0;
    for (const { streamBytes } of this.#underWay.values()) used += streamBytes;
    for (const { unsent } of this.#streams.values()) used += unsent.length;
    return Math.max(0, windowBytes - used - streamBytesIn(this.#waiting));
  }

  streamSend(id: number, bytes: Uint8Array, isLast: boolean): number | null {
    const length = Math.min(bytes.length, this.streamCapacity(id));
    const stream = this.#streams.get(id);
    if (length === 0 || !stream) return null;
    stream.unsent = Buffer.concat([stream.unsent, bytes.subarray(0, length)]);
    stream.unacknowledged += length;
    stream.isLast = isLast && length === bytes.length;
    return length;
  }

  /** As quiche: true for a stream that it has forgotten. */
  streamFinished(id: number): boolean {
    return !this.#streams.has(id);
  }

  streamShutdown(id: number): void {
    if (!this.#streams.delete(id)) throw new Error("Done");
    this.#waiting = this.#waiting.filter((frame) => frame.kind !== "stream" || frame.id !== id);
    this.#waiting.push({ kind: "reset", id });
  }

  writable(): number[] {
    return [...this.#streams.keys()];
  }

  timeout(): number | null {
    if (this.#isOver) return null;
    const nowMs = this.#nowMs;
    const idleRestMs = this.#heardMs + idleMs - nowMs;
    if (this.#underWay.size === 0) return Math.max(0, idleRestMs);
    const probeRestMs = this.#sentMs + probeMs * 2 ** Math.min(6, this.#probes) - nowMs;
    return Math.max(0, Math.min(idleRestMs, probeRestMs));
  }

  onTimeout(): void {
    if (this.#nowMs >= this.#heardMs + idleMs) {
      this.#isTimedOut = true;
      this.#isOver = true;
      return;
    }
    this.#probes++;
    for (const sent of this.#underWay.values()) this.#repeat(sent);
    if (this.#waiting.length === 0) this.#waiting.push({ kind: "ping" });
  }

  sendAckEliciting(): void {
    this.#waiting.push({ kind: "ping" });
  }

  close(isApp: boolean, code: number): void {
    if (this.#isOver || this.#closing) throw new Error("Done");
    this.#closing = { kind: "close", isApp, code };
  }

  isEstablished(): boolean {
    return this.#isEstablished;
  }

  isDraining(): boolean {
    return this.#isOver;
  }

  isClosed(): boolean {
    return this.#isTimedOut;
  }

  isTimedOut(): boolean {
    return this.#isTimedOut;
  }

  peerError(): ReturnType<QuicheConnection["peerError"]> {
    return this.#peerError;
  }

  localError(): null {
    return null;
  }

  stats(): ReturnType<QuicheConnection["stats"]> {
    return {
      recv: this.#received.size,
      sent: this.#nextNumber,
      lost: 0,
      streamRetransBytes: this.#repeatedBytes,
      peerMaxIdleTimeout: 0,
    };
  }
  sourceId(): Uint8Array {
    return this.#options.id;
  }

  // The route uses none of the rest: leaders send no streams.

  destinationId(): Uint8Array {
    return this.#options.id;
  }

  streamRecv(): null {
    return null;
  }

  isReadable(): boolean {
    return false;
  }

  streamReadable(): boolean {
    return false;
  }

  readable(): number[] {
    return [];
  }

  peerStreamsLeftBidi(): number {
    return 0;
  }

  peerCertChain(): null {
    return null;
  }

  applicationProto(): Uint8Array {
    return Buffer.alloc(0);
  }

  pathStats(): [] {
    return [];
  }
}
