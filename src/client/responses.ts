// Responses of the service: one type for each, shared by the gateway, this client and the portal.
//
// Only types, and the one place where a field of a response is declared: the gateway's writers and JSON
// schemas, the client's readers and the portal's page do not compile when they differ from it. The fields
// are documented in docs/gateway.md, docs/shreds.md and docs/tracker.md. Slots and lamports are u64, which
// each side holds as it needs: bigint in the client, bigint or number in the gateway, number in the
// portal's page. Times are ISO 8601 in UTC. Texts whose choices may grow are plain strings.

/** What the gateway writes: a u64 of its own or of a JSON text. */
export type WrittenInteger = bigint | number;

// ---- submissions ----

export type EndState = "landed" | "landed_failed" | "expired" | "superseded" | "rejected";
export type SubmissionState = "open" | EndState;

/** One line of a timeline; a kind has the fields that it needs. */
export interface StatusEvent<Integer = bigint> {
  /** received, held, queued, sent, acknowledged, refused, failed, dropped, seen, or an EndState. */
  readonly kind: string;
  readonly at: string;
  /** Since the receipt; absent in the stream. */
  readonly offsetMs?: number;
  readonly method?: string;
  readonly route?: string;
  readonly attempt?: number;
  readonly bytes?: number;
  readonly slot?: Integer | null;
  readonly leader?: string | null;
  readonly reason?: string;
  /** Error of the chain, for landed_failed. */
  readonly err?: unknown;
  /** Superseded by this transaction. */
  readonly sibling?: string;
}

/** getTransactionStatus */
export interface TransactionStatus<Integer = bigint> {
  readonly signature: string;
  readonly state: SubmissionState;
  readonly method: string;
  readonly bundleId: string | null;
  readonly receivedAt: string;
  /** Where it landed, or was seen last. */
  readonly slot: Integer | null;
  /** null while it is open. */
  readonly reason: string | null;
  readonly err: unknown;
  readonly events: readonly StatusEvent<Integer>[];
}

/** A message of the WebSocket /status. */
export interface StatusUpdate<Integer = bigint> {
  readonly signature: string;
  readonly event: StatusEvent<Integer>;
}

/** The answer to a filter that a client of /status sends. */
export interface FilterSet {
  /** How many signatures it names; null: every submission of the account. */
  readonly filter: { readonly signatures: number | null };
}

/** getNonce */
export interface NonceInfo {
  /** In place of a recent blockhash. */
  readonly nonce: string;
  readonly nonceAccount: string;
  readonly nonceAuthority: string;
}

// ---- tips and regions ----

/** getRegions */
export interface Region {
  readonly name: string;
  readonly url: string | null;
  /** This region gave the answer. */
  readonly isThis: boolean;
  readonly tipAddresses: readonly string[];
  readonly shredTipAddresses: readonly string[];
}

/** Percentiles of landed tips and how many tips they describe. */
export interface TipPercentiles<Integer = bigint> {
  readonly time: string;
  readonly p25: Integer;
  readonly p50: Integer;
  readonly p75: Integer;
  readonly p95: Integer;
  readonly p99: Integer;
  readonly count: Integer;
}

/** GET /tip_floor and /tip_stream, in the field names that block engines use; amounts in lamports or SOL. */
export interface TipFloorEntry<Integer = bigint> {
  readonly time: string;
  readonly landed_tips_25th_percentile: Integer;
  readonly landed_tips_50th_percentile: Integer;
  readonly landed_tips_75th_percentile: Integer;
  readonly landed_tips_95th_percentile: Integer;
  readonly landed_tips_99th_percentile: Integer;
  /** Only in SOL. */
  readonly ema_landed_tips_50th_percentile?: Integer;
  /** Landed tips in the window; 0: none ever landed. */
  readonly count: Integer;
  readonly window_start: string;
  /** Nothing landed in the window: the numbers describe an earlier one. */
  readonly stale: boolean;
}

// ---- tips for shreds ----

export interface RejectedRegistration {
  /** Position of the entry in the request. */
  readonly index: number;
  readonly reason: string;
  readonly message: string;
}

/** POST /shred-pay?verbose=true */
export interface RegistrationReceipt {
  /** Signatures, in the order of the entries. */
  readonly accepted: readonly string[];
  readonly rejected: readonly RejectedRegistration[];
}

/** getRegistrations */
export interface Registration<Integer = bigint> {
  readonly signature: string;
  readonly state: "pending" | "counted" | "dropped";
  readonly reason: string | null;
  readonly slot: Integer;
  readonly lamports: Integer;
  readonly countedLamports: Integer | null;
  readonly registeredAt: string;
  readonly settledAt: string | null;
  /** Pass it as `beforeMs` for the next page. */
  readonly registeredMs: number;
}

export interface TierThreshold<Integer = bigint> {
  readonly tier: string;
  readonly thresholdLamports: Integer;
  readonly missingLamports: Integer;
}

export interface GracePeriod {
  readonly since: string;
  readonly ends: string;
}

/** getTier */
export interface TierView<Integer = bigint> {
  /** null: none. */
  readonly tier: string | null;
  readonly sumLamports: Integer;
  readonly windowHours: number;
  readonly thresholds: readonly TierThreshold<Integer>[];
  /** null: the sum is enough for the tier. */
  readonly grace: GracePeriod | null;
  /** How many the account has. */
  readonly destinations: number;
}

/** getTierHistory */
export interface TierEvent<Integer = bigint> {
  /** Pass it as `before` for the next page. */
  readonly number: Integer;
  readonly at: string;
  /** upgraded, downgraded, grace_started or grace_cancelled. */
  readonly kind: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly sumLamports: Integer;
  readonly text: string;
}

/** getDestinations, addDestination, challengeDestination, proveDestination */
export interface Destination {
  readonly id: string;
  readonly region: string;
  /** "ip:port". */
  readonly address: string;
  readonly state: "unproved" | "active" | "paused";
  readonly createdAt: string;
  readonly provedAt: string | null;
  readonly provedBy: string | null;
  readonly proofEndsAt: string | null;
  readonly pausedAt: string | null;
  readonly pauseReason: string | null;
  /** Why nothing is sent there, whatever its state is. */
  readonly refusal: string | null;
}

// ---- alternative partners ----

/** GET /api/next_alt_validator */
export interface NextAltValidator<Integer = bigint> {
  readonly pubkey: string;
  readonly leader_slot: Integer;
  readonly context_slot: Integer;
}
