// Types of everything that the gateway uses and does not own.
//
// The service passes the real objects, tests pass substitutes; each interface contains only what
// the gateway calls.

import type { AddressRange } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import type { CallParams } from "../../core/json-rpc/json-text.ts";
import type { NodeSockets } from "../../core/json-rpc/node.ts";
import type { Logger } from "../../core/log.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { StreamService } from "../../relay/streams/stream-service.ts";
import type { WriteLocks } from "../../relay/streams/write-locks.ts";
import type { Destinations } from "../../shreds/destinations/destination-types.ts";
import type { Registrar } from "../../shreds/registrations/registration-types.ts";
import type { TierRules, Tiers } from "../../shreds/tiers/types.ts";
import type { TipFloor, TipHistoryReader } from "../../tips/tip-types.ts";
import type { PublicKeys } from "../accounts/public-keys.ts";
import type { ApiKey } from "../accounts/types.ts";
import type {
  HttpHead,
  HttpRequest,
  HttpResponse,
  RefusalShape,
  WebSocketRoute,
} from "../http/types.ts";
import type { Nonces } from "../nonces/types.ts";
import type { StatementSigner } from "../receipts/types.ts";
import type { TakenRequest } from "../submission/taken-request.ts";
import type { BundleCommitments, Submissions, SubmitMethod } from "../submission/types.ts";
import type { Tracker } from "../tracker/types.ts";

/** A path and its handler. */
export interface Path {
  /** HTTP methods for the header Allow. */
  readonly methods: readonly string[];
  readonly handle: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>;
  /** Form of errors that arise before `handle` is called; absent: JSON-RPC. */
  readonly refusal?: RefusalShape;
}

/** Further paths on the gateway's listeners: portal, metrics, descriptions. */
export interface Pages {
  /** Paths for the list of known paths, without operator-only ones. */
  readonly listed: readonly string[];
  /** `head`: for paths that only some callers may see. */
  find(path: string, head: HttpHead): Path | undefined;
  /** The page to which a browser at "/" is redirected; the first one applies. */
  readonly home?: string;
  readonly webSockets: Readonly<Record<string, WebSocketRoute>>;
}

export interface Keys {
  /** Returns null for unknown, revoked and expired keys. `nowNs`: wall time. */
  find(text: string, nowNs: bigint): ApiKey | null;
  /** The same object as from `find`, until anything about the key changes; then null, or another one. */
  get(id: string, nowNs: bigint): ApiKey | null;
  /** `address`: 16 bytes. */
  allows(key: ApiKey, address: Uint8Array): boolean;
}

export interface LimitVerdict {
  readonly allowed: boolean;
  /** Burst size. */
  readonly limit: number;
  /** Whole calls left now. */
  readonly remaining: number;
  /** Seconds until the next call is allowed; 0: one is allowed now. */
  readonly retryAfterSeconds: number;
  /** Seconds until the whole burst is available again. */
  readonly resetSeconds: number;
}

interface RateLimits {
  /** Counts one call of the key. `nowNs`: monotonic time. */
  take(key: ApiKey, nowNs: bigint): LimitVerdict;
}

export interface TransactionInspector {
  /** Throws ShredwayError "transaction_invalid" or "transaction_version". */
  inspect(wire: Uint8Array): TransactionFacts;
}

interface SignatureVerifier {
  /**
   * Whether every signature is valid; null: the queue is full. `isBusy`: other submissions wait for the
   * event loop.
   */
  verify(wire: Uint8Array, isBusy: boolean): boolean | Promise<boolean> | null;
  /** Whether the caller may verify it on the event loop, which counts. Absent: never. */
  mayVerifyNow?(wire: Uint8Array, isBusy: boolean): boolean;
}

interface Base58 {
  /**
   * Returns null or undefined for an invalid text. The cost grows with the square of the length:
   * callers must bound it.
   */
  decode(text: string): Uint8Array | null | undefined;
  encode(bytes: Uint8Array): string;
}

export interface SimulationOptions {
  readonly commitment: "processed" | "confirmed" | "finalized";
  readonly minContextSlot: bigint | null;
}

