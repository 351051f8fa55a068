// Slot line: the straight line through first arrivals, from slot number to time.
//
// Fitted by slot-clock.ts. It uses only medians, because some arrivals are always wrong: late after
// losses, or early because their leader sent them early. Theil's slope is correct with fewer than 29 %
// wrong arrivals, the median offset with fewer than half.

/** First arrival of a slot. Times are nanoseconds since an origin of the caller. */
export interface SlotReading {
  readonly slot: number;
  readonly timeNs: number;
}

/** The time of a slot is `timeNs + (slot - this.slot) * slotNs`. */
export interface SlotLine {
  readonly slot: number;
  readonly timeNs: number;
  readonly slotNs: number;
}

/**
 * Number of arrivals whose median sets the line's offset. Few, so that it follows a change of the
 * duration, but more than twice the eight of a leader with two windows in a row.
 */
const offsetArrivals = 17;
/** Limits of a slot duration, far beyond every plan for the network; they reject bursts. */
const slotNsMin = 20e6;
const slotNsMax = 5e9;

export function slotAt(line: SlotLine, timeNs: number): number {
  return line.slot + (timeNs - line.timeNs) / line.slotNs;
}

export function timeOf(line: SlotLine, slot: number): number {
  return line.timeNs + (slot - line.slot) * line.slotNs;
}

/** Median of at least one value, the upper of two. Reorders `values`. */
function median(values: Float64Array): number {
  // Selection (Hoare), because sorting the 2,016 slopes of 64 arrivals takes several times as long.
  const middle = values.length >> 1;
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const pivot = values[(low + high) >> 1] ?? 0;
    let left = low;
    let right = high;
    while (left <= right) {
      while ((values[left] ?? 0) < pivot) left++;
      while ((values[right] ?? 0) > pivot) right--;
      if (left > right) break;
      const retained = values[left] ?? 0;
      values[left++] = values[right] ?? 0;
      values[right--] = retained;
    }
    if (middle <= right) high = right;
    else if (middle >= left) low = left;
    else break;
  }
  return values[middle] ?? Number.NaN;
}

/** Median slope of all pairs of different slots; null: an impossible slot duration. */
export function slotNsOf(arrivals: readonly SlotReading[]): number | null {
  const slopes = new Float64Array((arrivals.length * (arrivals.length - 1)) / 2);
  let count = 0;
  for (let i = 1; i < arrivals.length; i++) {
    const later = arrivals[i];
    for (let j = 0; j < i; j++) {
      const earlier = arrivals[j];
      if (!earlier || !later || earlier.slot === later.slot) continue;
      slopes[count++] = (later.timeNs - earlier.timeNs) / (later.slot - earlier.slot);
    }
  }
  const slotNs = median(slopes.subarray(0, count));
  return slotNs >= slotNsMin && slotNs <= slotNsMax ? slotNs : null;
}

/** Distance in slots between the outermost arrivals on both sides of a line with this slot duration. */
export function scatterOf(arrivals: readonly SlotReading[], slotNs: number): number {
  const offsets = arrivals.map(({ slot, timeNs }) => slot - timeNs / slotNs);
  return Math.max(...offsets) - Math.min(...offsets);
}

/** The line through `arrivals`, ascending by slot. `slotNs`: used instead of a measurement. */
export function lineThrough(
  arrivals: readonly SlotReading[],
  slotNs = slotNsOf(arrivals),
): SlotLine | null {
  const last = arrivals.at(-1);
  if (!last || slotNs === null) return null;
  const recent = arrivals.slice(-offsetArrivals);
  const times = Float64Array.from(recent, ({ slot, timeNs }) => {
    return timeNs + (last.slot - slot) * slotNs;
  });
  return { slot: last.slot, timeNs: median(times), slotNs };
}
