// Keeps the slot clock: shows it the relay's own first arrivals and, now and then, a node's opinion, and
// tells the relay which slots can be now.
//
// Made by relay-service.ts. The clock itself (what follows from the arrivals) is leaders/slot-clock.ts.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { u64Max } from "../../core/primitives.ts";
import type { Relay } from "../data-plane/relay.ts";
import { SlotClock } from "./slot-clock.ts";

const lookMs = 100;
const askNodeMs = 5000;
/** For an event loop that stands still: the bounds must not stand with it. */
const boundsHoldNs = 1_000_000_000n;
/** After so much silence the relay's own window opens, too (native/relay/slot_window.h). */
const trustedForNs = 2_000_000_000n;
/** The relay's window reaches so far back; older slots are its own to refuse. */
const slotsBehind = 512n;

/** What is asked of the node; RpcClient is the real one. */
export interface SlotNode {
  /** The newest slot that the node knows, at commitment "processed". */
  slot(): Promise<bigint>;
}

interface SlotClockUpdatesDependencies {
  readonly relay: Pick<Relay, "slots" | "setSlotBounds">;
  readonly node?: SlotNode;
  readonly clock: Clock;
  readonly log: Logger;
}

export class SlotClockUpdates {
  readonly slotClock = new SlotClock();
  readonly #dependencies: SlotClockUpdatesDependencies;
  readonly #timers: readonly Timer[];
  /** Slots of the last look, and up to when their shreds were shown to the clock. */
  #noted: ReadonlyMap<bigint, bigint> = new Map();
  #asking = false;
  #closed = false;
  #nodeFailed = false;

  constructor(dependencies: SlotClockUpdatesDependencies) {
    this.#dependencies = dependencies;
    const { clock, node } = dependencies;
    this.#timers = [
      clock.every(lookMs, () => this.#look()),
      ...(node ? [clock.every(askNodeMs, () => void this.#ask(node))] : []),
    ];
    if (node) void this.#ask(node);
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) timer.cancel();
  }

  #look(): void {
    const { relay, clock } = this.#dependencies;
    const rows = relay.slots();
    for (const { slot, firstSeenNs, lastSeenNs } of rows) {
      const notedNs = this.#noted.get(slot);
      if (notedNs === undefined) this.slotClock.noteShreds(slot, firstSeenNs);
      // A slot that came before its time counts when its time has come.
      else if (notedNs < lastSeenNs) this.slotClock.noteShreds(slot, lastSeenNs);
    }
    this.#noted = new Map(rows.map(({ slot, lastSeenNs }) => [slot, lastSeenNs]));
    this.#bound(clock.nowNs());
  }

  #bound(nowNs: bigint): void {
    const now = this.slotClock.now(nowNs);
    const highest = this.slotClock.ceiling(nowNs);
    // A clock that nothing confirms bounds nothing: it might shut the present out for good, for what
    // the relay drops it cannot tell the clock.
    if (now === null || highest === null || now.ageNs >= trustedForNs) {
      this.#dependencies.relay.setSlotBounds({ lowest: 0n, highest: u64Max, untilNs: 0n });
      return;
    }
    this.#dependencies.relay.setSlotBounds({
      lowest: now.slot > slotsBehind ? now.slot - slotsBehind : 0n,
      highest: highest < u64Max ? highest : u64Max,
      untilNs: nowNs + boundsHoldNs,
    });
  }

  async #ask(node: SlotNode): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    const { clock, log } = this.#dependencies;
    try {
      const slot = await node.slot();
      this.slotClock.noteRpc(slot, clock.nowNs());
      if (this.#nodeFailed) log.info("the node tells the present slot again");
      this.#nodeFailed = false;
    } catch (error) {
      if (!this.#nodeFailed && !this.#closed) {
        log.warn(`the node does not tell the present slot: ${messageOf(error)}`);
      }
      this.#nodeFailed = true;
    } finally {
      this.#asking = false;
    }
  }
}