export interface Preflight {
  /** Returns `value` of the node's response. Rejects with ShredwayError. */
  simulate(
    wire: Uint8Array,
    options: SimulationOptions,
  ): Promise<{ readonly err: unknown } & Readonly<Record<string, unknown>>>;
}

/** Methods that are forwarded to a node. */
export interface ReadMethods {
  has(method: string): boolean;
  /** Rejects with ShredwayError; "upstream_missing" without a node. */
  call(method: string, params: CallParams): Promise<unknown>;
}

/** Returns the caller's key, or the refusal. */
export type Authorise = (head: HttpHead) => { readonly key: ApiKey } | HttpResponse;

export interface Region {
  readonly name: string;
  readonly url: string | null;
  /** Base58; the region's own addresses or those of the service. */
  readonly tipAddresses: readonly string[];
  readonly shredTipAddresses: readonly string[];
}

export interface GatewaySettings {
  /** At least one; the first is the region of this machine. */
  readonly regions: readonly [Region, ...Region[]];
  /** A shred-tip address is configured that is not published, because another node does not know it. */
  readonly withholdsShredTips: boolean;
  readonly minimumTipLamports: bigint;
  /** Minimum tips of single methods; all others: `minimumTipLamports`. */
  readonly minimumTipLamportsByMethod: Readonly<Partial<Record<SubmitMethod, bigint>>>;
  /** Minimum priority fee of sendAlt in lamports per compute unit. */
  readonly partnerUnitLamports: bigint;
  readonly trustedProxies: readonly AddressRange[];
  /** Names of the methods that are passed on to the node. */
  readonly readMethods: ReadonlySet<string>;
}

/** Transactions that are sent to partners before they are recorded. */
interface FastSends {
  /** Whether the account may have further ones. */
  mayTake(accountId: string): boolean;
  /** Whether the transaction was submitted before. */
  isKnown(signature: string): boolean;
  /** Checks a transaction and sends it. null: it was not sent. */
  send(wire: Uint8Array): TakenRequest | null;
  /** Gives up the sends that no route adopted. */
  abandoned(taken: TakenRequest): void;
}

/** Everything that the sale of shreds needs. */
export interface ShredSales {
  readonly registrar: Registrar;
  readonly tiers: Tiers;
  /** The rules in force. */
  readonly tierRules: () => TierRules;
  readonly destinations: Destinations;
}

export interface GatewayDependencies {
  readonly clock: Clock;
  readonly log?: Logger;
  readonly keys: Keys;
  readonly publicKeys: Pick<PublicKeys, "find" | "apiKeyOf" | "ofAccount" | "register" | "remove">;
  readonly limits: RateLimits;
  readonly inspector: TransactionInspector;
  readonly verifier: SignatureVerifier;
  readonly base58: Base58;
  readonly submissions: Submissions;
  /** Absent: routes send every transaction. */
  readonly fastSends?: FastSends;
  readonly bundleCommitments: BundleCommitments;
  readonly signer: StatementSigner;
  /** null: no node is configured; `skipPreflight: false` has no effect. */
  readonly preflight: Preflight | null;
  readonly reads: ReadMethods;
  /** null: no node is configured; subscriptions are refused. */
  readonly sockets: NodeSockets | null;
  /** null: this service does not sell shreds. */
  readonly shreds: ShredSales | null;
  /** null: this service does not publish tip statistics. */
  readonly tipFloor: TipFloor | null;
  readonly tipHistory: TipHistoryReader | null;
  /** null: no node is configured; nonce values are unknown. */
  readonly nonces: Nonces | null;
  readonly tracker: Tracker;
  /** Write locks of accounts in recent blocks; undefined: the relay decodes no transactions. */
  readonly writeLocks?: () => Pick<WriteLocks, "locksOf"> | undefined;
  /** Decoded streams on WebSockets and transaction pushes; undefined: they are off. */
  readonly streams?: () => Pick<StreamService, "openSocket" | "pushes" | "snapshot"> | undefined;
  /** Searched in this order for paths that the gateway does not serve. */
  readonly pages: readonly Pages[];
  /** The current slot; null: unknown. */
  slot(): bigint | null;
  /** Calls `action` in the next turn of the event loop. Default: setImmediate. */
  readonly inNextTurn?: (action: () => void) => void;
}
