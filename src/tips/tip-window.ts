// Tip window: the landed tips of a time window, and their percentiles.
//
// Used by tip-statistics.ts; independent of clock and store. Tips are stored in arrival order, in chunks
// of typed arrays with 29 bytes each, so a million take 31 MB and no objects. A tip is found by 64 bits
// of a hash of its signature, through chains from the youngest to the oldest. Expired tips at the old
// end are not followed any more, so an expiry costs one comparison. Two of a million tips share those
// bits once in 37 million windows; then the second one does not count. Scanning a million takes about 50
// ms, so it happens in steps, and other work runs in between.

import { SeededRandom } from "../core/seeded-random.ts";
import { type Percentiles, ranksOf, selectRanks } from "./percentiles.ts";

/** Limit of a tip, 9 million SOL: above it, float64 does not represent odd lamports. */
export const tipLamportsMax = BigInt(Number.MAX_SAFE_INTEGER);

interface TipWindowOptions {
  readonly windowMs: number;
  /** Above this number, the oldest are removed early. Default four million, 1 in 200 µs. */
  readonly tipsMax?: number;
  /** Tips in one array. Default 16,384. */
  readonly chunkTips?: number;
}

export interface WindowPercentiles {
  readonly count: number;
  readonly percentiles: Percentiles;
}

const seenState = 0;
const landedState = 1;
const goneState = 2;

interface Chunk {
  readonly lamports: Float64Array;
  readonly atMs: Float64Array;
  readonly hashes: Uint32Array;
  /** Distance to the next older tip of the chain; 0: none. */
  readonly back: Uint32Array;
  readonly states: Uint8Array;
}

const bucketBits = 18;
const bucketCount = 1 << bucketBits;

export class TipWindow {
  readonly #windowMs: number;
  readonly #chunkTips: number;
  readonly #chunksMax: number;
  readonly #chunks: Chunk[] = [];
  /** Tip number n is in chunk (n / chunkTips - #firstChunk). */
  #firstChunk = 0;
  /** Numbers of tips: those from #oldest on may be in the window; #next is the next one's. */
  #oldest = 0;
  #next = 0;
  /** Tips at or before this time are expired, as of the last `expire`. */
  #endMs = Number.NEGATIVE_INFINITY;
  #size = 0;
  /** Number of the youngest tip of each chain, plus 1; 0: none. */
  readonly #youngest = new Float64Array(bucketCount);
  /** Hash of the last searched signature. */
  #high = 0;
  #low = 0;
  readonly #random = new SeededRandom(1);

  constructor({ windowMs, tipsMax = 4_194_304, chunkTips = 16_384 }: TipWindowOptions) {
    this.#windowMs = windowMs;
    this.#chunkTips = chunkTips;
    this.#chunksMax = Math.max(2, Math.ceil(tipsMax / chunkTips));
  }

  /**
   * Number of counted tips, as of the last `expire` or `add`; a tip that was reported late may be
   * expired.
   */
  get size(): number {
    return this.#size;
  }

