// Assembles the streams of one connection, each with a limit of bytes and time.
//
// Called by server-connection.ts after packets arrived. The rest of a stream that exceeds a limit is read
// and discarded: quiche would not return the credit of a stream that it asked the client to stop. quiche's
// list of readable streams costs more than reading one, so the streams that are expected are asked first:
// incomplete ones, whose time runs, and then the next ones.

import type { QuicheConnection } from "../../core/quic/quiche.ts";
import type { DropName } from "./types.ts";

interface OpenStream {
  /** Grows up to the limit; null: the rest is discarded. */
  bytes: Buffer | null;
  length: number;
  readonly sinceNs: bigint;
}

interface StreamSink {
  /** At least one byte, not overwritten later. */
  completed(streamId: number, bytes: Uint8Array): void;
  dropped(streamId: number, reason: DropName): void;
}

/** Bytes of the incomplete streams of all connections. */
export interface HeldBytes {
  readonly max: number;
  /** A connection below this is never refused, whatever the others hold. */
  readonly connectionMin: number;
  total: number;
}

interface AssemblerLimits {
  readonly streamBytesMax: number;
  readonly timeoutNs: bigint;
  readonly held: HeldBytes;
}

const scratchBytes = 16 * 1024;
/** Shared by all connections: it is used only during one call. */
const scratch = Buffer.alloc(scratchBytes);
const smallBytes = 2048;
/** Above this number of incomplete streams, quiche's list is cheaper than asking for each. */
const askedOpenMax = 8;
/** The streams of a client: bidirectional 0, 4, 8, …; unidirectional 2, 6, 10, … */
const firstStreams = [0, 2] as const;
/** In the number of a stream. */
export const unidirectionalBit = 2;
const streamStep = 4;

export class StreamAssembler {
  readonly #limits: AssemblerLimits;
  readonly #sink: StreamSink;
  /** In the order of their start. */
  readonly #open = new Map<number, OpenStream>();
  /** The first stream of each type that has not been read yet. */
  readonly #next: [number, number] = [...firstStreams];
  #heldBytes = 0;

  constructor(limits: AssemblerLimits, sink: StreamSink) {
    this.#limits = limits;
    this.#sink = sink;
  }

  /** Start of the oldest incomplete stream that is not discarded. */
  get oldestNs(): bigint | undefined {
    for (const { bytes, sinceNs } of this.#open.values()) if (bytes) return sinceNs;
    return undefined;
  }

  /** Reads until `allows` returns false; it is called before each stream. */
  read(quic: QuicheConnection, nowNs: bigint, allows: () => boolean): void {
    while (quic.isReadable() && allows()) {
      const id = this.#expected(quic);
      if (id === undefined) {
        this.#readListed(quic, nowNs, allows);
        return;
      }
      this.#readStream(quic, id, nowNs);
    }
  }

  /** A readable stream: one of few incomplete ones, or one of the next. undefined: quiche's list has it. */
  #expected(quic: QuicheConnection): number | undefined {
    if (this.#open.size > askedOpenMax) return undefined;
    for (const id of this.#open.keys()) if (quic.streamReadable(id)) return id;
    for (const id of this.#next) if (quic.streamReadable(id)) return id;
    return undefined;
  }

  #readListed(quic: QuicheConnection, nowNs: bigint, allows: () => boolean): void {
    const ids = [...quic.readable()];
    const open = ids.filter((id) => this.#open.has(id));
    const fresh = ids.filter((id) => !this.#open.has(id));
    for (const id of [...open, ...fresh]) {
      if (!allows()) return;
      this.#readStream(quic, id, nowNs);
    }
  }

  /** Discards streams whose time is over at `nowNs`. */
  expire(nowNs: bigint): void {
    for (const [id, stream] of this.#open) {
      if (nowNs - stream.sinceNs < this.#limits.timeoutNs) return;
      if (stream.bytes) this.#discard(id, stream, "timed_out");
    }
  }

  /** The connection has ended: nothing is read afterwards. */
  close(): void {
    this.#release(this.#heldBytes);
    this.#open.clear();
  }

  #readStream(quic: QuicheConnection, id: number, nowNs: bigint): void {
    const type = (id & unidirectionalBit) === 0 ? 0 : 1;
    this.#next[type] = Math.max(this.#next[type], id + streamStep);
    for (;;) {
      let read: [number, boolean] | null;
      try {
        read = quic.streamRecv(id, scratch);
      } catch {
        this.#reset(id);
        return;
      }
      if (!read) return;
      const [count, isEnd] = read;
      this.#append(id, scratch.subarray(0, count), nowNs, isEnd);
      if (isEnd) return;
    }
  }

  #append(id: number, chunk: Buffer, nowNs: bigint, isEnd: boolean): void {
    const known = this.#open.get(id);
    if (known && !known.bytes) {
      if (isEnd) this.#open.delete(id);
      return;
    }
    const before = known?.length ?? 0;
    const length = before + chunk.length;
    if (isEnd) {
      this.#end(id, known, chunk, length);
      return;
    }
    const stream = known ?? { bytes: Buffer.alloc(0), length: 0, sinceNs: nowNs };
    if (!known) this.#open.set(id, stream);
    if (length > this.#limits.streamBytesMax) {
      this.#discard(id, stream, "too_long");
      return;
    }
    this.#store(id, stream, chunk);
  }

  #store(id: number, stream: OpenStream, chunk: Buffer): void {
    let { bytes } = stream;
    if (!bytes) return;
    const length = stream.length + chunk.length;
    if (length > bytes.length) {
      const size = Math.min(
        this.#limits.streamBytesMax,
        Math.max(smallBytes, length, 2 * bytes.length),
      );
      if (!this.#hold(size - bytes.length)) {
        this.#discard(id, stream, "memory_limit");
        return;
      }
      const larger = Buffer.alloc(size);
      larger.set(bytes.subarray(0, stream.length));
      bytes = larger;
      stream.bytes = larger;
    }
    bytes.set(chunk, stream.length);
    stream.length = length;
  }

  /** false: the connections together hold too much, and this one more than its share. */
  #hold(bytes: number): boolean {
    const { held } = this.#limits;
    const isShare = this.#heldBytes + bytes <= held.connectionMin;
    if (!isShare && held.total + bytes > held.max) return false;
    this.#heldBytes += bytes;
    held.total += bytes;
    return true;
  }

  #release(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#limits.held.total -= bytes;
  }

  #end(id: number, known: OpenStream | undefined, last: Buffer, length: number): void {
    if (known) this.#forget(id, known);
    if (length === 0) this.#sink.dropped(id, "empty");
    else if (length > this.#limits.streamBytesMax) this.#sink.dropped(id, "too_long");
    else if (!known?.bytes) this.#sink.completed(id, Buffer.from(last));
    else this.#sink.completed(id, Buffer.concat([known.bytes.subarray(0, known.length), last]));
  }

  #reset(id: number): void {
    const known = this.#open.get(id);
    if (known) this.#forget(id, known);
    if (!known || known.bytes) this.#sink.dropped(id, "reset");
  }

  #discard(id: number, stream: OpenStream, reason: DropName): void {
    this.#release(stream.bytes?.length ?? 0);
    stream.bytes = null;
    this.#sink.dropped(id, reason);
  }

  #forget(id: number, stream: OpenStream): void {
    this.#release(stream.bytes?.length ?? 0);
    this.#open.delete(id);
  }
}
