// Registration count: pending registrations where no node is asked what has landed.
//
// Made by registration-seat.ts for each term in which this node counts; what registration-watch.ts is
// where a node is asked. Other nodes register as pending, and left so what was registered while nobody
// counted: each counts as soon as it is known here.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import type { PendingCapacity } from "./pending-capacity.ts";
import { RegistrationResults } from "./registration-results.ts";
import type { Registration, RegistrationStore } from "./registration-types.ts";
import type { TipBook } from "./tier-accounting.ts";

interface CountedOnAcceptanceDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly store: Pick<RegistrationStore, "pending" | "settle">;
  readonly tiers: TipBook;
  readonly places: PendingCapacity;
  /** See RegistrationResultsParts. */
  readonly settled?: ((outcome: string) => void) | undefined;
}

/** Commits that failed are looked at so often. */
const turnMs = 100;
const perRead = 2_000;
const warnEveryMs = 60_000;

export class CountedOnAcceptance {
  readonly #parts: CountedOnAcceptanceDependencies;
  readonly #warning: RareWarning;
  readonly #settlements: RegistrationResults<Registration>;
  readonly #pending = new Map<string, Registration>();
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(parts: CountedOnAcceptanceDependencies) {
    this.#parts = parts;
    this.#warning = new RareWarning(parts, warnEveryMs);
    this.#settlements = new RegistrationResults({
      store: parts.store,
      tiers: parts.tiers,
      nowMs: () => this.#nowMs(),
      ended: ({ signature, accountId }) => {
        this.#pending.delete(signature);
        parts.places.release(accountId);
      },
      failed: (error) => this.#failed(error),
      settled: parts.settled,
    });
  }

  /** Counts what is pending. Returns how many were not known; rejects with "store_failed". */
  async start(): Promise<number> {
    let found = 0;
    let behind: Registration | null = null;
    for (;;) {
      const page: Registration[] = await this.#parts.store.pending(behind, perRead);
      for (const registration of page) if (this.take(registration)) found++;
      behind = page.at(-1) ?? null;
      if (!behind) return found;
    }
  }

  /** Settles when what is being kept is kept. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
    await this.#settlements.stop();
  }

  /** False: it is known. */
  take(registration: Registration): boolean {
    if (this.#isClosed || this.#pending.has(registration.signature)) return false;
    this.#parts.places.take(registration.accountId);
    this.#count(registration);
    return true;
  }

  /** One that has a place. */
  add(registration: Registration): void {
    if (this.#pending.has(registration.signature)) {
      this.#parts.places.release(registration.accountId);
      return;
    }
    this.#count(registration);
  }

  /** What is pending, with its account: each has a place. */
  *pending(): Iterable<readonly [signature: string, accountId: string]> {
    for (const { signature, accountId } of this.#pending.values()) yield [signature, accountId];
  }

  get counts(): { readonly pending: number } {
    return { pending: this.#pending.size };
  }

  #count(registration: Registration): void {
    this.#pending.set(registration.signature, registration);
    this.#settlements.end(registration, { state: "counted", lamports: registration.lamports });
    this.#arm();
  }

  /** Nothing turns while nothing is pending. */
  #arm(): void {
    if (this.#isClosed || this.#pending.size === 0) return;
    this.#timer ??= this.#parts.clock.after(turnMs, () => {
      this.#timer = null;
      this.#settlements.turn(this.#nowMs());
      this.#arm();
    });
  }

  #failed(error: unknown): void {
    this.#warning.give(
      () => `registrations: ${messageOf(error)}; tried again, ${this.#pending.size} are pending`,
    );
  }

  #nowMs(): number {
    return Number(this.#parts.clock.monotonicNs() / 1_000_000n);
  }
}
