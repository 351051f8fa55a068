// Tracker: which slots belong to alternative-partner leaders, now and next.
//
// Only types. Identities are base58.

export interface LeaderRecord {
  readonly pubkey: string;
  /** First slot of the member's window at or after the asked slot; inside a window the asked slot. */
  readonly leaderSlot: bigint;
  /** The slot that the tracker believes current; 0 while none is measured. */
  readonly contextSlot: bigint;
}

export interface Tracker {
  /** Members that lead in the present epoch; all members while that is not known. Sorted. */
  members(): readonly string[];
  /** All members, less denied ones: whom the alternative partner's routes may go to. */
  memberSet(): ReadonlySet<string>;
  /**
   * From the present slot on, or from `slot`. null: nobody is known, in this epoch's schedule and those after
   * it, or (without `slot`) the present slot is not known.
   */
  next(slot: bigint | null): LeaderRecord | null;
}
