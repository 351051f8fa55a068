// Slot clock updates: passes the relay's first arrivals and the node's slot to the slot clock, and the
// resulting slot bounds to the relay.
//
// Created by relay-service.ts. slot-clock.ts contains the clock itself.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { u64Max } from "../../core/primitives.ts";
import type { Relay } from "../data-plane/relay.ts";
import { SlotClock } from "./slot-clock.ts";

const updateIntervalMs = 100;
/** The node is asked often until its answers give a slot duration, and after it has failed. */
const askNodeMs = { often: 1000, seldom: 5000 } as const;
/** The wall clock was set if it changed by so much against the monotonic clock between two updates. */
const stepNs = 50_000_000n;
/** If the event loop is blocked, the bounds must not stay. */
const boundsHoldNs = 1_000_000_000n;
/**
 * Shreds: after this silence, the relay's own window opens too (native/relay/slot_window.h). A node is
 * trusted until its next answer is overdue.
 */
const trustedForNs = { shreds: 2_000_000_000n, rpc: 7_500_000_000n } as const;
/** The relay's window extends this far back; the relay itself rejects older slots. */
const slotsBehind = 512n;

/** The used part of the node; RpcClient implements it. */
export interface SlotNode {
  /** The newest slot of the node, at commitment "processed". */
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
  /** Slots of the last check, and the time up to which their shreds were passed to the clock. */
  #noted: ReadonlyMap<bigint, bigint> = new Map();
  /** The wall clock's distance from the monotonic clock. */
  #offsetNs: bigint;
  #asking = false;
  /** Monotonic. */
  #askedNs = 0n;
  #closed = false;
  #nodeFailed = false;

  constructor(dependencies: SlotClockUpdatesDependencies) {
    this.#dependencies = dependencies;
    const { clock, node } = dependencies;
    this.#offsetNs = clock.nowNs() - clock.monotonicNs();
    this.#timers = [
      clock.every(updateIntervalMs, () => this.#poll()),
      ...(node ? [clock.every(askNodeMs.often, () => void this.#askIfDue(node))] : []),
    ];
    if (node) void this.#ask(node);
  }

  /** The current slot, if authenticated shreds have confirmed it in the last seconds. */
  reachedSlot(): bigint | null {
    const now = this.slotClock.now(this.#dependencies.clock.nowNs());
    return now?.source === "shreds" && now.ageNs < trustedForNs.shreds ? now.slot : null;
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) timer.cancel();
  }

  #poll(): void {
    const { relay, clock } = this.#dependencies;
    this.#followSteps();
    const rows = relay.slots();
    for (const { slot, firstSeenNs, lastSeenNs } of rows) {
      const notedNs = this.#noted.get(slot);
      if (notedNs === undefined) this.slotClock.noteShreds(slot, firstSeenNs);
      // A slot that arrived too early counts when its time has come.
      else if (notedNs < lastSeenNs) this.slotClock.noteShreds(slot, lastSeenNs);
    }
    this.#noted = new Map(rows.map(({ slot, lastSeenNs }) => [slot, lastSeenNs]));
    this.#bound(clock.nowNs());
  }

  /** The kernel's times of arrivals are those of the wall clock, which may be set: at boot, or after a pause. */
  #followSteps(): void {
    const { clock } = this.#dependencies;
    const offsetNs = clock.nowNs() - clock.monotonicNs();
    const byNs = offsetNs - this.#offsetNs;
    this.#offsetNs = offsetNs;
    if (byNs >= stepNs || byNs <= -stepNs) this.slotClock.shift(byNs);
  }

  #bound(nowNs: bigint): void {
    const { relay } = this.#dependencies;
    const now = this.slotClock.now(nowNs);
    const highest = this.slotClock.ceiling(nowNs);
    // Without a confirmation, the clock sets no bounds. Otherwise it might exclude the current slot
    // permanently, because the relay could not report the dropped shreds.
    if (now === null || highest === null || now.ageNs >= trustedForNs[now.source]) {
      relay.setSlotBounds({ lowest: 0n, highest: u64Max, isConfirmed: false, untilNs: 0n });
      return;
    }
    relay.setSlotBounds({
      lowest: now.slot > slotsBehind ? now.slot - slotsBehind : 0n,
      highest: highest < u64Max ? highest : u64Max,
      isConfirmed: this.slotClock.isConfirmed(nowNs),
      untilNs: nowNs + boundsHoldNs,
    });
  }

  #askIfDue(node: SlotNode): Promise<void> | undefined {
    const nowNs = this.#dependencies.clock.monotonicNs();
    const isMeasured =
      (this.slotClock.now(this.#dependencies.clock.nowNs())?.slotNs ?? null) !== null;
    const waitMs = isMeasured && !this.#nodeFailed ? askNodeMs.seldom : askNodeMs.often;
    return nowNs - this.#askedNs < BigInt(waitMs) * 1_000_000n ? undefined : this.#ask(node);
  }

  async #ask(node: SlotNode): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    this.#askedNs = this.#dependencies.clock.monotonicNs();
    const { clock, log } = this.#dependencies;
    try {
      const slot = await node.slot();
      this.slotClock.noteRpc(slot, clock.nowNs());
      if (this.#nodeFailed) log.info("slot clock: the node reports the current slot again");
      this.#nodeFailed = false;
    } catch (error) {
      if (!this.#nodeFailed && !this.#closed) {
        log.warn(`slot clock: the node did not return the current slot: ${messageOf(error)}`);
      }
      this.#nodeFailed = true;
    } finally {
      this.#asking = false;
    }
  }
}
