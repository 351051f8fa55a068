// Quiet periods: minutes in which no source delivers a shred, and customers call seldom.
//
// They take most of the simulated time and little of the real one. What depends on long times happens in
// them: clocks that nothing corrects, idle connections, back-off, and a return after a long silence.

import { type SimulatedTime, slotMs } from "./simulated-time.ts";

/** Customers ask in each of so many slots. */
const askedSlots = 10;
/** Without anything new, the checks happen in each of so many slots, and customers ask seldom. */
const checkedSlots = 10;
const seldomAskedSlots = 100;

export interface QuietAction {
  readonly kind: "quiet";
  /** The first slot that begins in it. */
  readonly slot: bigint;
  /** The period has the duration of so many slots. */
  readonly slots: number;
  /** Whether the cluster produces blocks, which no source delivers. Otherwise no slot begins. */
  readonly hasBlocks: boolean;
}

interface QuietTimesOptions {
  readonly time: SimulatedTime;
  /** The cluster makes the block of this slot, which no source delivers. `number`: seeds its contents. */
  readonly produce: (number: number, slot: bigint) => void;
  /** The checks of a slot. `isAsking`: customers ask for open submissions. */
  readonly check: (isAsking: boolean) => void;
  /** Whether a submission may still be sent. */
  readonly isEventful: () => boolean;
}

/** The quiet periods of one run. */
export class QuietTimes {
  readonly #options: QuietTimesOptions;
  #untilMs = 0;
  /** The duration of all quiet periods so far. */
  totalMs = 0;

  constructor(options: QuietTimesOptions) {
    this.#options = options;
  }

  get isNow(): boolean {
    return this.#options.time.nowMs < this.#untilMs;
  }

  /** `number`: of the event; those behind it seed the slots. */
  begin({ slot, slots, hasBlocks }: QuietAction, number: number): void {
    const { time, produce, check, isEventful } = this.#options;
    const beginMs = time.nowMs;
    this.#untilMs = beginMs + slots * slotMs;
    this.totalMs += slots * slotMs;
    const next = (i: number): void => {
      if (hasBlocks) produce(number + i, slot + BigInt(i));
      const isNew = isEventful();
      if (isNew || i % checkedSlots === 0) check(i % (isNew ? askedSlots : seldomAskedSlots) === 0);
      if (i + 1 < slots) time.at((beginMs + (i + 1) * slotMs) * 1e6, () => next(i + 1));
    };
    next(0);
  }
}
