// Slot clock: the current slot, the duration of a slot, and the expected time of a slot.
//
// It receives the first arrival of each slot among authenticated shreds, and the slot of an RPC node.
// The relay service, the leader context and the tracker read it. All times come from the callers, which
// share one clock. The time of slot S is the usual arrival time of its first shred here.
//
// It assumes no slot duration, because that changes at epoch boundaries. It measures the duration on the
// last 64 arrivals (slot-line.ts). The error of `now` was measured in 300 simulated networks per case
// (150 to 450 ms, up to 30 % skipped, November 2026). With a constant duration it was at most 1 slot.
// Within 64 slots after the duration shrank by up to a quarter, it was at most 6. After it was halved,
// it was at most 15 (20 and 21 in two of 300, `ceiling` then 3 short). After it doubled, the clock may
// need 5 s or more.
//
// Without shreds, it measures the duration on the answers of the node, which is asked each second at first,
// and assumes long slots until then. With one node, `now` was at most 1 slot late. With an address of several
// nodes, each 0 to 3 slots late, it was 7 slots late to 5 early until 30 s, then 5 late to 2 early, also if
// nobody answered for 5 s in the first half minute (400 simulated runs of 2 minutes each, slots of 400 ms).
//
// A scheduled leader can sign shreds of its own future slots at any time. An arrival therefore counts
// only within 16 slots of the line's present, moves the line only together with others, and only while
// at least 12 of 32 slots arrive. Other arrivals are stored separately, and a new line replaces the
// present one only in these cases:
// - 12 of 20 consecutive slots arrived at a possible pace, while the present line had no arrival for 5 s
//   (the duration changed during an outage) or RPC agrees;
// - 38 of 64 arrived, later than the present line (which then follows a recording of old shreds);
// - never backwards over passed slots, unless the line was silent for 30 s.
//
// No line may lie more than 32 slots behind a node that answered in the last 30 s, because anyone can
// replay old shreds, and a node cannot be ahead of the network. A line that does is dropped. A line
// ahead of the node is accepted: only leaders can sign its shreds, and nodes fall behind or stop.
//
// To forge that, a leader needs three of five windows of four slots while the honest feed is silent (the
// honest slots then move the clock back), or ten of sixteen while it is not. Inside the 16 slots, a
// leader moves `now` only with more than eight of the last 17 arrivals, nearly three windows in a row,
// and by at most 16. `ceiling` is 16 above `now` (more after 5 s of silence), or 32 above RPC, which is
// trusted to raise it.

import {
  lineThrough,
  type SlotLine,
  type SlotReading,
  scatterOf,
  slotAt,
  slotNsOf,
  timeOf,
} from "./slot-line.ts";

/** The source of the current slot. */
type SlotSource = "shreds" | "rpc";

interface SlotNow {
  readonly slot: bigint;
  readonly source: SlotSource;
  /**
   * Age of the last observation that confirmed this source; 0 if it was made later than the given time.
   */
  readonly ageNs: bigint;
  /** null: no duration is measured, and the slots since the last answer of the node count as 450 ms. */
  readonly slotNs: bigint | null;
}

interface SkipShare {
  /** Arrived slots among consecutive `slots`, without slots that could not arrive here. */
  readonly skipped: number;
  readonly slots: number;
}

/**
 * Distance of an arrival from the line, in both directions; also the margin of `ceiling`. Derived in the
 * header.
 */
export const nearSlots = 16;
/** RPC answers are late by one or a few slots and come from another place. */
const rpcNearSlots = 32;
const lineArrivals = 64;
const confirmedForNs = 10e9;
const silentAfterNs = 5e9;
const forgottenAfterNs = 30e9;
const quick = { slots: 20, arrivals: 12 } as const;
const slow = { slots: 64, arrivals: 38 } as const;
const dense = { slots: 32, arrivals: 12 } as const;
/**
 * Blocks of separate arrivals: the least recently extended one is dropped, so a flood of slots only
 * drops its own.
 */
const blockSlots = 32;
const blocksMax = 512;
/** Slots whose arrivals are retained for `skipped`. */
const seenSlots = 1024;
const shareSlots = 256;
/**
 * Distance behind the current slot before a slot without a shred counts as skipped, because shreds may
 * be late.
 */
const settledSlots = 8;
/**
 * This many consecutive slots were not skipped: the feed was silent. Eight leaders in a row do not fail.
 */
const outageSlots = 32;
const rpcAnswersMax = 16;
/**
 * One address often leads to several nodes, each some slots behind the network. Their answers show a slot
 * duration when they span so many times their scatter, or when there are 16 of them.
 */
