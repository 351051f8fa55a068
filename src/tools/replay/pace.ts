// When replay sends which packet. Pure.
//
// Called by cli/replay.ts. Either at the capture's own times, faster or slower (`speed`), or at an
// even rate. Packets without times (.lpb) always go at a rate. Times only ever ascend: a capture
// whose clock stepped back goes on at once, and one whose clock stepped ahead does not stall.

export type Pace = { readonly speed: number } | { readonly packetsPerSecond: number };

/** Rate for captures without times when nothing else is said: about mainnet-beta's. */
export const defaultPacketsPerSecond = 5000;

/** Longer gaps between two packets of a capture are shortened to this, before `speed`. */
export const gapMaxNs = 10_000_000_000n;

export class Pacer {
  /** Gaps that were shortened so far. */
  shortenedGaps = 0;
  readonly #pace: Pace;
  #previousStampNs: bigint | null = null;
  #timeNs = 0;
  #started = false;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** Due time of the next packet of the capture, nanoseconds from the start of the replay. */
  next(timestampNs: bigint | null): number {
    if ("packetsPerSecond" in this.#pace) this.#advance(1e9 / this.#pace.packetsPerSecond);
    else if (timestampNs === null) this.#advance(1e9 / defaultPacketsPerSecond);
    else this.#advance(this.#gapNs(timestampNs) / this.#pace.speed);
    return this.#timeNs;
  }

  /** The next packet is of another file: its time says nothing about the gap between the two. */
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
