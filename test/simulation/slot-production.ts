// The slots of one run: their leaders' blocks, which sources deliver or not, and the newest one.

import { type Cluster, firstSlot, type SlotPlan, undeliveredBlockhash } from "./cluster.ts";
import type { GatewayWorld } from "./gateway/gateway-world.ts";
import type { ScenarioEvent } from "./scenario.ts";
import { type SimulatedTime, slotMs } from "./simulated-time.ts";
import type { Sources } from "./sources.ts";

/** Without a new slot for so long, the present one is only estimated. */
const skippedMs = 2 * slotMs;

interface SlotProductionOptions {
  readonly time: SimulatedTime;
  readonly cluster: Cluster;
  readonly sources: Sources;
  readonly gateway: () => GatewayWorld;
}

export class SlotProduction {
  readonly #options: SlotProductionOptions;
  #newest: bigint | undefined;
  #beganMs = 0;

  constructor(options: SlotProductionOptions) {
    this.#options = options;
  }

  /** The newest slot; undefined: none has begun. */
  get newest(): bigint | undefined {
    return this.#newest;
  }

  /** The same, or the first slot that may begin. */
  get newestOrFirst(): bigint {
    return this.#newest ?? firstSlot;
  }

  /** No slot has begun when it should. */
  get isEstimated(): boolean {
    return this.#options.time.nowMs > this.#beganMs + skippedMs;
  }

  /** The leader of a slot sends its block. */
  produce(event: ScenarioEvent, plan: SlotPlan): void {
    this.#begin(plan.slot);
    const { cluster, sources } = this.#options;
    const gateway = this.#options.gateway();
    const contents = gateway.fill(event.number, plan);
    sources.produce(event, plan, contents.versions);
    const marker = cluster.markerOf(plan.slot);
    if (marker !== undefined && plan.versions === 1)
      gateway.restartedBlock(plan.slot, marker, contents.withdrawn);
    const blockhash = cluster.blockhashOf(plan.slot);
    if (blockhash) gateway.chain.add(plan, contents, blockhash);
  }

  /** No source delivers the block of this slot. `number`: seeds its contents. */
  produceUndelivered(number: number, slot: bigint): void {
    this.#begin(slot);
    const plan = { slot, parent: slot - 1n, sets: 1, restartAfter: null, versions: 1 };
    const gateway = this.#options.gateway();
    gateway.chain.add(plan, gateway.fill(number, plan), undeliveredBlockhash(slot));
  }

  #begin(slot: bigint): void {
    this.#newest = slot;
    this.#beganMs = this.#options.time.nowMs;
  }
}
