// Faults: what an operator or a test can make go wrong, while the chain runs.
//
// One object of the chain (`chain.faults`), read by the producer at the moments named below. All of
// it is off at the start. Chance is drawn from the chain's seed, so a run can be repeated. Lost or
// late shreds and a slow RPC are made elsewhere: here only what happens to blocks.

import { ShredwayError } from "../../core/errors.ts";
import { SeededRandom } from "../../core/seeded-random.ts";

/** Chance of [0, 1]; throws ShredwayError "value_invalid" outside. */
function checkedShare(share: number, what: string): number {
  if (share >= 0 && share <= 1) return share;
  throw new ShredwayError("value_invalid", `${what}: expected 0 to 1, got ${share}`);
}

function checkedCount(count: number, what: string): number {
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new ShredwayError("value_invalid", `${what}: expected a whole number, got ${count}`);
}

export class ChainFaults {
  readonly #random: SeededRandom;
  #slotsToSkip = 0;
  #blocksToAbandon = 0;
  #skipShare = 0;
  #refuseShare = 0;
  #delayMs = 0;

  /** Identities of leaders that make no blocks. Read when a slot begins. */
  readonly silentLeaders = new Set<string>();
  /** Transactions that a leader throws away when it takes them; null: none. */
  refuses: ((signature: string, wire: Uint8Array) => boolean) | null = null;

  constructor(seed: number) {
    this.#random = new SeededRandom(BigInt(seed) ^ 0xfa_0175n);
  }

  /** The next `count` slots pass without a block. */
  skipNext(count: number): void {
    this.#slotsToSkip = checkedCount(count, "slots to skip");
  }

  /** Chance of each slot to pass without a block. */
  get skipShare(): number {
    return this.#skipShare;
  }
  set skipShare(share: number) {
    this.#skipShare = checkedShare(share, "share of skipped slots");
  }

  /**
   * The next leader to begin its turn has not seen the `count` newest blocks: it builds on their
   * parent, and the cluster goes with it. Never reaches behind the root. 0 takes the order back.
   */
  forkNext(count: number): void {
    this.#blocksToAbandon = checkedCount(count, "blocks to abandon");
  }

  /** Chance of each transaction, or bundle, to be thrown away when a leader takes it. */
  get refuseShare(): number {
    return this.#refuseShare;
  }
  set refuseShare(share: number) {
    this.#refuseShare = checkedShare(share, "share of refused transactions");
  }

  /** From the submission to the earliest execution. Counts for what is submitted from now on. */
  get delayMs(): number {
    return this.#delayMs;
  }
  set delayMs(delayMs: number) {
    if (!(delayMs >= 0 && delayMs <= 3_600_000)) {
      throw new ShredwayError("value_invalid", `delay: expected 0 to 3600000 ms, got ${delayMs}`);
    }
    this.#delayMs = delayMs;
  }

  /** Asked once per slot. */
  takeSkip(leader: string): boolean {
    const isByChance = this.#random.happens(this.#skipShare);
    if (this.#slotsToSkip > 0) {
      this.#slotsToSkip--;
      return true;
    }
    return isByChance || this.silentLeaders.has(leader);
  }

  /** Asked when a leader begins its turn; how many blocks it has not seen. */
  takeFork(): number {
    const count = this.#blocksToAbandon;
    this.#blocksToAbandon = 0;
    return count;
  }

  /** Asked for every transaction, or bundle, that a leader takes. */
  takeRefusal(transactions: readonly { signature: string; wire: Uint8Array }[]): boolean {
    const isByChance = this.#random.happens(this.#refuseShare);
    const { refuses } = this;
    return (
      isByChance ||
      (refuses !== null && transactions.some(({ signature, wire }) => refuses(signature, wire)))
    );
  }
}
