// The check that open submissions are sent again while a partner works.

import type { RouteSnapshot } from "../../../src/gateway/submission/types.ts";
import { Violation } from "../relay-checks.ts";
import type { SimulatedDisk } from "../simulated-disk.ts";
import { type AccountRecord, sentForMs } from "./account-record.ts";
import type { Chain } from "./chain.ts";
import type { RouteName } from "./partners.ts";
import type { PartnerViews } from "./submission-checks.ts";

/** An open submission is sent again within this time. */
const resendMs = 4_000;
interface ResendChecksOptions {
  readonly chain: Chain;
  readonly partners: PartnerViews;
  readonly disk: SimulatedDisk;
  readonly nowMs: () => number;
  /** Each of them gets every submission. */
  readonly names: readonly RouteName[];
}

export class ResendChecks {
  readonly #options: ResendChecksOptions;
  /** When a submission was last sent, or did not have to be, by signature. */
  readonly #excusedMs = new Map<string, number>();

  constructor(options: ResendChecksOptions) {
    this.#options = options;
  }

  /** A partner has received it. */
  received(signature: string): void {
    this.#excusedMs.set(signature, this.#options.nowMs());
  }

  /** The service runs again. */
  restarted(): void {
    this.#excusedMs.clear();
  }

  /** Called once in each slot. `owners`: all records of one signature. */
  check(owners: readonly AccountRecord[], routes: readonly RouteSnapshot[]): void {
    const [first] = owners;
    if (!first) return;
    const { signature } = first.transaction;
    const nowMs = this.#options.nowMs();
    if (!this.#mustBeSent(owners, routes)) this.#excusedMs.set(signature, nowMs);
    const sinceMs = nowMs - (this.#excusedMs.get(signature) ?? nowMs);
    if (!this.#excusedMs.has(signature)) this.#excusedMs.set(signature, nowMs);
    if (sinceMs > resendMs)
      throw new Violation(
        "an open submission is sent again",
        `${signature} after ${Math.round(sinceMs)} ms`,
      );
  }

  #mustBeSent(owners: readonly AccountRecord[], routes: readonly RouteSnapshot[]): boolean {
    const { chain, partners, disk, names } = this.#options;
    const isOpen = owners.every(
      ({ isAcknowledged, isResent, reported, isEnded }) =>
        isAcknowledged && isResent && reported === null && !isEnded,
    );
    const [first] = owners;
    if (!isOpen || !first || disk.hasFailedLately) return false;
    if (this.#options.nowMs() - first.beganMs > sentForMs) return false;
    const { transaction } = first;
    if (chain.wasEverShown(transaction.signature)) return false;
    if (!chain.isValid(transaction, chain.tip)) return false;
    const up = new Set(routes.filter(({ health }) => health === "up").map(({ name }) => name));
    return names.some((name) => {
      const view = partners[name];
      if (!view || view.goodSinceMs === null || !up.has(name)) return false;
      return view.receptionOf(transaction.signature).refusedForGood === 0;
    });
  }
}
