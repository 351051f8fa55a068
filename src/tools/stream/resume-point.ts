// Where a stream continues after a loss of its connection, and what it has shown already. Pure.
//
// Slots overlap, so the server repeats the newest ones from their beginnings. What was shown before the loss is
// left out once.

import type { StreamEvent } from "./stream-messages.ts";

/** Repeated slots. Shreds of older ones are not expected any more. */
const slotsRepeated = 8n;

export class ResumePoint {
  /** Events that were shown, by slot; of the repeated slots only. */
  readonly #shown = new Map<bigint, string[]>();
  /** Events that the server may repeat, by slot. */
  #before = new Map<bigint, Set<string>>();
  #newest: bigint | null = null;

  /** The first slot of the next call; null: nothing was received yet. */
  get slot(): bigint | null {
    if (this.#newest === null) return null;
    return this.#newest < slotsRepeated ? 0n : this.#newest - slotsRepeated + 1n;
  }

  get newest(): bigint | null {
    return this.#newest;
  }

  /** Returns false if the event was shown before the loss. */
  note(event: StreamEvent): boolean {
    if (event.kind === "ping") return true;
    const { slot } = event;
    if (this.#newest === null || slot > this.#newest) this.#advance(slot);
    const key = keyOf(event);
    if (key === null) return true;
    const list = this.#shown.get(slot) ?? [];
    list.push(key);
    this.#shown.set(slot, list);
    return !this.#before.get(slot)?.delete(key);
  }

  /** The connection is lost. */
  lose(): void {
    this.#before = new Map([...this.#shown].map(([slot, keys]) => [slot, new Set(keys)]));
  }

  #advance(newest: bigint): void {
    this.#newest = newest;
    for (const slots of [this.#shown, this.#before]) {
      for (const slot of slots.keys()) if (slot + slotsRepeated <= newest) slots.delete(slot);
    }
  }
}

/** A transaction may come twice in its slot, behind an update-parent marker. null: repetitions are harmless. */
function keyOf(event: Exclude<StreamEvent, { kind: "ping" }>): string | null {
  if (event.kind === "transaction") return `${event.signature} ${event.batchIndex}`;
  return event.kind === "update_parent" ? `update_parent ${event.fecSetIndex}` : null;
}
