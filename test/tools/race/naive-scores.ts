// Naive statistics of a race, written without regard to speed, as the reference for the race
// scores.

export interface ReferenceShred {
  /** Times by feed; null if it never arrived. */
  readonly times: readonly (number | null)[];
  readonly isData: boolean;
  readonly set: number;
}

export interface ReferenceFeed {
  distinct: number;
  wins: number;
  ties: number;
  solo: number;
  sharedWins: number;
  lags: number[];
  setLags: number[];
  setWins: number;
}

function present(times: readonly (number | null)[]): number[] {
  return times.filter((time) => time !== null);
}

function raced(
  all: readonly (number | null)[],
  feed: number,
): { lag: number | null; won: boolean } {
  const own = all[feed];
  if (own === null || own === undefined) return { lag: null, won: false };
  const others = present(all.filter((_, other) => other !== feed));
  const best = Math.min(...others);
  return { lag: others.length === 0 ? null : own - best, won: others.every((time) => own < time) };
}

export function referenceFeeds(feeds: number, shreds: readonly ReferenceShred[]): ReferenceFeed[] {
  return Array.from({ length: feeds }, (_, feed) => {
    const own = shreds.filter(({ times }) => times[feed] !== null);
    const sets = [...new Set(shreds.map(({ set }) => set))].map((number) => {
      const inSet = shreds.filter(({ set }) => set === number);
      return Array.from({ length: feeds }, (_unused, each) => {
        const times = present(inSet.map(({ times: all }) => all[each] ?? null));
        return times.toSorted((a, b) => a - b)[31] ?? null;
      });
    });
    const setRaces = sets
      .map((ready) => raced(ready, feed))
      .filter((_race, i) => sets[i]?.[feed] !== null);
    return {
      distinct: own.length,
      wins: own.filter(({ times }) => raced(times, feed).won).length,
      ties: own.filter(({ times }) => {
        const all = present(times);
        const first = Math.min(...all);
        return times[feed] === first && all.filter((time) => time === first).length > 1;
      }).length,
      solo: own.filter(({ times }) => present(times).length === 1).length,
      sharedWins: own.filter(
        ({ times }) => present(times).length === feeds && raced(times, feed).won,
      ).length,
      lags: own.flatMap(({ times }) => raced(times, feed).lag ?? []).toSorted((a, b) => a - b),
      setLags: setRaces.flatMap(({ lag }) => lag ?? []).toSorted((a, b) => a - b),
      setWins: setRaces.filter(({ won }) => won).length,
    };
  });
}

/** Percentile by nearest rank. */
export function referencePercentile(sorted: readonly number[], p: number): number | null {
  return sorted[Math.max(1, Math.ceil((p / 100) * sorted.length)) - 1] ?? null;
}
