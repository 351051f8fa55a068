// Lifecycle: the timeline of one transaction of one account, with one end.
//
// Events are appended as they arrive. The first end is final; later events are counted and ignored, since
// routes may answer late. The timeline is bounded: events in the middle of a long one are dropped.

import { isEndState } from "./transitions.ts";
import type { EndState, TimelineEvent } from "./types.ts";

export const eventsMax = 64;
/** Beyond `eventsMax`, the event after these is dropped. */
const firstEvents = eventsMax / 2;

export type EndEvent = Extract<TimelineEvent, { readonly kind: EndState }>;

export function isEnd(event: TimelineEvent): event is EndEvent {
  return isEndState(event.kind);
}

/** Whether it is part of the chain, with or without success. */
export function hasLanded(end: { readonly kind: string } | null | undefined): boolean {
  return end?.kind === "landed" || end?.kind === "landed_failed";
}

// An empty set takes 200 bytes, and every open transaction would have several.
export const noSlots: readonly bigint[] = [];
const noEvents: readonly TimelineEvent[] = [];

/**
 * A new list with the item at its end. Every open submission has several short lists, and V8 gives a list
 * that grows by `push` or a spread the size of 17 items at least.
 */
export function appended<Item>(list: readonly Item[], item: Item): readonly Item[] {
  return list.concat([item]);
}

export class Lifecycle {
  /** Replaced by each event, see `appended`. */
  #events: readonly TimelineEvent[] = noEvents;
  #end: EndEvent | null = null;
  /** Slots of the blocks with it, oldest observation first. */
  #observedSlots: readonly bigint[] = noSlots;
  #late = 0;

  /** `events`: those of a record. Events after an end are ignored. */
  constructor(events: readonly TimelineEvent[] = []) {
    for (const event of events) this.add(event);
    this.#late = 0;
  }

  /** False: it has ended, and the event is only counted. */
  add(event: TimelineEvent): boolean {
    if (this.#end !== null) {
      this.#late++;
      return false;
    }
    if (isEnd(event)) this.#end = event;
    if (event.kind === "seen" || event.kind === "withdrawn") {
      const others = this.#observedSlots.filter((slot) => slot !== event.slot);
      this.#observedSlots = event.kind === "seen" ? appended(others, event.slot) : others;
    }
    const isFull = this.#events.length === eventsMax;
    const events = isFull ? this.#events.toSpliced(firstEvents, 1) : this.#events;
    this.#events = appended(events, event);
    return true;
  }

  get state(): "open" | EndState {
    return this.#end?.kind ?? "open";
  }

  get end(): EndEvent | null {
    return this.#end;
  }

  /** Slot in which it landed, or was last observed. */
  get slot(): bigint | null {
    return this.#end?.slot ?? this.#observedSlots.at(-1) ?? null;
  }

  /** Events that came after the end. */
  get late(): number {
    return this.#late;
  }

  /** A list that later events leave as it is. */
  get events(): readonly TimelineEvent[] {
    return this.#events;
  }
}
