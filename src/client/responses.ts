// Responses of the service: one type for each, shared by the gateway, this client and the portal.
//
// Only types, and the only place that declares the fields of responses. If the gateway's writers
// and JSON schemas, the client's readers or the portal's page differ from it, they do not compile.
// docs/api.md lists all fields; transaction-status.md, shreds-api.md and tracker.md explain them. Slots and
// lamports are u64: bigint in the client, bigint or number in the gateway, number in the portal's
// page. Times are ISO 8601 in UTC. Fields whose values may grow in number are plain strings.

/** A u64 that the gateway writes: a value of its own, or one inside a JSON text. */
export type WrittenInteger = bigint | number;

// ---- submissions ----

export type EndState = "landed" | "landed_failed" | "expired" | "superseded" | "rejected";
export type SubmissionState = "open" | EndState;

/** One entry of a timeline. Each kind has its own set of fields. */
export interface StatusEvent<Integer = bigint> {
  /**
   * received, held, queued, sent, acknowledged, refused, failed, dropped, auction_lost, seen,
   * withdrawn, or an EndState.
   */
  readonly kind: string;
  readonly at: string;
  /** Milliseconds since the receipt; absent in the stream. */
  readonly offsetMs?: number;
  readonly method?: string;
  /** In `received`: sum of the transaction's transfers to tip addresses; absent in older records. */
  readonly tipLamports?: Integer;
  /**
   * In `received`: compute unit price x limit, rounded up to lamports; for v1 the fee of its
   * configuration; absent in older records.
   */
  readonly priorityFeeLamports?: Integer;
  /** "quic", or "websocket" for binary messages; otherwise absent. */
  readonly ingress?: string;
  readonly route?: string;
  readonly attempt?: number;
  readonly bytes?: number;
  readonly slot?: Integer | null;
  readonly leader?: string | null;
  readonly reason?: string;
  /** Error of the chain, for landed_failed. */
  readonly err?: unknown;
  /** Transaction that supersedes this one. */
  readonly sibling?: string;
}

/** Response of getTransactionStatus. */
export interface TransactionStatus<Integer = bigint> {
  readonly signature: string;
  readonly state: SubmissionState;
  readonly method: string;
  readonly bundleId: string | null;
  readonly receivedAt: string;
  /** Slot in which it landed or was last seen. */
  readonly slot: Integer | null;
  /** null while the submission is open. */
  readonly reason: string | null;
  readonly err: unknown;
  readonly events: readonly StatusEvent<Integer>[];
}

/** The final state of a transaction, in a receipt of getReceipt. */
export interface ReceiptEnd<Integer = bigint> {
  readonly state: EndState;
  readonly at: string;
  readonly reason: string;
  /** Slot in which it landed; null: it did not land, or the slot is unknown. */
  readonly slot: Integer | null;
  /** Error of the chain, for landed_failed. */
  readonly err: unknown;
  /** Transaction that superseded this one; null: none is known. */
  readonly sibling: string | null;
}

/** One transaction of a receipt. */
export interface ReceiptTransaction<Integer = bigint> {
  readonly signature: string;
  readonly receivedAt: string;
  /** Sum of its transfers to tip addresses; null: accepted by an earlier version, which did not record it. */
  readonly tipLamports: Integer | null;
  /** Routes whose queues have taken it so far, in this order. */
  readonly routes: readonly string[];
  /** Why it waits for MEV protection; null: it does not wait. */
  readonly held: string | null;
  /** null in a receipt of the acceptance. */
  readonly end: ReceiptEnd<Integer> | null;
}

/** The signed content of a receipt. */
export interface Receipt<Integer = bigint> {
  /** accepted: the service took the submission; final: the transaction has ended. */
  readonly statement: "accepted" | "final";
  /** When it was signed, in seconds since 1970. */
  readonly iat: number;
  /** The same time in milliseconds, ISO 8601 in UTC. */
  readonly time: string;
  /** Current slot at that time; null: unknown. */
  readonly slot: Integer | null;
  readonly method: string;
  readonly bundleId: string | null;
  readonly transactions: readonly ReceiptTransaction<Integer>[];
}

/** A public key of /.well-known/shredway-keys.json: a JWK (RFC 7517). */
export interface PublishedKey {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  /** The 32 bytes of the key in base64url. */
  readonly x: string;
  /** Thumbprint of the key (RFC 7638). */
  readonly kid: string;
  readonly alg: "EdDSA";
  readonly use: "sig";
  /** Start of its use, in seconds since 1970. */
  readonly iat: number;
  /** End of its use; absent: it is in use. */
  readonly exp?: number;
}

/** Response of /.well-known/shredway-keys.json: a JWK Set (RFC 7517). */
export interface KeySet {
  readonly keys: readonly PublishedKey[];
}

/** Message of the WebSocket /status. */
export interface StatusUpdate<Integer = bigint> {
  readonly signature: string;
  readonly event: StatusEvent<Integer>;
}

