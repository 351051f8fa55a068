// Coverage: the destinations of accounts that receive shreds now, with their tiers.
//
// Called by app/shred-sales.ts after every change of a tier or a destination; its result goes into the
// relay's table unchanged. It excludes accounts without a tier.

/** A destination that is verified and not paused. */
interface OpenDestination {
  readonly id: string;
  readonly accountId: string;
  readonly accountName: string;
  /** "ip:port". */
  readonly address: string;
  readonly recovered: boolean;
}

interface CoveredDestination {
  /** The name in counters and logs. */
  readonly name: string;
  readonly address: string;
  readonly tier: string;
  readonly recovered: boolean;
}

/** In the order of `destinations`. */
export function coverageOf(
  destinations: readonly OpenDestination[],
  tierOf: (accountId: string) => string | null,
): CoveredDestination[] {
  return destinations.flatMap(({ id, accountId, accountName, address, recovered }) => {
    const tier = tierOf(accountId);
    return tier === null ? [] : [{ name: `${accountName}/${id}`, address, tier, recovered }];
  });
}
