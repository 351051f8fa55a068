// The record of what one partner, or all leaders together, have received and answered.

/** The history of one transaction. */
export interface Reception {
  received: number;
  acknowledged: number;
  refused: number;
  refusedForGood: number;
}

export class PartnerRecord {
  readonly #receptions = new Map<string, Reception>();

  receptionOf(signature: string): Reception {
    const known = this.#receptions.get(signature);
    if (known) return known;
    const reception: Reception = {
      received: 0,
      acknowledged: 0,
      refused: 0,
      refusedForGood: 0,
    };
    this.#receptions.set(signature, reception);
    return reception;
  }
}