const rpcSlotsPerScatter = 10;
const rpcRecentMax = 5;
/** A node had no further slot for so long, and its slots seem longer than `longSlotNs`: the cluster had stopped. */
const standstillNs = 4e9;
const longSlotNs = 2e9;
/** Without a duration: shorter and longer than every plan for the network. */
const assumedSlotNs = { shortest: 100e6, longest: 450e6 } as const;
/** A clock that is set back by less than this is not detected, which does no harm. */
const stepBackNs = 1e9;

function highestSlotOf(readings: readonly SlotReading[]): number {
  return Math.max(...readings.map(({ slot }) => slot));
}

/** Whether there was a confirmation that is not in the future; otherwise the clock was set back. */
function isTimely(confirmedNs: number, atNs: number): boolean {
  return Number.isFinite(confirmedNs) && confirmedNs <= atNs + stepBackNs;
}

export class SlotClock {
  #baseNs: bigint | null = null;
  #line: SlotLine | null = null;
  /** The arrivals of the line, ascending by slot. */
  #arrivals: SlotReading[] = [];
  #lastNoteNs = 0;
  #confirmedNs = Number.NEGATIVE_INFINITY;
  readonly #aside = new Map<number, Float64Array>();
  readonly #seen = new Float64Array(seenSlots).fill(-1);
  #firstSlot = 0;
  #rpc: SlotReading[] = [];
  /** The first answer with the highest slot. It may be older than all of `#rpc`. */
  #highestRpc: SlotReading | null = null;

