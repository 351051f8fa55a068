// What the service answers, in TypeScript: the shapes of docs/gateway.md, docs/shreds.md, docs/tracker.md.
//
// Only types. Slots and amounts in lamports are bigint, for both are u64; times are ISO 8601 in UTC as they
// came. Texts whose choices may grow are plain strings.

/** Signed and serialised: bytes, or their base64 (or base58) text. */
export type TransactionInput = Uint8Array | string;

export const endStates = ["landed", "landed_failed", "expired", "superseded", "rejected"] as const;
export type EndState = (typeof endStates)[number];
export const submissionStates = ["open", ...endStates] as const;
export type SubmissionState = (typeof submissionStates)[number];

// ---- what became of a submission ----

/** One line of a timeline; a kind has the fields that it needs. */
export interface StatusEvent {
  /** received, held, queued, sent, acknowledged, refused, failed, dropped, seen, or an EndState. */
  readonly kind: string;
  readonly at: string;
  /** Since the receipt; not told by the stream. */
  readonly offsetMs?: number;
  readonly method?: string;
  readonly route?: string;
  readonly attempt?: number;
  readonly bytes?: number;
  readonly slot?: bigint | null;
  readonly leader?: string | null;
  readonly reason?: string;
  /** Of the chain, for landed_failed. */
  readonly err?: unknown;
  /** Superseded by this transaction. */
  readonly sibling?: string;
}

export interface TransactionStatus {
  readonly signature: string;
  readonly state: SubmissionState;
  readonly method: string;
  readonly bundleId: string | null;
  readonly receivedAt: string;
  /** Where it landed, or was seen last. */
  readonly slot: bigint | null;
  /** null while it is open. */
  readonly reason: string | null;
  readonly err: unknown;
  readonly events: readonly StatusEvent[];
}

/** What the stream tells. */
export interface StatusUpdate {
  readonly signature: string;
  readonly event: StatusEvent;
}

export interface BundleReceipt {
  readonly signatures: readonly string[];
  /** null: a proxy took the header away. */
  readonly bundleId: string | null;
}

export interface NonceInfo {
  /** In place of a recent blockhash. */
  readonly nonce: string;
  readonly nonceAccount: string;
  readonly nonceAuthority: string;
}

// ---- tips and regions ----

export interface Region {
  readonly name: string;
  readonly url: string | null;
  readonly isThis: boolean;
  readonly tipAddresses: readonly string[];
  readonly shredTipAddresses: readonly string[];
}

/** What landed tips of the last 15 minutes paid, in lamports. */
export interface TipSnapshot {
  readonly time: string;
  readonly windowStart: string;
  readonly p25: bigint;
  readonly p50: bigint;
  readonly p75: bigint;
  readonly p95: bigint;
  readonly p99: bigint;
  /** Landed tips that it is made of; 0: there never was one. */
  readonly count: bigint;
  /** Nothing landed in the last 15 minutes: the numbers are of an earlier time. */
  readonly stale: boolean;
}

// ---- tips for shreds ----

export interface TipRegistration {
  readonly transaction: TransactionInput;
  /** That triggered the transaction. */
  readonly slot: bigint | number;
}

export interface RegistrationReceipt {
  /** Signatures, in the order of the entries. */
  readonly accepted: readonly string[];
  readonly rejected: readonly {
    readonly index: number;
    readonly reason: string;
    readonly message: string;
  }[];
}

export interface Registration {
  readonly signature: string;
  readonly state: "pending" | "counted" | "dropped";
  readonly reason: string | null;
  readonly slot: bigint;
  readonly lamports: bigint;
  readonly countedLamports: bigint | null;
  readonly registeredAt: string;
  readonly settledAt: string | null;
  /** To ask on with. */
  readonly registeredMs: number;
}

export interface TierView {
  /** null: none. */
  readonly tier: string | null;
  readonly sumLamports: bigint;
  readonly windowHours: number;
  readonly thresholds: readonly {
    readonly tier: string;
    readonly thresholdLamports: bigint;
    readonly missingLamports: bigint;
  }[];
  /** null: the sum is enough for the tier. */
  readonly grace: { readonly since: string; readonly ends: string } | null;
  /** How many the account has. */
  readonly destinations: number;
}

export interface TierEvent {
  /** To ask on with. */
  readonly number: bigint;
  readonly at: string;
  /** upgraded, downgraded, grace_started or grace_cancelled. */
  readonly kind: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly sumLamports: bigint;
  readonly text: string;
}

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
  /** Why nothing is sent there whatever its state is. */
  readonly refusal: string | null;
}

// ---- alternative partners ----

export interface AltLeader {
  readonly pubkey: string;
  readonly leaderSlot: bigint;
  readonly contextSlot: bigint;
}
