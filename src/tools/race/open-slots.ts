// Open slots: the slots in progress of a race, until they are settled.
//
// Used by slot-collector.ts and transaction-collector.ts. A slot is settled when nothing new of it arrives during
// the settling time, so every feed had that time to deliver it. Later arrivals count as late. The number of slots is
// bounded for any input.

export interface FeedCounts {
  /** Arrivals, including duplicates and late ones. */
  arrivals: number;
  /** Arrivals that this feed had already delivered. */
  repeats: number;
  /** Arrivals of settled slots. */
  late: number;
  /**
   * Shreds with another signature than the first of their set: an equivocating leader, or a
   * forgery.
   */
  conflicting: number;
  /** Arrivals beyond what a race holds in progress. */
  beyond: number;
  firstNs: number;
  lastNs: number;
}

/** When something of a slot arrived. */
interface TimedSlot {
  readonly slot: number;
  readonly firstNs: number;
  /** Time of the last arrival of something new. */
  readonly lastNewNs: number;
}

interface OpenSlotsOptions<Slot> {
  readonly feeds: number;
  readonly settleNs: number;
  readonly create: (slot: number) => Slot;
  readonly onSettled: (slot: Slot) => void;
}

const openSlotsMax = 1024;
const settledSlotsMax = 4096;
/** A slot is settled after this time even if new arrivals continue. */
const openNsMax = 30e9;

export class OpenSlots<Slot extends TimedSlot> {
  readonly counts: readonly FeedCounts[];
  readonly #options: OpenSlotsOptions<Slot>;
  readonly #open = new Map<number, Slot>();
  readonly #settled = new Set<number>();

  constructor(options: OpenSlotsOptions<Slot>) {
    this.#options = options;
    this.counts = Array.from({ length: options.feeds }, () => ({
      arrivals: 0,
      repeats: 0,
      late: 0,
      conflicting: 0,
      beyond: 0,
      firstNs: Number.POSITIVE_INFINITY,
      lastNs: Number.NEGATIVE_INFINITY,
    }));
  }

  /** In order of their first arrivals. */
  get all(): readonly Slot[] {
    return [...this.#open.values()];
  }

  /** Counts an arrival. Returns its slot; undefined if it is settled, or if too many are open. */
  slotOf(arrival: {
    readonly feed: number;
    readonly slot: number;
    readonly timeNs: number;
  }): Slot | undefined {
    const counts = this.counts[arrival.feed];
    if (!counts) return undefined;
    counts.arrivals++;
    counts.firstNs = Math.min(counts.firstNs, arrival.timeNs);
    counts.lastNs = Math.max(counts.lastNs, arrival.timeNs);
    const known = this.#open.get(arrival.slot);
    if (known) return known;
    if (this.#settled.has(arrival.slot)) {
      counts.late++;
      return undefined;
    }
    if (this.#open.size === openSlotsMax) {
      counts.beyond++;
      return undefined;
    }
    const slot = this.#options.create(arrival.slot);
    this.#open.set(arrival.slot, slot);
    return slot;
  }

  /** Settles slots without anything new since `nowNs` minus the settling time. */
  settle(nowNs: number): void {
    for (const slot of this.#open.values()) {
      const isQuiet = slot.lastNewNs + this.#options.settleNs <= nowNs;
      if (isQuiet || slot.firstNs + openNsMax <= nowNs) this.#close(slot);
    }
  }

  #close(slot: Slot): void {
    this.#open.delete(slot.slot);
    this.#settled.add(slot.slot);
    if (this.#settled.size > settledSlotsMax)
      for (const oldest of this.#settled) {
        this.#settled.delete(oldest);
        break;
      }
    this.#options.onSettled(slot);
  }
}
