// Handshake pauses: a caller whose WebSocket exceeded its message limit may not open another at once.
//
// Kept by routes that know their callers (by key or by address). Without a pause, a client that
// reconnects whenever it is cut would be served one burst after the other. Time is handed in.

const pauseNs = 10_000_000_000n;
/** The oldest pause is dropped when there are more. */
const callersMax = 16_384;

export class HandshakePauses {
  /** When the pause of a caller ends; the oldest pause first. */
  readonly #endsNs = new Map<string, bigint>();

  /** Begins a pause of `caller` at `nowNs` (monotonic), or renews it. */
  begin(caller: string, nowNs: bigint): void {
    this.#endsNs.delete(caller);
    this.#endsNs.set(caller, nowNs + pauseNs);
    const [oldest] = this.#endsNs.keys();
    if (this.#endsNs.size > callersMax && oldest !== undefined) this.#endsNs.delete(oldest);
  }

  /** Whole seconds until `caller` may open a WebSocket; 0: now. */
  secondsLeft(caller: string, nowNs: bigint): number {
    const endNs = this.#endsNs.get(caller);
    if (endNs === undefined) return 0;
    if (endNs > nowNs) return Math.ceil(Number(endNs - nowNs) / 1e9);
    this.#endsNs.delete(caller);
    return 0;
  }
}
