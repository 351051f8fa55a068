// Pacer: send time of each replayed packet. Pure.
//
// Called by replay.ts. Packets follow the capture's times, scaled by `speed`, or a constant rate.
// Packets without times (.lpb) always use a rate. Times never decrease: a backward step of the
// capture's clock causes no delay, and a forward step is shortened.

export type Pace = { readonly speed: number } | { readonly packetsPerSecond: number };

/** Default rate for captures without times, about that of mainnet-beta. */
export const defaultPacketsPerSecond = 5000;

/** Longer gaps between two packets of a capture are shortened to this length, before `speed`. */
export const gapMaxNs = 10_000_000_000n;

export class Pacer {
  /** Number of shortened gaps so far. */
  shortenedGaps = 0;
  readonly #pace: Pace;
  #previousStampNs: bigint | null = null;
  #timeNs = 0;
  #started = false;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /**
   * Returns the due time of the capture's next packet, nanoseconds from the start of the replay.
   */
  next(timestampNs: bigint | null): number {
    if ("packetsPerSecond" in this.#pace) this.#advance(1e9 / this.#pace.packetsPerSecond);
    else if (timestampNs === null) this.#advance(1e9 / defaultPacketsPerSecond);
    else this.#advance(this.#gapNs(timestampNs) / this.#pace.speed);
    return this.#timeNs;
  }

  /** Starts another file; its times have no relation to those of the file before. */
  nextFile(): void {
    this.#previousStampNs = null;
  }

  #advance(gapNs: number): void {
    if (this.#started) this.#timeNs += gapNs;
    this.#started = true;
  }

  #gapNs(timestampNs: bigint): number {
    const previous = this.#previousStampNs ?? timestampNs;
    this.#previousStampNs = timestampNs;
    if (timestampNs <= previous) return 0;
    const gapNs = timestampNs - previous;
    if (gapNs <= gapMaxNs) return Number(gapNs);
    this.shortenedGaps++;
    return Number(gapMaxNs);
  }
}
