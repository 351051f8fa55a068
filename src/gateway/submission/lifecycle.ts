// Lifecycle: what happened to one transaction, in order, with one end.
//
// Kept for every account that submitted it. Events go in as they come; the first end wins, and what
// comes after it is counted and otherwise ignored: routes answer late, and nobody may be told of a
// second end. Bounded: of a long story the beginning and the end are kept.

import { isEndState } from "./transitions.ts";
import type { EndState, TimelineEvent } from "./types.ts";

export const eventsMax = 64;
/** The first ones stay; beyond `eventsMax` the one after them goes. */
const firstKept = eventsMax / 2;

export type EndEvent = Extract<TimelineEvent, { readonly kind: EndState }>;

export function isEnd(event: TimelineEvent): event is EndEvent {
  return isEndState(event.kind);
}

/** Whether it is part of the chain, with or without success. */
export function hasLanded(end: { readonly kind: string } | null | undefined): boolean {
  return end?.kind === "landed" || end?.kind === "landed_failed";
}

export class Lifecycle {
  readonly #events: TimelineEvent[];
  #end: EndEvent | null = null;
  #seenSlot: bigint | null = null;
  #late = 0;

  /** `events`: what a record kept. What follows an end in them is dropped. */
  constructor(events: readonly TimelineEvent[] = []) {
    this.#events = [];
    for (const event of events) this.add(event);
    this.#late = 0;
  }

  /** False when it has ended before: the event is only counted. */
  add(event: TimelineEvent): boolean {
    if (this.#end !== null) {
      this.#late++;
      return false;
    }
    if (isEnd(event)) this.#end = event;
    if (event.kind === "seen") this.#seenSlot = event.slot;
    if (this.#events.length === eventsMax) this.#events.splice(firstKept, 1);
    this.#events.push(event);
    return true;
  }

  get state(): "open" | EndState {
    return this.#end?.kind ?? "open";
  }

  get end(): EndEvent | null {
    return this.#end;
  }

  /** Where it landed, or was seen last. */
  get slot(): bigint | null {
    return this.#end?.slot ?? this.#seenSlot;
  }

  /** Events that came after the end. */
  get late(): number {
    return this.#late;
  }

  /** A copy. */
  get events(): readonly TimelineEvent[] {
    return [...this.#events];
  }
}
