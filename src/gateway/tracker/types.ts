// Types of the tracker, which finds the slots of alternative-partner leaders.
//
// Identities are base58.

export interface LeaderRecord {
  readonly pubkey: string;
  /**
   * First slot of the member's window at or after the requested slot; within a window, the
   * requested slot.
   */
  readonly leaderSlot: bigint;
  /** The current slot of the tracker; 0 while it is unknown. */
  readonly contextSlot: bigint;
}

export interface Tracker {
  /** Members that lead in the current epoch, sorted; all members while that is unknown. */
  members(): readonly string[];
  /** All members without denied ones: allowed targets of the alternative partner's routes. */
  memberSet(): ReadonlySet<string>;
  /**
   * The next leading member from `slot`, or from the current slot. null: none is known in the known
   * schedules, or (without `slot`) the current slot is unknown.
   */
  next(slot: bigint | null): LeaderRecord | null;
}
