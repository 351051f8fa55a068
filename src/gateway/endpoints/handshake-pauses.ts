// Handshake pauses: after exceeding a message limit, a caller may not open a WebSocket for a while.
//
// Used by routes that identify callers by key or address. Without a pause, a client that reconnects
// after each cut would get one burst after another. Callers pass the time.

const pauseNs = 10_000_000_000n;
/** Maximum number of pauses; the oldest is dropped. */
const callersMax = 16_384;

export class HandshakePauses {
  /** End of each caller's pause, oldest pause first. */
  readonly #endsNs = new Map<string, bigint>();

  /** Starts or renews the pause of `caller` at `nowNs` (monotonic). */
  begin(caller: string, nowNs: bigint): void {
    this.#endsNs.delete(caller);
    this.#endsNs.set(caller, nowNs + pauseNs);
    const [oldest] = this.#endsNs.keys();
    if (this.#endsNs.size > callersMax && oldest !== undefined) this.#endsNs.delete(oldest);
  }

  /** Whole seconds until `caller` may open a WebSocket; 0: it may now. */
  secondsLeft(caller: string, nowNs: bigint): number {
    const endNs = this.#endsNs.get(caller);
    if (endNs === undefined) return 0;
    if (endNs > nowNs) return Math.ceil(Number(endNs - nowNs) / 1e9);
    this.#endsNs.delete(caller);
    return 0;
  }
}
