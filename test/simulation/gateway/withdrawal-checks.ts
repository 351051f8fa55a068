// The checks of withdrawals: observations that do not stand are withdrawn, in the timeline of each customer.
//
// An observation does not stand if its block began again without the transaction (an update-parent marker), or
// if the block is not part of the chain. The checks count the shreds that the relay has sent on, so that they
// know when its deshredder has a marker.

import { placeOf } from "../cluster.ts";
import { Violation } from "../relay-checks.ts";
import type { ShownEvent } from "./shown-timeline.ts";

/** Any so many shreds of a FEC set contain its data. */
const decodableShreds = 32;
/** The relay reports a marker within this time. */
const reportMs = 500;
const otherEnds: ReadonlySet<string> = new Set(["landed", "landed_failed", "rejected"]);
const invariant = "an observation that does not stand is withdrawn";

interface RestartedBlock {
  /** FEC set of the marker. */
  readonly marker: number;
  /** Transactions before the marker that are not behind it again. */
  readonly withdrawn: ReadonlySet<string>;
  /** Shreds up to the marker's set that the relay has sent on, by FEC set. */
  readonly shreds: Map<number, Set<string>>;
  /** Since when the marker is decodable; null: it is not. */
  decodableMs: number | null;
}

interface Standing {
  readonly signature: string;
  /** Slots of observations that were not withdrawn, and when they were reported. */
  readonly slots: Map<number, number>;
}

export class WithdrawalChecks {
  readonly #blocks = new Map<number, RestartedBlock>();
  /** Observations by customer and signature. */
  readonly #standing = new Map<string, Standing>();

  restartedBlock(slot: bigint, marker: number, withdrawn: ReadonlySet<string>): void {
    this.#blocks.set(Number(slot), { marker, withdrawn, shreds: new Map(), decodableMs: null });
  }

  /** The relay has sent on this shred, which it gives to its deshredder, too. */
  relayed(packet: Uint8Array, nowMs: number): void {
    const { slot, fecSet, index, isCode } = placeOf(packet);
    const block = this.#blocks.get(Number(slot));
    if (!block || block.decodableMs !== null || fecSet > block.marker) return;
    const shreds = block.shreds.get(fecSet) ?? new Set();
    block.shreds.set(fecSet, shreds.add(`${isCode} ${index}`));
    for (let set = 0; set <= block.marker; set += decodableShreds)
      if ((block.shreds.get(set)?.size ?? 0) < decodableShreds) return;
    block.decodableMs = nowMs;
  }

  /** A customer hears this event. */
  pushed(customer: number, signature: string, event: ShownEvent, nowMs: number): void {
    const { kind, slot, reason } = event;
    const name = `${customer} ${signature}`;
    const standing = this.#standing.get(name) ?? { signature, slots: new Map<number, number>() };
    if (kind === "seen") {
      this.#checkSeen(signature, slot ?? 0, nowMs);
      standing.slots.set(slot ?? 0, nowMs);
      this.#standing.set(name, standing);
    } else if (kind === "withdrawn") {
      if (reason === "update_parent") standing.slots.delete(slot ?? 0);
      else standing.slots.clear(); // the node knows none of its blocks
    } else if (kind === "expired" && standing.slots.size > 0) {
      const slots = [...standing.slots.keys()].join(", ");
      throw new Violation(invariant, `${signature} expired, and was seen in slot ${slots}`);
    } else if (otherEnds.has(kind)) this.#standing.delete(name);
  }

  #checkSeen(signature: string, slot: number, nowMs: number): void {
    const block = this.#blocks.get(slot);
    if (!block?.withdrawn.has(signature) || (block.decodableMs ?? nowMs) >= nowMs) return;
    throw new Violation(
      invariant,
      `${signature} was seen in slot ${slot} ${nowMs - (block.decodableMs ?? 0)} ms after its marker`,
    );
  }

  check(nowMs: number): void {
    for (const { signature, slots } of this.#standing.values()) {
      for (const [slot, seenMs] of slots) {
        const block = this.#blocks.get(slot);
        if (!block?.withdrawn.has(signature) || block.decodableMs === null) continue;
        const sinceMs = nowMs - Math.max(seenMs, block.decodableMs);
        if (sinceMs > reportMs)
          throw new Violation(
            invariant,
            `${signature} was seen in slot ${slot}, ${sinceMs} ms without an event after the marker`,
          );
      }
    }
  }

  /** The service was killed, with all shreds and observations that it had. */
  crashed(): void {
    this.#blocks.clear();
    this.#standing.clear();
  }

  /** The deshredder may give up the shreds that it has. */
  clockWasSet(): void {
    this.#blocks.clear();
  }
}
