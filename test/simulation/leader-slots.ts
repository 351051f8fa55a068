// The leaders of the slots around the present one.

import type { Cluster } from "./cluster.ts";

/** The service knows the present slot so exactly. */
const nearSlots = 2;
/** A copy goes to the leaders of two windows of four slots. */
const copySlotsAfter = 6;
const copySlotsBefore = 3;
/** It waits for a leader that does not answer up to 4 s. */
const waitingSlots = 10;

/** Which slots around the present one alternative partners lead. */
export interface PartnerSlots {
  readonly some: boolean;
  readonly all: boolean;
}

interface LeaderSlotsOptions {
  readonly cluster: Cluster;
  readonly newest: () => bigint;
  /** The service may not know the slot. */
  readonly isUnsettled: () => boolean;
  /** No slot has begun when it should, so that the present one is estimated. */
  readonly isEstimated: () => boolean;
}

export class LeaderSlots {
  readonly #options: LeaderSlotsOptions;

  constructor(options: LeaderSlotsOptions) {
    this.#options = options;
  }

  ofPartners(): PartnerSlots {
    const { cluster, isUnsettled } = this.#options;
    const led = this.#between(-nearSlots, nearSlots).map((slot) => cluster.isLedByPartner(slot));
    return {
      some: isUnsettled() || led.includes(true),
      all: !isUnsettled() && !led.includes(false),
    };
  }

  /** Whether a copy for this leader may leave now. `mayWait`: leaders or their network had trouble recently. */
  isNear(identity: string, mayWait: boolean): boolean {
    const { cluster, isUnsettled, isEstimated } = this.#options;
    if (isUnsettled() || isEstimated()) return true;
    const before = copySlotsBefore + (mayWait ? waitingSlots : 0);
    return this.#between(-before, copySlotsAfter).some(
      (slot) => cluster.identityOf(slot) === identity,
    );
  }

  #between(first: number, last: number): bigint[] {
    const newest = this.#options.newest();
    return Array.from({ length: last - first + 1 }, (_, i) => newest + BigInt(first + i));
  }
}
