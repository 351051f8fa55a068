// Rate history: the last minute of each destination's rate, for its sparkline.
//
// Pure. live.ts adds one value per message. Removed destinations are dropped.

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
