// Verifies a lone transaction at once, on the event loop, and all others on the verifier's threads.
//
// Passing one transaction to a sleeping thread and back takes longer than the check itself (about
// 50 µs). Under load the threads are awake, and the event loop must not verify. Therefore a check runs
// here only if the threads have none, nothing waits for the event loop, and only for a bounded share of the
// time.

import type { Clock } from "../../core/clock.ts";
import type { SignatureVerifier } from "./transaction-checks.ts";

/** Checks that may run here one after the other. */
const burst = 4;
/** One more each: with 50 µs per check, at most a tenth of the event loop's time. */
const refillNs = 500_000n;
/** Signatures of a transaction that is verified here; its first byte is their number. */
const signaturesMax = 2;

export class PromptVerifier {
  readonly #threads: Pick<SignatureVerifier, "verify" | "verifyNow" | "pending">;
  readonly #clock: Pick<Clock, "monotonicNs">;
  #left = burst;
  #refilledNs = 0n;

  constructor(
    threads: Pick<SignatureVerifier, "verify" | "verifyNow" | "pending">,
    clock: Pick<Clock, "monotonicNs">,
  ) {
    this.#threads = threads;
    this.#clock = clock;
  }

  /**
   * As SignatureVerifier.verify; the result itself if it was verified here. `isBusy`: other submissions wait
   * for the event loop.
   */
  verify(wire: Uint8Array, isBusy = false): boolean | Promise<boolean> | null {
    return this.mayVerifyNow(wire, isBusy)
      ? this.#threads.verifyNow(wire)
      : this.#threads.verify(wire);
  }

  /** Whether the caller may verify this transaction on the event loop. Counts as one that was verified here. */
  mayVerifyNow(wire: Uint8Array, isBusy: boolean): boolean {
    const isShort = (wire[0] ?? 0) <= signaturesMax;
    return isShort && !isBusy && this.#threads.pending === 0 && this.#take();
  }

  #take(): boolean {
    const nowNs = this.#clock.monotonicNs();
    const refill = (nowNs - this.#refilledNs) / refillNs;
    if (refill > 0n) {
      this.#left = refill >= BigInt(burst) ? burst : Math.min(burst, this.#left + Number(refill));
      this.#refilledNs += refill * refillNs;
    }
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }
}
