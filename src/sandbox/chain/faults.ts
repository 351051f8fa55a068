// Chain faults that an operator or a test can inject at runtime.
//
// One object of the chain (`chain.faults`), read by the producer at the times given below. All
// faults are off at the start. Random numbers come from the chain's seed, so a run can be repeated.
// This file has only faults of blocks; other files lose or delay shreds and slow down the RPC.

import { ShredwayError } from "../../core/errors.ts";
import { SeededRandom } from "../../core/seeded-random.ts";

/** A probability in [0, 1]. Throws ShredwayError "value_invalid" outside. */
function checkedShare(share: number, what: string): number {
  if (share >= 0 && share <= 1) return share;
  throw new ShredwayError("value_invalid", `${what}: expected 0 to 1, got ${share}`);
}

function checkedCount(count: number, what: string): number {
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new ShredwayError("value_invalid", `${what}: expected a whole number, got ${count}`);
}

/** The fate of the transactions that a block contained before it began again. */
export type RestartOutcome = "executed_again" | "lost";

export class ChainFaults {
  readonly #random: SeededRandom;
  #slotsToSkip = 0;
  #blocksToAbandon = 0;
  #restart: RestartOutcome | null = null;
  #skipShare = 0;
  #refuseShare = 0;
  #delayMs = 0;

  /** Identities of leaders that produce no blocks. Read when a slot begins. */
  readonly silentLeaders = new Set<string>();
  /** Transactions that a leader drops instead of executing; null: none. */
  refuses: ((signature: string, wire: Uint8Array) => boolean) | null = null;

  constructor(seed: number) {
    this.#random = new SeededRandom(BigInt(seed) ^ 0xfa_0175n);
  }

  /** Skips the next `count` slots. */
  skipNext(count: number): void {
    this.#slotsToSkip = checkedCount(count, "slots to skip");
  }

  /** Probability that a slot is skipped. */
  get skipShare(): number {
    return this.#skipShare;
  }
  set skipShare(share: number) {
    this.#skipShare = checkedShare(share, "share of skipped slots");
  }

  /**
   * The next leader ignores the `count` newest blocks at the beginning of its turn: it builds on
   * their parent, and the cluster follows it. The fork never goes below the root. 0 cancels the
   * order.
   */
  forkNext(count: number): void {
    this.#blocksToAbandon = checkedCount(count, "blocks to abandon");
  }

  /**
   * The next leader begins its block again in the middle of the first slot of its turn, with an
   * update-parent marker (Alpenglow, fast leader handover).
   */
  restartNext(outcome: RestartOutcome): void {
    this.#restart = outcome;
  }

  /** Probability that a leader drops a transaction, or bundle, instead of executing it. */
  get refuseShare(): number {
    return this.#refuseShare;
  }
  set refuseShare(share: number) {
    this.#refuseShare = checkedShare(share, "share of refused transactions");
  }

  /** Delay from submission to the earliest execution. Applies to later submissions. */
  get delayMs(): number {
    return this.#delayMs;
  }
  set delayMs(delayMs: number) {
    if (!(delayMs >= 0 && delayMs <= 3_600_000)) {
      throw new ShredwayError("value_invalid", `delay: expected 0 to 3600000 ms, got ${delayMs}`);
    }
    this.#delayMs = delayMs;
  }

  /** Called once per slot. */
  takeSkip(leader: string): boolean {
    const isByChance = this.#random.happens(this.#skipShare);
    if (this.#slotsToSkip > 0) {
      this.#slotsToSkip--;
      return true;
    }
    return isByChance || this.silentLeaders.has(leader);
  }

  /** Called when a leader begins its turn. Returns the number of blocks that it ignores. */
  takeFork(): number {
    const count = this.#blocksToAbandon;
    this.#blocksToAbandon = 0;
    return count;
  }

  /** Called in the middle of the first slot of a turn; null: the block does not begin again. */
  takeRestart(): RestartOutcome | null {
    const restart = this.#restart;
    this.#restart = null;
    return restart;
  }

  /** Called for every transaction, or bundle, before its execution. */
  takeRefusal(transactions: readonly { signature: string; wire: Uint8Array }[]): boolean {
    const isByChance = this.#random.happens(this.#refuseShare);
    const { refuses } = this;
    return (
      isByChance ||
      (refuses !== null && transactions.some(({ signature, wire }) => refuses(signature, wire)))
    );
  }
}
