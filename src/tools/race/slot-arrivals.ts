// Slot arrivals: receive time of every shred of a slot by feed.
//
// slot-collector.ts adds arrivals; the scores read them when the slot is settled. A shred is
// identified by slot, FEC set, type and index. The first arrival of each feed counts, with the
// kernel's receive time in nanoseconds since the start of the race.

/** Data and code shreds of one FEC set. */
export const setLeaves = 64;
/** Number of shreds of a FEC set that suffices for recovery. */
export const recoverableFrom = 32;

/** Arrival of one shred in one feed. The object may be reused for the next arrival. */
export interface ShredArrival {
  feed: number;
  timeNs: number;
  slot: number;
  fecSetIndex: number;
  index: number;
  isCode: boolean;
  lastInSlot: boolean;
  /** First bytes of the signature: another signature of the same identity is another shred. */
  signature: number;
}

/** Returns an arrival to be filled in and reused. */
export function blankArrival(): ShredArrival {
  return {
    feed: 0,
    timeNs: 0,
    slot: 0,
    fecSetIndex: 0,
    index: 0,
    isCode: false,
    lastInSlot: false,
    signature: 0,
  };
}

interface FecSetArrivals {
  /** Times by leaf (32 data, 32 code), then by feed; Infinity if it never arrived. */
  readonly times: Float64Array;
  readonly signature: number;
}

type Novelty = "first" | "later" | "again";

export class SlotArrivals {
  readonly slot: number;
  readonly feeds: number;
  /** Sets by number. */
  readonly sets = new Map<number, FecSetArrivals>();
  firstNs = Number.POSITIVE_INFINITY;
  /** Time of the last arrival of a new shred. */
  lastNewNs = Number.NEGATIVE_INFINITY;
  /** Number of FEC sets in the slot; null before its last shred. */
  setCount: number | null = null;
  /** Shreds that at least one feed delivered. */
  distinct = 0;

  constructor(slot: number, feeds: number) {
    this.slot = slot;
    this.feeds = feeds;
  }

  setOf(arrival: ShredArrival): FecSetArrivals | undefined {
    return this.sets.get(arrival.fecSetIndex / 32);
  }

  addSet(arrival: ShredArrival): FecSetArrivals {
    const times = new Float64Array(setLeaves * this.feeds).fill(Number.POSITIVE_INFINITY);
    const set = { times, signature: arrival.signature };
    this.sets.set(arrival.fecSetIndex / 32, set);
    return set;
  }

  note(set: FecSetArrivals, arrival: ShredArrival): Novelty {
    const { feed, timeNs, fecSetIndex } = arrival;
    const leaf = arrival.index - fecSetIndex + (arrival.isCode ? 32 : 0);
    const begin = leaf * this.feeds;
    const { times } = set;
    if (arrival.lastInSlot) this.setCount = fecSetIndex / 32 + 1;
    this.firstNs = Math.min(this.firstNs, timeNs);
    const before = times[begin + feed] ?? 0;
    if (before !== Number.POSITIVE_INFINITY) {
      if (timeNs < before) times[begin + feed] = timeNs; // two sockets of one feed
      return "again";
    }
    let isFirst = true;
    for (let other = 0; other < this.feeds; other++)
      if (times[begin + other] !== Number.POSITIVE_INFINITY) isFirst = false;
    times[begin + feed] = timeNs;
    if (!isFirst) return "later";
    this.distinct++;
    this.lastNewNs = Math.max(this.lastNewNs, timeNs);
    return "first";
  }
}
