// The last minute of each destination's rate, for its small curve.
//
// Pure. Kept by live.ts, one value for each message; forgets destinations that are gone.

import type { DestinationView } from "../types.ts";

export const ratesMax = 60;

export class RateHistory {
  #rates = new Map<string, readonly number[]>();

  add(destinations: readonly Pick<DestinationView, "id" | "sending">[]): void {
    this.#rates = new Map(
      destinations.map(({ id, sending }) => [
        id,
        [...this.of(id), sending?.sentPerSecond ?? 0].slice(-ratesMax),
      ]),
    );
  }

  /** Oldest first. */
  of(id: string): readonly number[] {
    return this.#rates.get(id) ?? [];
  }
}