  /**
   * Adds a tip at its first observation. `nowMs` and `atMs` belong to one clock that never goes back,
   * and `atMs` is not after `nowMs`. False: its signature is already in the window, or `atMs` was before
   * it.
   */
  add(signature: string, lamports: bigint, atMs: number, nowMs: number): boolean {
    this.expire(nowMs);
    if (atMs <= this.#endMs || this.#find(signature) !== undefined) return false;
    const number = this.#next++;
    const at = number % this.#chunkTips;
    const chunk = at === 0 ? this.#newChunk() : this.#chunkOf(number);
    const bounded = lamports > tipLamportsMax ? tipLamportsMax : lamports;
    chunk.lamports[at] = Number(bounded);
    chunk.atMs[at] = atMs;
    chunk.hashes[2 * at] = this.#high;
    chunk.hashes[2 * at + 1] = this.#low;
    const bucket = this.#bucket;
    const before = this.#youngest[bucket] ?? 0;
    chunk.back[at] = before === 0 ? 0 : number + 1 - before;
    this.#youngest[bucket] = number + 1;
    this.#size++;
    return true;
  }

  /** Number of tips in the window, counted or withdrawn. */
  knows(signature: string): boolean {
    return this.#youngestOf(signature) !== undefined;
  }

  /** The transaction landed finally: `remove` no longer withdraws it. False: not in the window. */
  settle(signature: string): boolean {
    return this.#move(signature, landedState);
  }

  /** Its block was abandoned, or it failed. False: not in the window, or landed finally. */
  remove(signature: string): boolean {
    if (!this.#move(signature, goneState)) return false;
    this.#size--;
    return true;
  }

  /** Removes expired tips: a tip at t counts until t + window, exclusive. */
  expire(nowMs: number): void {
    this.#endMs = nowMs - this.#windowMs;
    while (this.#oldest < this.#next) {
      const chunk = this.#chunkOf(this.#oldest);
      const at = this.#oldest % this.#chunkTips;
      if ((chunk.atMs[at] ?? 0) > this.#endMs) return;
      this.#release(chunk, at);
    }
  }

  /**
   * Exact, of those that count at `nowMs` and were added before; null: none. Stops after every some ten
   * thousand tips; whatever is added, removed or expires meanwhile does no harm.
   */
  *percentiles(nowMs: number): Generator<void, WindowPercentiles | null> {
    this.expire(nowMs);
    const values = yield* this.#lamportsSince(this.#endMs);
    const count = values.length;
    if (count === 0) return null;
    const selected = yield* selectRanks(values, ranksOf(count), this.#random);
    const [p25 = 0n, p50 = 0n, p75 = 0n, p95 = 0n, p99 = 0n] = selected.map(BigInt);
    return { count, percentiles: { p25, p50, p75, p95, p99 } };
  }

  /** Every one is looked at: behind one that was reported late there may be older ones. */
  *#lamportsSince(endMs: number): Generator<void, Float64Array> {
    const next = this.#next;
    const values = new Float64Array(next - this.#oldest);
    let count = 0;
    for (let number = this.#oldest; number < next; ) {
      const { lamports, atMs, states } = this.#chunkOf(number);
      const begin = number % this.#chunkTips;
      const end = Math.min(this.#chunkTips, begin + next - number);
      for (let at = begin; at < end; at++) {
        if (states[at] === goneState || (atMs[at] ?? 0) <= endMs) continue;
        values[count++] = lamports[at] ?? 0;
      }
      yield;
      number = Math.max(number + end - begin, this.#oldest);
    }
    return values.subarray(0, count);
  }

  #move(signature: string, state: number): boolean {
    const number = this.#find(signature);
    if (number === undefined) return false;
    const { states } = this.#chunkOf(number);
    const at = number % this.#chunkTips;
    if (state === goneState && states[at] === landedState) return false;
    states[at] = state;
    return true;
  }

  /** Its number, unless it is withdrawn or expired. Leaves its hash in #high and #low. */
  #find(signature: string): number | undefined {
    // An older one of the same signature is also withdrawn or expired.
    const number = this.#youngestOf(signature);
    if (number === undefined) return undefined;
    const isGone = this.#chunkOf(number).states[number % this.#chunkTips] === goneState;
    return isGone ? undefined : number;
  }

  /** The last one of that signature, unless it is expired. Leaves its hash in #high and #low. */
  #youngestOf(signature: string): number | undefined {
    this.#readHash(signature);
    const high = this.#high;
    const low = this.#low;
    let number = (this.#youngest[this.#bucket] ?? 0) - 1;
    while (number >= this.#oldest) {
      const chunk = this.#chunkOf(number);
      const at = number % this.#chunkTips;
      if (chunk.hashes[2 * at] === high && chunk.hashes[2 * at + 1] === low) {
        return (chunk.atMs[at] ?? 0) <= this.#endMs ? undefined : number;
      }
      const back = chunk.back[at] ?? 0;
      if (back === 0) return undefined;
      number -= back;
    }
    return undefined;
  }

  #release({ states }: Chunk, at: number): void {
    if (states[at] !== goneState) this.#size--;
    this.#oldest++;
    if (this.#oldest % this.#chunkTips !== 0) return;
    this.#chunks.shift();
    this.#firstChunk++;
  }

  #newChunk(): Chunk {
    while (this.#chunks.length >= this.#chunksMax) {
      this.#release(this.#chunkOf(this.#oldest), this.#oldest % this.#chunkTips);
    }
    const tips = this.#chunkTips;
    const chunk: Chunk = {
      lamports: new Float64Array(tips),
      atMs: new Float64Array(tips),
      hashes: new Uint32Array(2 * tips),
      back: new Uint32Array(tips),
      states: new Uint8Array(tips).fill(seenState),
    };
    this.#chunks.push(chunk);
    return chunk;
  }

  #chunkOf(number: number): Chunk {
    const chunk = this.#chunks[Math.floor(number / this.#chunkTips) - this.#firstChunk];
    if (chunk) return chunk;
    throw new RangeError(`expected a tip from ${this.#oldest} to ${this.#next}, got ${number}`);
  }

  get #bucket(): number {
    return this.#low >>> (32 - bucketBits);
  }

  /**
   * Two multiplicative hashes. A client that makes signatures collide only suppresses one of its own
   * tips.
   */
  #readHash(signature: string): void {
    let high = 0x811c_9dc5;
    let low = 0x9747_b28c;
    for (let i = 0; i < signature.length; i++) {
      const code = signature.charCodeAt(i);
      high = Math.imul(high ^ code, 0x0100_0193);
      low = Math.imul(low ^ code, 0x85eb_ca6b);
      low ^= low >>> 15;
    }
    this.#high = Math.imul(high ^ (high >>> 16), 0xc2b2_ae35) >>> 0;
    this.#low = Math.imul(low ^ (low >>> 13), 0x27d4_eb2f) >>> 0;
  }
}
