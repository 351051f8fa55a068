// Coverage: which destinations of accounts get shreds now, and of which tier?
//
// Called by app/shred-sales.ts whenever a tier or a destination changed; its result goes into the relay's
// table as it is. No account without a tier is in it.

/** A destination that is proved and not paused. */
interface OpenDestination {
  readonly id: string;
  readonly accountId: string;
  readonly accountName: string;
  /** "ip:port". */
  readonly address: string;
}

interface CoveredDestination {
  /** As counters and logs name it. */
  readonly name: string;
  readonly address: string;
  readonly tier: string;
}

/** In the order of `destinations`. */
export function coverageOf(
  destinations: readonly OpenDestination[],
  tierOf: (accountId: string) => string | null,
): CoveredDestination[] {
  return destinations.flatMap(({ id, accountId, accountName, address }) => {
    const tier = tierOf(accountId);
    return tier === null ? [] : [{ name: `${accountName}/${id}`, address, tier }];
  });
}
