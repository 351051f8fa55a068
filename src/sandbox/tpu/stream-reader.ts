// Assembles the streams of one connection: each contains one transaction.
//
// Called by peer-connection.ts after packets arrived. It reads a limited number of new streams;
// unread streams use up the peer's credit.

import type { Quiche, QuicheConnection } from "../../core/quic/quiche.ts";
import { transactionBytesMax } from "./limits.ts";

interface OpenStream {
  readonly bytes: Buffer;
  length: number;
  readonly sinceNs: bigint;
}

interface StreamSink {
  /** 1 to 4,096 bytes, not overwritten later. */
  transaction(wire: Uint8Array): void;
  /** Called for a stream that ends without a transaction. */
  dropped(): void;
}

export class StreamReader {
  readonly #quiche: Pick<Quiche, "Shutdown">;
  readonly #sink: StreamSink;
  readonly #open = new Map<number, OpenStream>();
  /** One byte above the limit: a stream that fills the buffer is too long. */
  readonly #scratch = Buffer.alloc(transactionBytesMax + 1);

  constructor(quiche: Pick<Quiche, "Shutdown">, sink: StreamSink) {
    this.#quiche = quiche;
    this.#sink = sink;
  }

  /** Start time of the oldest incomplete stream. */
  get oldestNs(): bigint | undefined {
    const [oldest] = this.#open.values();
    return oldest?.sinceNs;
  }

  /**
   * Starts at most `newMax` streams and continues all others. `begun`: number of started streams;
   * `isLong`: one has more than 4,096 bytes, and reading stopped.
   */
  read(
    quic: QuicheConnection,
    newMax: number,
    nowNs: bigint,
  ): { readonly begun: number; readonly isLong: boolean; readonly hasMore: boolean } {
    let begun = 0;
    let hasMore = false;
    for (const id of quic.readable()) {
      if (!this.#open.has(id)) {
        if (begun === newMax) {
          hasMore = true;
          continue;
        }
        begun++;
      }
      if (!this.#readStream(quic, id, nowNs)) return { begun, isLong: true, hasMore };
    }
    return { begun, isLong: false, hasMore };
  }

  /** Ends streams that began before `beforeNs`: the peer is asked to stop sending. */
  dropBefore(quic: QuicheConnection, beforeNs: bigint): void {
    for (const [id, { sinceNs }] of this.#open) {
      if (sinceNs > beforeNs) return; // streams are in the order of their start
      this.#open.delete(id);
      try {
        quic.streamShutdown(id, this.#quiche.Shutdown.Read, 0);
      } catch {
        // The peer has ended the stream in the meantime.
      }
      this.#sink.dropped();
    }
  }

  /** false: the stream is too long. */
  #readStream(quic: QuicheConnection, id: number, nowNs: bigint): boolean {
    for (;;) {
      let read: [number, boolean] | null;
      try {
        read = quic.streamRecv(id, this.#scratch);
      } catch {
        this.#open.delete(id); // the peer reset the stream
        this.#sink.dropped();
        return true;
      }
      if (!read) return true;
      const [count, isEnd] = read;
      const known = this.#open.get(id);
      const length = (known?.length ?? 0) + count;
      if (length > transactionBytesMax) return false;
      if (isEnd) {
        this.#end(id, known, count);
        return true;
      }
      const stream = known ?? { bytes: Buffer.alloc(transactionBytesMax), length, sinceNs: nowNs };
      stream.bytes.set(this.#scratch.subarray(0, count), length - count);
      stream.length = length;
      this.#open.set(id, stream);
    }
  }

  #end(id: number, known: OpenStream | undefined, count: number): void {
    this.#open.delete(id);
    const last = this.#scratch.subarray(0, count);
    const wire = known
      ? Buffer.concat([known.bytes.subarray(0, known.length), last])
      : Uint8Array.from(last);
    if (wire.length === 0) this.#sink.dropped();
    else this.#sink.transaction(wire);
  }
}
