// Paced sender: plays packets to one address, each at its time, on a native thread of its own.
//
// For replay, the default start, tests and benches.

import { guarded, type NativePacedSender, native, type PacedSenderCounts } from "./native.ts";
import { encodeEndpoint } from "./tables.ts";

interface PacedSenderOptions {
  /** "ip:port" that receives. */
  readonly to: string;
  /** "ip:port" to send from; port 0: the kernel chooses. */
  readonly from?: string;
  readonly bufferBytes?: number;
}

export class PacedSender {
  readonly #native: NativePacedSender;

  private constructor(options: PacedSenderOptions) {
    const to = encodeEndpoint(options.to);
    const from = options.from
      ? encodeEndpoint(options.from, { allowPortZero: true })
      : new Uint8Array(18);
    const bufferBytes = options.bufferBytes ?? 8 << 20;
    this.#native = guarded("sender_open", () => new (native().PacedSender)(to, from, bufferBytes));
  }

  /** Throws ShredwayError "sender_open" or "address_invalid". */
  static open(options: PacedSenderOptions): PacedSender {
    return new PacedSender(options);
  }

  /**
   * Appends packets. `timesNs[i]` is when packet i is due, counted from the moment that this list is
   * taken up (when the list before it has gone, or now); ascending.
   */
  enqueue(packets: readonly Uint8Array[], timesNs: BigUint64Array): void {
    const ends = new Uint32Array(packets.length);
    let length = 0;
    packets.forEach((packet, i) => {
      length += packet.length;
      ends[i] = length;
    });
    const bytes = new Uint8Array(length);
    packets.forEach((packet, i) => {
      bytes.set(packet, (ends[i] ?? 0) - packet.length);
    });
    this.#native.enqueue(bytes, ends, timesNs);
  }

  counts(): PacedSenderCounts {
    return this.#native.counts();
  }

  /** Own address, "ip:port". */
  get local(): string {
    return this.#native.local();
  }

  /** Stops at once; what is still queued is dropped. May be called again. */
  close(): void {
    this.#native.close();
  }
}
