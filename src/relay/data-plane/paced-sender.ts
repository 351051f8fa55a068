// Paced sender: sends packets to one address at given times, on a native thread.
//
// For replay, the sandbox, tests and benchmarks.

import { guarded, type NativePacedSender, native, type PacedSenderCounts } from "./native.ts";
import { encodeEndpoint } from "./tables.ts";

interface PacedSenderOptions {
  /** Receiver as "ip:port". */
  readonly to: string;
  /** Sender as "ip:port"; port 0: the kernel chooses. */
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
   * Appends packets. `timesNs[i]` is the time of packet i from the start of this list (when the previous
   * list is sent, or now); ascending.
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

  /** Stops immediately and drops queued packets. Idempotent. */
  close(): void {
    this.#native.close();
  }
}
