// A gap in a stream whose client asked to drop messages instead of an end (subscription.ts).

export interface StreamGap {
  readonly count: number;
  /** null: the slots are not known, because the relay lost the messages. */
  readonly slots: { readonly first: bigint; readonly last: bigint } | null;
}

export function extended(gap: StreamGap | null, count: number, slot: bigint | null): StreamGap {
  const total = (gap?.count ?? 0) + count;
  const slots = gap?.slots ?? null;
  if (slot === null) return { count: total, slots };
  const { first, last } = slots ?? { first: slot, last: slot };
  return {
    count: total,
    slots: { first: slot < first ? slot : first, last: slot > last ? slot : last },
  };
}
