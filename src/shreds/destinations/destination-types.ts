// Types of account destinations: addresses for shreds, and the proof that the account controls them.
//
// destinations.ts and ownership-proof.ts contain the rules, destination-store.ts the stored state. Times
// are wall milliseconds.

/** unproved: receives challenges only. active: receives the shreds of its account's tier. */
export const destinationStates = ["unproved", "active", "paused"] as const;
type DestinationState = (typeof destinationStates)[number];

/** datagram: the address returned the token. call: a call with the account's key. */
export const proofKinds = ["datagram", "call", "operator"] as const;
export type ProofKind = (typeof proofKinds)[number];

/** The reason of a pause. A new proof ends the first two, the operator the last. */
export const pauseReasons = ["icmp_unreachable", "proof_expired", "operator"] as const;
export type PauseReason = (typeof pauseReasons)[number];

export interface AccountDestination {
  /** "d_" and 12 hex digits. */
  readonly id: string;
  readonly accountId: string;
  readonly accountName: string;
  /** One of delivery.regions. */
  readonly region: string;
  /** "ip:port" in the form of formatEndpoint; one owner in the whole service. */
  readonly address: string;
  readonly createdMs: number;
  readonly state: DestinationState;
  /** Time of the last proof; null: never verified. */
  readonly provedMs: number | null;
  readonly provedBy: ProofKind | null;
  /** Time of its pause without a new proof; null: never (by the operator), or not verified. */
  readonly proofEndsMs: number | null;
  readonly pausedMs: number | null;
  readonly pauseReason: PauseReason | null;
  /** Experimental: also receives shreds that the relay recovered. */
  readonly recovered: boolean;
}

/** Settings of a destination that its account chooses. */
export interface DestinationChoices {
  readonly recovered: boolean;
}

/** Every promise settles when the change is durable, and may reject with "store_failed". */
export interface DestinationStore {
  /** All of them, oldest first. */
  all(): Promise<AccountDestination[]>;
  /** null: it does not exist any more. */
  find(id: string): Promise<AccountDestination | null>;
  /** Checked in the database, so that of two concurrent calls only one gets the address. */
  add(
    destination: AccountDestination,
    perAccountMax: number,
  ): Promise<"added" | "address_taken" | "too_many">;
  /**
   * Changes state, proof, pause and choices of a destination that still equals `before`; false: it was
   * removed or changed meanwhile.
   */
  update(destination: AccountDestination, before: AccountDestination): Promise<boolean>;
  /** False: it was already removed. */
  remove(id: string): Promise<boolean>;
  /**
   * Calls the listener after another process (or connection) changed these; null: any of them may have
   * changed. Returns a function that removes it.
   */
  onForeignChange(listener: (ids: readonly string[] | null) => void): () => void;
}

/** Destinations for the gateway; destinations.ts implements it. */
export interface Destinations {
  /** Oldest first. */
  ofAccount(accountId: string): readonly AccountDestination[];
  /** The reason why it is not served in any state, such as a denied range; or null. */
  refusalOf(id: string): string | null;
  /** Time of the next challenge that is planned without a request; null: none. */
  nextChallengeMs(id: string): number | null;
  /**
   * Unverified; the first challenge is on its way. Throws ShredwayError "address_invalid" (invalid
   * ip:port, or a rejected range), "destination_refused" (in use, too many, unknown region),
   * "rate_limited" (challenges).
   */
  add(
    account: { readonly id: string; readonly name: string },
    region: string,
    address: string,
    choices?: DestinationChoices,
  ): Promise<AccountDestination>;
  /**
   * Throws "destination_unknown", or "destination_refused" for a choice that this service does not offer.
   */
  update(accountId: string, id: string, choices: DestinationChoices): Promise<AccountDestination>;
  /** Throws ShredwayError "destination_unknown", also for a destination of another account. */
  remove(accountId: string, id: string): Promise<void>;
  /**
   * At most three more challenges, if no round is open. Throws "destination_unknown",
   * "destination_refused" (not served), "rate_limited".
   */
  challenge(accountId: string, id: string): Promise<AccountDestination>;
  /** The token of a challenge, 32 hex digits. Throws "destination_unknown", "proof_refused". */
  prove(accountId: string, id: string, token: string): Promise<AccountDestination>;
}