/** Message of the WebSocket /status: submissions of a connection exceeded the rate of its key. */
export interface RateLimitNotice {
  readonly rateLimited: {
    readonly at: string;
    /** "quic" or "websocket". */
    readonly ingress: string;
    /** ALPN protocol of the connection. */
    readonly protocol: string;
    /** Address of the client. */
    readonly address: string;
    /** Public name of the API key, "k_…". */
    readonly apiKey: string;
    /** Number of rejected submissions since the last message about this connection. */
    readonly submissions: number;
    /** The last response, which contains the limit. */
    readonly message: string;
  };
}

/** Response to a filter that a client of /status sends. */
export interface FilterSet {
  /** Number of signatures in the filter; null: every submission of the account. */
  readonly filter: { readonly signatures: number | null };
}

/** Response of getNonce. */
export interface NonceInfo {
  /** Use this in place of a recent blockhash. */
  readonly nonce: string;
  readonly nonceAccount: string;
  readonly nonceAuthority: string;
}

// ---- tips and regions ----

/** Response of getRegions. */
export interface Region {
  readonly name: string;
  readonly url: string | null;
  /** This region sent the response. */
  readonly isThis: boolean;
  readonly tipAddresses: readonly string[];
  readonly shredTipAddresses: readonly string[];
}

/** Percentiles of landed tips and the number of these tips. */
export interface TipPercentiles<Integer = bigint> {
  readonly time: string;
  readonly p25: Integer;
  readonly p50: Integer;
  readonly p75: Integer;
  readonly p95: Integer;
  readonly p99: Integer;
  readonly count: Integer;
}

/** With the field names of block engines. Amounts in lamports or SOL. */
export interface TipPercentileFields<Integer = bigint> {
  readonly landed_tips_25th_percentile: Integer;
  readonly landed_tips_50th_percentile: Integer;
  readonly landed_tips_75th_percentile: Integer;
  readonly landed_tips_95th_percentile: Integer;
  readonly landed_tips_99th_percentile: Integer;
}

/** Response of GET /tip_floor and message of /tip_stream. */
export interface TipFloorEntry<Integer = bigint> extends TipPercentileFields<Integer> {
  readonly time: string;
  /** Present only in SOL. */
  readonly ema_landed_tips_50th_percentile?: Integer;
  /** Number of landed tips in the window; 0: no tip has ever landed. */
  readonly count: Integer;
  readonly window_start: string;
  /** True if no tip landed in the window; the numbers then describe an earlier window. */
  readonly stale: boolean;
  /** Only with `signed=1`: the current slot at the refresh; null: unknown. */
  readonly newest_slot?: Integer | null;
}

/** Response of GET /tip_floor/history. */
export interface TipHistoryView<Integer = bigint> {
  readonly period: "24h" | "7d";
  /** Unit of the percentiles. */
  readonly unit: "lamports" | "sol";
  /** Distance of the entries. */
  readonly resolution_seconds: Integer;
  /** `time` of the newest entry with landed tips; null: none in the period. */
  readonly newest: string | null;
  /** True if no tip landed in the last quarter hour, or the last refresh is missing. */
  readonly stale: boolean;
  /** Only with `signed=1`: the current slot when the response was signed; null: unknown. */
  readonly newest_slot?: Integer | null;
  /** Ascending. A quarter hour without a refresh, as while the service was down, is missing. */
  readonly entries: readonly TipHistoryEntry<Integer>[];
}

export interface TipHistoryEntry<Integer = bigint> {
  /** Time of the refresh; the entry covers the 15 minutes before it. */
  readonly time: string;
  /** Number of landed tips. */
  readonly count: Integer;
  /** Null: no tip landed. */
  readonly percentiles: TipPercentileFields<Integer> | null;
}

// ---- tips for shreds ----

export interface RejectedRegistration {
  /** Position of the entry in the request. */
  readonly index: number;
  readonly reason: string;
  readonly message: string;
}

/** Response of POST /shred-pay?verbose=true. */
export interface RegistrationReceipt {
  /** Signatures in the order of the entries. */
  readonly accepted: readonly string[];
  readonly rejected: readonly RejectedRegistration[];
}

/** Response of getRegistrations. */
export interface Registration<Integer = bigint> {
  readonly signature: string;
  readonly state: "pending" | "counted" | "dropped";
  readonly reason: string | null;
  readonly slot: Integer;
  readonly lamports: Integer;
  readonly countedLamports: Integer | null;
  readonly registeredAt: string;
  readonly settledAt: string | null;
  /** How the payer assigned the tip to the account; null: not at all, and the payer may claim it. */
  readonly proof: string | null;
  /** Pass this as `beforeMs` to get the next page. */
  readonly registeredMs: number;
}

export interface TierThreshold<Integer = bigint> {
  readonly tier: string;
  readonly thresholdLamports: Integer;
  readonly missingLamports: Integer;
}

/** The values that name the account in a tip, so that nobody else can register it. */
export interface TipProof {
  /** Public id of the account, for tipProofMessage. */
  readonly account: string;
  /** Word of a memo in the transaction. */
  readonly memo: string;
  /** Public key among the static keys of the transaction. */
  readonly referenceKey: string;
}

export interface GracePeriod {
  readonly since: string;
  readonly ends: string;
}

