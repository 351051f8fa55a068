// Destinations of accounts: where a customer's shreds go, and how it is known that the place is his.
//
// Only types. The rules stand in destinations.ts and destination-proof.ts, what is kept in
// store/destination-store.ts. Times are wall milliseconds.

/** unproved: nothing is sent but challenges. active: gets what its account's tier buys. */
export const destinationStates = ["unproved", "active", "paused"] as const;
type DestinationState = (typeof destinationStates)[number];

/** datagram: the token came back from the address. call: with the account's key. */
export const proofKinds = ["datagram", "call", "operator"] as const;
export type ProofKind = (typeof proofKinds)[number];

/** Why it is paused. A new proof ends the first two, the operator the last. */
export const pauseReasons = ["icmp_unreachable", "proof_expired", "operator"] as const;
export type PauseReason = (typeof pauseReasons)[number];

export interface AccountDestination {
  /** "d_" and 12 hex digits. */
  readonly id: string;
  readonly accountId: string;
  readonly accountName: string;
  /** Of delivery.regions. */
  readonly region: string;
  /** "ip:port" as formatEndpoint writes it; one owner in the whole service. */
  readonly address: string;
  readonly createdMs: number;
  readonly state: DestinationState;
  /** Of the last proof; null: never proved. */
  readonly provedMs: number | null;
  readonly provedBy: ProofKind | null;
  /** When it pauses without a new proof; null: never (by the operator), or not proved. */
  readonly proofEndsMs: number | null;
  readonly pausedMs: number | null;
  readonly pauseReason: PauseReason | null;
}

/** Every promise settles when the change is durable, and may reject with "store_failed". */
export interface DestinationStore {
  /** All of them, oldest first. */
  all(): Promise<AccountDestination[]>;
  /** null: it is gone. */
  find(id: string): Promise<AccountDestination | null>;
  /** Checked in the database, so that two who ask at once cannot both have it. */
  add(
    destination: AccountDestination,
    perAccountMax: number,
  ): Promise<"added" | "address_taken" | "too_many">;
  /**
   * State, proof and pause of one that is there as `before`; false: it is gone, or somebody else changed
   * it meanwhile.
   */
  update(destination: AccountDestination, before: AccountDestination): Promise<boolean>;
  /** False: it is gone already. */
  remove(id: string): Promise<boolean>;
  /**
   * Told after another process (or connection) changed these; null: any of them may have been changed.
   * Returns how to end that.
   */
  onForeignChange(listener: (ids: readonly string[] | null) => void): () => void;
}

/** Destinations as the gateway sees them; destinations.ts is the real one. */
export interface Destinations {
  /** Oldest first. */
  ofAccount(accountId: string): readonly AccountDestination[];
  /** Why nothing is sent there whatever its state is, such as a range that is denied by now; or null. */
  refusalOf(id: string): string | null;
  /**
   * Unproved; the first challenge is on its way. Throws ShredwayError "address_invalid" (no ip:port, a
   * range that is refused), "destination_refused" (taken, too many, unknown region), "rate_limited" (of
   * challenges).
   */
  add(
    account: { readonly id: string; readonly name: string },
    region: string,
    address: string,
  ): Promise<AccountDestination>;
  /** Throws ShredwayError "destination_unknown", also for another account's. */
  remove(accountId: string, id: string): Promise<void>;
  /**
   * At most three more challenges, when none is under way. Throws "destination_unknown",
   * "destination_refused" (nothing is sent there), "rate_limited".
   */
  challenge(accountId: string, id: string): Promise<AccountDestination>;
  /** The token of a challenge, 32 hex digits. Throws "destination_unknown", "proof_refused". */
  prove(accountId: string, id: string, token: string): Promise<AccountDestination>;
}