  /** The callers' clock was set by so much: what was measured before belongs to the new time, too. */
  shift(byNs: bigint): void {
    if (this.#baseNs !== null) this.#baseNs += byNs;
  }

  /** The first authenticated shred of `slot`. Later ones have no effect. */
  noteShreds(slot: bigint, timeNs: bigint): void {
    const arrival = this.#arrivalOf(slot, timeNs);
    if (!arrival) return;
    this.#noteTime(arrival.timeNs);
    if (this.#line && Math.abs(arrival.slot - slotAt(this.#line, arrival.timeNs)) <= nearSlots) {
      this.#accept(arrival);
    } else if (!this.#hasObserved(arrival.slot)) {
      this.#defer(arrival);
    }
  }

  /** The current slot of an RPC node (commitment processed) at `timeNs`. */
  noteRpc(slot: bigint, timeNs: bigint): void {
    const answer = this.#arrivalOf(slot, timeNs);
    if (!answer) return;
    this.#noteTime(answer.timeNs);
    if (this.#endsStandstill(answer)) this.#rpc = [];
    this.#rpc.push(answer);
    if (this.#rpc.length > rpcAnswersMax) this.#rpc.shift();
    this.#noteHighest();
    const present = this.#lineSlotAt(answer.timeNs);
    if (present !== null && this.#isBehindNode(present, answer.timeNs)) this.#dropLine();
  }

  /**
   * While the cluster does not move, all answers have one slot, and the first of them stays here. A slot above
   * all of `#rpc` is forgotten: only a node that errs has reported it.
   */
  #noteHighest(): void {
    const slot = highestSlotOf(this.#rpc);
    if (this.#highestRpc?.slot === slot) return;
    this.#highestRpc = this.#rpc.find((answer) => answer.slot === slot) ?? null;
  }

  /**
   * Whether the cluster had stopped before this answer: slots seem far too long. The earlier answers say nothing
   * about their duration then. A node that had stopped alone has many further slots at once.
   */
  #endsStandstill({ slot, timeNs }: SlotReading): boolean {
    const highest = this.#highestRpc;
    const last = this.#rpc.at(-1);
    if (!highest || !last || slot <= highest.slot) return false;
    const hasStood = last.timeNs - highest.timeNs >= standstillNs;
    return hasStood && (timeNs - highest.timeNs) / (slot - highest.slot) > longSlotNs;
  }

  /** Whether shreds and an answer of the node in the last 10 s agree on the current slot. */
  isConfirmed(timeNs: bigint): boolean {
    if (this.#baseNs === null) return false;
    const atNs = this.#relative(timeNs);
    const present = this.#lineSlotAt(atNs);
    return (
      present !== null &&
      isTimely(this.#confirmedNs, atNs) &&
      Math.abs(this.#nodeDistance(present, atNs, confirmedForNs)) <= rpcNearSlots
    );
  }

  /** null: nothing is measured, or the clock was set back since. */
  now(timeNs: bigint): SlotNow | null {
    if (this.#baseNs === null) return null;
    const atNs = this.#relative(timeNs);
    const source = this.#sourceAt(atNs);
    const slot = source === "rpc" ? this.#rpcSlotAt(atNs) : this.#lineSlotAt(atNs);
    if (source === null || slot === null) return null;
    const slotNs = this.#slotNsBy(source);
    const confirmedNs = source === "rpc" ? (this.#rpc.at(-1)?.timeNs ?? atNs) : this.#confirmedNs;
    if (!isTimely(confirmedNs, atNs)) return null;
    return {
      slot: BigInt(Math.max(0, Math.floor(slot))),
      source,
      ageNs: BigInt(Math.round(Math.max(0, atNs - confirmedNs))),
      slotNs: slotNs === null ? null : BigInt(Math.round(slotNs)),
    };
  }

  /** The slot of `now`; accepts future times. */
  slotAt(timeNs: bigint): bigint | null {
    return this.now(timeNs)?.slot ?? null;
  }

  /** The expected or past time of `slot`; null: the slot duration is not measured. */
  timeOf(slot: bigint): bigint | null {
    if (this.#baseNs === null) return null;
    const atNs = this.#lastNoteNs;
    const source = this.#sourceAt(atNs);
    if (source === null) return null;
    if (source === "shreds" && this.#line) return this.#absolute(timeOf(this.#line, Number(slot)));
    const slotNs = this.#slotNsBy(source);
    const present = this.#rpcSlotAt(atNs);
    if (slotNs === null || present === null) return null;
    return this.#absolute(atNs + (Number(slot) - present) * slotNs);
  }

  /**
   * The highest possible slot at `timeNs`. null: no confirmation for 30 s. The caller must then allow
   * every slot; otherwise a change during an outage would exclude the current slot permanently.
   */
  ceiling(timeNs: bigint): bigint | null {
    if (this.#baseNs === null) return null;
    const atNs = this.#relative(timeNs);
    const answeredNs = this.#rpc.at(-1)?.timeNs ?? Number.NEGATIVE_INFINITY;
    const rpcSlot = this.#rpcSlotAt(atNs, assumedSlotNs.shortest);
    const isFresh = (confirmedNs: number): boolean =>
      isTimely(confirmedNs, atNs) && atNs - confirmedNs <= forgottenAfterNs;
    let highest = Number.NEGATIVE_INFINITY;
    if (this.#line && isFresh(this.#confirmedNs)) {
      // During silence, slots may have become a quarter shorter, the largest planned step.
      const silentNs = Math.max(0, atNs - this.#confirmedNs - silentAfterNs);
      highest = slotAt(this.#line, atNs) + nearSlots + silentNs / this.#line.slotNs / 4;
    }
    if (rpcSlot !== null && isFresh(answeredNs))
      highest = Math.max(highest, rpcSlot + rpcNearSlots);
    return Number.isFinite(highest) ? BigInt(Math.max(0, Math.floor(highest))) : null;
  }

  /**
   * Slots from `from` to `to` (both included) without a shred, ascending. Only of the last 1024 slots,
   * and without those of an outage of the feed.
   */
  skipped(from: bigint, to: bigint): bigint[] {
    return this.#skippedBetween(Number(from), Number(to)).skipped.map(BigInt);
  }

  /** Over the last 256 slots; null: none is settled. */
  skipShare(): SkipShare | null {
    const { skipped, slots } = this.#skippedBetween(this.#settledSlot() - shareSlots + 1, Infinity);
    return slots === 0 ? null : { skipped: skipped.length, slots };
  }

  #arrivalOf(slot: bigint, timeNs: bigint): SlotReading | null {
    // Above 2^53 a number is not exact; no slot gets there in ten million years.
    if (slot < 0n || slot > BigInt(Number.MAX_SAFE_INTEGER)) return null;
    this.#baseNs ??= timeNs;
    return { slot: Number(slot), timeNs: this.#relative(timeNs) };
  }

  #relative(timeNs: bigint): number {
    return Number(timeNs - (this.#baseNs ?? timeNs));
  }

  #absolute(relativeNs: number): bigint {
    return (this.#baseNs ?? 0n) + BigInt(Math.round(relativeNs));
  }

  #noteTime(timeNs: number): void {
    if (timeNs < this.#lastNoteNs - stepBackNs) {
      // The clock was set back, so the measurements belong to another time.
      this.#confirmedNs = Number.NEGATIVE_INFINITY;
      this.#rpc = [];
      this.#highestRpc = null;
      this.#aside.clear();
    }
    this.#lastNoteNs = timeNs;
  }

  #accept(arrival: SlotReading): void {
    const { slot, timeNs } = arrival;
    this.#seen[slot % seenSlots] = slot;
    const index = this.#arrivals.findIndex((other) => other.slot >= slot);
    const found = index < 0 ? undefined : this.#arrivals[index];
    if (found?.slot === slot) {
      // Workers report independently, so the earlier report may come second.
      if (timeNs < found.timeNs) this.#arrivals[index] = arrival;
      return;
    }
    if (index === 0 && this.#arrivals.length === lineArrivals) return;
    this.#arrivals.splice(index < 0 ? this.#arrivals.length : index, 0, arrival);
    if (this.#arrivals.length > lineArrivals) this.#arrivals.shift();
    if (!this.#line || !this.#isDense(Math.min(slot, slotAt(this.#line, timeNs)))) return;
    this.#confirmedNs = timeNs;
    this.#line = lineThrough(this.#arrivals) ?? this.#line;
  }

  /**
   * A leader whose shreds alone arrive could move the line step by step. Few arrivals therefore move
   * nothing, and early ones count only when their time has come.
   */
  #isDense(end: number): boolean {
    const recent = this.#arrivals.filter(({ slot }) => slot > end - dense.slots && slot <= end);
    return recent.length >= dense.arrivals;
  }

  #hasObserved(slot: number): boolean {
    return this.#seen[slot % seenSlots] === slot;
  }

  #isDeferred(slot: number): boolean {
    const timeNs = this.#aside.get(Math.floor(slot / blockSlots))?.[slot % blockSlots];
    return timeNs !== undefined && !Number.isNaN(timeNs);
  }

  #defer({ slot, timeNs }: SlotReading): void {
    const block = Math.floor(slot / blockSlots);
    const times = this.#aside.get(block) ?? new Float64Array(blockSlots).fill(Number.NaN);
    const index = slot % blockSlots;
    if (!Number.isNaN(times[index])) return;
    times[index] = timeNs;
    // Last in the map: the most recently extended block.
    this.#aside.delete(block);
    this.#aside.set(block, times);
    if (this.#aside.size > blocksMax) {
      for (const [oldest] of this.#aside) {
        this.#aside.delete(oldest);
        break;
      }
    }
    this.#tryNewLine({ slot, timeNs });
  }

  #tryNewLine({ slot, timeNs }: SlotReading): void {
    const rule = this.#ruleFor(slot, timeNs);
    if (!rule) return;
    const arrivals = this.#deferredBetween(slot - rule.slots + 1, slot);
    if (arrivals.length < rule.arrivals) return;
    const line = lineThrough(arrivals);
    if (!line) return;
    const near = arrivals.filter(
      (arrival) => Math.abs(slotAt(line, arrival.timeNs) - arrival.slot) <= 3,
    );
    const isPresent = Math.abs(slotAt(line, timeNs) - slot) <= 3;
    if (!isPresent || near.length < rule.arrivals * 0.75) return;
    this.#line = line;
    this.#arrivals = arrivals;
    this.#confirmedNs = timeNs;
    this.#firstSlot = Math.min(...arrivals.map((arrival) => arrival.slot));
    for (const arrival of arrivals) this.#seen[arrival.slot % seenSlots] = arrival.slot;
    this.#aside.clear();
  }

  /** The required number of arrivals for a new line at this arrival; null: none is sufficient. */
  #ruleFor(slot: number, timeNs: number): typeof quick | typeof slow | null {
    if (this.#isBehindNode(slot, timeNs)) return null;
    if (!this.#line) return quick;
    const silentNs = Math.abs(timeNs - this.#confirmedNs);
    const isPassed = slot <= (this.#arrivals.at(-1)?.slot ?? -1);
    if (isPassed) return silentNs > forgottenAfterNs ? quick : null;
    if (silentNs > silentAfterNs || this.#rpcAgrees(slot, timeNs)) return quick;
    return slot > slotAt(this.#line, timeNs) ? slow : null;
  }

  #rpcAgrees(slot: number, timeNs: number): boolean {
    return Math.abs(this.#nodeDistance(slot, timeNs)) <= rpcNearSlots;
  }

  #isBehindNode(slot: number, timeNs: number): boolean {
    return this.#nodeDistance(slot, timeNs) > rpcNearSlots;
  }

  /** Slots by which the node is ahead of `slot`; NaN: it has not answered within `freshNs`. */
  #nodeDistance(slot: number, timeNs: number, freshNs = forgottenAfterNs): number {
    const answer = this.#rpc.at(-1);
    const rpcSlot = this.#rpcSlotAt(timeNs);
    if (!answer || rpcSlot === null || timeNs - answer.timeNs > freshNs) return Number.NaN;
    return rpcSlot - slot;
  }

  #dropLine(): void {
    this.#line = null;
    this.#arrivals = [];
    this.#confirmedNs = Number.NEGATIVE_INFINITY;
  }

  #deferredBetween(from: number, to: number): SlotReading[] {
    const arrivals: SlotReading[] = [];
    for (let slot = Math.max(0, from); slot <= to; slot++) {
      const timeNs = this.#aside.get(Math.floor(slot / blockSlots))?.[slot % blockSlots];
      if (timeNs !== undefined && !Number.isNaN(timeNs)) arrivals.push({ slot, timeNs });
    }
    return arrivals;
  }

  /** Shreds while they arrive, and over a silence of 30 s; afterwards the newer source. */
  #sourceAt(atNs: number): SlotSource | null {
    const answer = this.#rpc.at(-1);
    if (!this.#line) return answer ? "rpc" : null;
    if (!answer || Math.abs(atNs - this.#confirmedNs) <= forgottenAfterNs) return "shreds";
    return answer.timeNs > this.#confirmedNs ? "rpc" : "shreds";
  }

  #lineSlotAt(atNs: number): number | null {
    return this.#line ? slotAt(this.#line, atNs) : null;
  }

  /**
   * The second-highest of the last five answers, each extrapolated to `atNs`: nodes fall behind, and one that is
   * ahead errs. Without a duration, the highest, and what has passed since the last one with slots of `assumedNs`.
   */
  #rpcSlotAt(atNs: number, assumedNs: number = assumedSlotNs.longest): number | null {
    const recent = this.#rpc.slice(-rpcRecentMax);
    const slotNs = this.#slotNsBy("rpc");
    const last = recent.at(-1);
    if (!last) return null;
    if (slotNs === null) return highestSlotOf(recent) + Math.max(0, atNs - last.timeNs) / assumedNs;
    const slots = recent.map((answer) => answer.slot + (atNs - answer.timeNs) / slotNs);
    slots.sort((one, other) => other - one);
    return slots[1] ?? slots[0] ?? null;
  }

  #slotNsBy(source: SlotSource): number | null {
    const answer = this.#rpc.at(-1);
    const first = this.#rpc[0];
    const lineNs = this.#line?.slotNs ?? null;
    if (source === "shreds" || !answer || !first) return lineNs;
    if (lineNs !== null && answer.timeNs - this.#confirmedNs <= forgottenAfterNs) return lineNs;
    return this.#measuredRpcSlotNs(answer.timeNs - first.timeNs) ?? lineNs;
  }

  /** null: the answers of the last `periodNs` are too few, or too scattered for so short a period. */
  #measuredRpcSlotNs(periodNs: number): number | null {
    // Answers are whole slots, so less than 4 s contain too little information.
    if (this.#rpc.length < 3 || periodNs < 4e9) return null;
    const slotNs = slotNsOf(this.#rpc);
    if (slotNs === null || this.#rpc.length === rpcAnswersMax) return slotNs;
    return periodNs / slotNs < rpcSlotsPerScatter * scatterOf(this.#rpc, slotNs) ? null : slotNs;
  }

  /** The last slot for which it is certain enough whether it was skipped. */
  #settledSlot(): number {
    const last = this.#arrivals.at(-1);
    if (!this.#line || !last) return -1;
    return Math.min(last.slot - 1, Math.floor(slotAt(this.#line, this.#lastNoteNs)) - settledSlots);
  }

  #skippedBetween(from: number, to: number): { skipped: number[]; slots: number } {
    const settled = this.#settledSlot();
    const first = Math.max(from, this.#firstSlot, settled - seenSlots + outageSlots, 0);
    const last = Math.min(to, settled);
    const skipped: number[] = [];
    let slots = 0;
    // Runs of missing slots may begin before `first` and end after `last`: both decide whether it is an
    // outage.
    let run: number[] = [];
    const close = (): void => {
      if (run.length < outageSlots) {
        for (const slot of run) {
          if (slot < first || slot > last) continue;
          skipped.push(slot);
          slots += 1;
        }
      }
      run = [];
    };
    const end = Math.min(last + outageSlots, settled);
    for (let slot = Math.max(first - outageSlots, this.#firstSlot); slot <= end; slot++) {
      if (!this.#hasObserved(slot) && !this.#isDeferred(slot)) {
        run.push(slot);
        continue;
      }
      close();
      if (slot >= first && slot <= last) slots += 1;
    }
    close();
    return { skipped, slots };
  }
}