/** Response of getTier. */
export interface TierView<Integer = bigint> {
  /** null: no tier. */
  readonly tier: string | null;
  readonly sumLamports: Integer;
  readonly windowHours: number;
  readonly thresholds: readonly TierThreshold<Integer>[];
  /** null: the total is sufficient for the tier. */
  readonly grace: GracePeriod | null;
  /** Number of destinations of the account. */
  readonly destinations: number;
  readonly tipProof: TipProof;
}

/** Response of getTierHistory. */
export interface TierEvent<Integer = bigint> {
  /** Pass this as `before` to get the next page. */
  readonly number: Integer;
  readonly at: string;
  /** One of upgraded, downgraded, grace_started, grace_cancelled and tip_claimed. */
  readonly kind: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly sumLamports: Integer;
  readonly text: string;
}

/** Response of getDestinations and of the methods that change a destination. */
export interface Destination {
  readonly id: string;
  readonly region: string;
  /** Address in the form "ip:port". */
  readonly address: string;
  readonly state: "unproved" | "active" | "paused";
  readonly createdAt: string;
  readonly provedAt: string | null;
  readonly provedBy: string | null;
  readonly proofEndsAt: string | null;
  readonly pausedAt: string | null;
  readonly pauseReason: string | null;
  /** Reason why no shred is sent to it, independent of its state. */
  readonly refusal: string | null;
  /** Experimental: also receives shreds that the relay recovered. */
  readonly recovered: boolean;
  /** Time of the next challenge that the service sends without a request; null: none is planned. */
  readonly nextChallengeAt: string | null;
  /** The step that starts or resumes the shreds, such as a challenge; null: nothing is needed. */
  readonly advice: string | null;
}

// ---- transaction pushes ----

/** Parameter of startTransactionPush. All conditions must hold; absent ones match everything. */
export interface TransactionPushFilter {
  /** true: votes only; false: no votes. */
  readonly vote?: boolean;
  /** Base58. */
  readonly signature?: string;
  /** Base58: at least one of `include`, none of `exclude`, all of `required`. */
  readonly accounts?: {
    readonly include?: readonly string[];
    readonly exclude?: readonly string[];
    readonly required?: readonly string[];
  };
}

/** Response of startTransactionPush, and an open push in getTransactionPushes. */
export interface TransactionPush {
  /** Id of the destination. */
  readonly destination: string;
  readonly address: string;
  /** The tier whose sources deliver its transactions. */
  readonly tier: string;
  /** 16 hex digits: bytes 8 to 15 of each of its datagrams. */
  readonly streamId: string;
  readonly vote: boolean | null;
  readonly signature: string | null;
  /** Numbers of accounts in the filter. */
  readonly accounts: {
    readonly include: number;
    readonly exclude: number;
    readonly required: number;
  };
  readonly startedAt: string;
  /** It ends then, unless startTransactionPush is called again. */
  readonly endsAt: string;
  /** Whether the destination also receives shreds. */
  readonly shreds: boolean;
  /** Sequence of the next datagram. */
  readonly nextSequence: number;
  /** Sent transactions and withdrawals. */
  readonly matched: number;
  /** Sent datagrams of every kind. */
  readonly sent: number;
  readonly sentBytes: number;
  /** Transactions that are too long for a datagram. */
  readonly skipped: number;
  /** Messages that the service could not send: too many, or the relay was too busy. */
  readonly dropped: number;
  /** Datagrams that the kernel refused. */
  readonly failed: number;
  /** Mean delay from the last shred to the socket; null: nothing was sent. */
  readonly delayNs: number | null;
}

/** A push that has ended, in getTransactionPushes. */
export interface EndedTransactionPush {
  readonly address: string;
  readonly tier: string;
  readonly startedAt: string;
  readonly endedAt: string;
  /** One of client, lease_expired, destination_inactive, revoked, tier_changed and closing. */
  readonly reason: string;
  readonly text: string;
  readonly matched: number;
  readonly sent: number;
}

/** Response of getTransactionPushes. */
export interface TransactionPushes {
  readonly open: readonly TransactionPush[];
  /** The last ones of the account on this node, newest first. */
  readonly ended: readonly EndedTransactionPush[];
}

// ---- public keys ----

/** Response of registerPublicKey. */
export interface RegisteredKey {
  /** Base58. */
  readonly publicKey: string;
  readonly purpose: "tpu" | "shredstream";
  /** Id of the API key whose rights and limits it has. */
  readonly apiKey: string;
  /** "ended": its API key was revoked, has expired or lacks the scope. */
  readonly state: "active" | "ended";
  readonly registeredAt: string;
}

/** Response of getPublicKeys. */
export interface RegisteredKeys {
  /** Id of the account, for the text that the key signs. */
  readonly account: string;
  /** Oldest first. */
  readonly publicKeys: readonly RegisteredKey[];
}

// ---- alternative partners ----

/** Response of GET /api/next_alt_validator. */
export interface NextAltValidator<Integer = bigint> {
  readonly pubkey: string;
  readonly leader_slot: Integer;
  readonly context_slot: Integer;
}
