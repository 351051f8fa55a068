// Groups: the race divided into turns of leaders, for its confidence intervals.
//
// Shreds of one slot use the same paths and are not independent samples, and a leader has four
// slots in a row. confidence.ts therefore resamples turns, not shreds. Each turn has counts, and
// for each pair a sketch of the lags. Memory is bounded: with too many turns, neighbours are
// merged.

import { slotsPerTurn } from "../report/bootstrap.ts";

const groupsMax = 512;
const sketchMax = 64;

interface PairGroup {
  both: number;
  /** Wins of the first feed of the pair; a tie counts as half a win. */
  wins: number;
  /**
   * Evenly spaced quantiles of the first feed's advance, ascending; each represents `weight`
   * shreds.
   */
  sketch: Float64Array;
  weight: number;
}

export interface Group {
  distinct: number;
  /** Shreds that each feed delivered first, with ties divided. */
  readonly wins: Float64Array;
  readonly pairs: readonly PairGroup[];
}

function quantiles(sorted: Float64Array): Float64Array {
  if (sorted.length <= sketchMax) return sorted;
  return Float64Array.from(
    { length: sketchMax },
    (_, i) => sorted[Math.floor(((i + 0.5) / sketchMax) * sorted.length)] ?? 0,
  );
}

function joinPairs(a: PairGroup, b: PairGroup): PairGroup {
  // Sample both sketches in proportion to their weights, so that the merged values have equal
  // weights.
  const both = a.both + b.both;
  if (a.both === 0) return { ...b };
  if (b.both === 0) return { ...a };
  const sampleOf = (pair: PairGroup) => {
    const length = Math.max(1, Math.round((pair.both / both) * 2 * sketchMax));
    return Float64Array.from(
      { length },
      (_, i) => pair.sketch[Math.floor(((i + 0.5) / length) * pair.sketch.length)] ?? 0,
    );
  };
  const sketch = quantiles(Float64Array.from([...sampleOf(a), ...sampleOf(b)]).toSorted());
  return { both, wins: a.wins + b.wins, sketch, weight: both / sketch.length };
}

function join(a: Group, b: Group): Group {
  return {
    distinct: a.distinct + b.distinct,
    wins: a.wins.map((wins, feed) => wins + (b.wins[feed] ?? 0)),
    pairs: a.pairs.map((pair, i) => joinPairs(pair, b.pairs[i] ?? pair)),
  };
}

export class Groups {
  readonly #feeds: number;
  readonly #pairs: number;
  #done: Group[] = [];
  #turn = -1;
  #turnsPerGroup = 1;
  #distinct = 0;
  #wins: Float64Array;
  #pairWins: Float64Array;
  #lags: number[][];

  constructor(feeds: number) {
    this.#feeds = feeds;
    this.#pairs = (feeds * (feeds - 1)) / 2;
    this.#wins = new Float64Array(feeds);
    this.#pairWins = new Float64Array(this.#pairs);
    this.#lags = Array.from({ length: this.#pairs }, () => []);
  }

  /** Call before the shreds of a slot. */
  startSlot(slot: number): void {
    const turn = Math.floor(slot / slotsPerTurn / this.#turnsPerGroup);
    if (turn === this.#turn) return;
    this.#seal();
    this.#turn = turn;
  }

  noteShred(): void {
    this.#distinct++;
  }

  noteWin(feed: number, share: number): void {
    this.#wins[feed] = (this.#wins[feed] ?? 0) + share;
  }

  /** `advanceNs` is the time by which the first feed of the pair was earlier. */
  notePair(pair: number, advanceNs: number): void {
    this.#lags[pair]?.push(advanceNs);
    const win = advanceNs > 0 ? 1 : advanceNs === 0 ? 0.5 : 0;
    this.#pairWins[pair] = (this.#pairWins[pair] ?? 0) + win;
  }

  /** All groups so far, including the unfinished one. */
  all(): readonly Group[] {
    return this.#distinct === 0 ? this.#done : [...this.#done, this.#present()];
  }

  #present(): Group {
    return {
      distinct: this.#distinct,
      wins: this.#wins.slice(),
      pairs: this.#lags.map((lags, pair) => {
        const sketch = quantiles(Float64Array.from(lags).toSorted());
        const weight = sketch.length === 0 ? 0 : lags.length / sketch.length;
        return { both: lags.length, wins: this.#pairWins[pair] ?? 0, sketch, weight };
      }),
    };
  }

  #seal(): void {
    if (this.#distinct === 0) return;
    this.#done.push(this.#present());
    this.#distinct = 0;
    this.#wins = new Float64Array(this.#feeds);
    this.#pairWins = new Float64Array(this.#pairs);
    this.#lags = Array.from({ length: this.#pairs }, () => []);
    if (this.#done.length < groupsMax) return;
    const joined: Group[] = [];
    for (let i = 0; i + 1 < this.#done.length; i += 2) {
      const [a, b] = [this.#done[i], this.#done[i + 1]];
      if (a && b) joined.push(join(a, b));
    }
    this.#done = joined;
    this.#turnsPerGroup *= 2;
  }
}
