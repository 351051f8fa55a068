// The check of the slot clock of a relay that asks a node for the slot.

import type { Chain } from "./gateway/chain.ts";
import type { SimulatedNode } from "./gateway/node.ts";
import { Violation } from "./relay-checks.ts";

/** The clock is so exact this time after a start, and after node and cluster work again. */
const exactMs = 10_000;
const startMs = 3_000;
/** An answer may be some slots old. */
const behindMax = 6n;

interface SlotChecksOptions {
  readonly chain: Chain;
  readonly node: SimulatedNode;
  readonly nowMs: () => number;
}

export class SlotChecks {
  readonly #options: SlotChecksOptions;
  #startedMs = 0;
  #clockSetMs = Number.NEGATIVE_INFINITY;

  constructor(options: SlotChecksOptions) {
    this.#options = options;
  }

  /** The service runs again. */
  restarted(): void {
    this.#startedMs = this.#options.nowMs();
  }

  clockWasSet(): void {
    this.#clockSetMs = this.#options.nowMs();
  }

  /** Called once in each slot. `slot`: that of the service; null: it knows none. */
  check(slot: bigint | null): void {
    const { chain, node } = this.#options;
    const nowMs = this.#options.nowMs();
    const newest = chain.blocks.at(-1)?.slot;
    const isDue = nowMs - this.#startedMs > startMs && nowMs - this.#clockSetMs > exactMs;
    const works = node.isHealthySince(nowMs - exactMs) && !chain.wasStopped(nowMs - exactMs);
    if (!isDue || !works || newest === undefined) return;
    if (slot !== null && newest - slot <= behindMax) return;
    throw new Violation(
      "the slot of the service is near that of the cluster",
      `${slot ?? "none"}, in truth ${newest}`,
    );
  }
}
