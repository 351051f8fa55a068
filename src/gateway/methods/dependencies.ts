// What the gateway is made of: everything that it asks and does not own.
//
// Only types. Handed in by the service, by tests as stand-ins; each is the smallest face of the
// thing behind it.

import type { AddressRange } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { NodeSockets } from "../../core/json-rpc/node.ts";
import type { Logger } from "../../core/log.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { Destinations } from "../../shreds/destinations/destination-types.ts";
import type { Registrar } from "../../shreds/registrations/registration-types.ts";
import type { TierRules, Tiers } from "../../shreds/tiers/types.ts";
import type { TipFloor } from "../../tips/tip-types.ts";
import type { ApiKey } from "../accounts/types.ts";
import type { HttpHead, HttpRequest, HttpResponse, WebSocketRoute } from "../http/types.ts";
import type { Nonces } from "../nonces/types.ts";
import type { BundleCommitments, Submissions } from "../submission/types.ts";
import type { Tracker } from "../tracker/types.ts";

/** A path, and what answers it. */
export interface Path {
  /** As the header Allow lists them. */
  readonly methods: readonly string[];
  readonly handle: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>;
}

/** Paths that are answered on the gateway's listeners by somebody else: portal, metrics, descriptions. */
export interface Pages {
  /** As lists of paths name them; nothing that is only for operators. */
  readonly listed: readonly string[];
  /** `head`: for paths that not everybody may know of. */
  find(path: string, head: HttpHead): Path | undefined;
  /** Where a browser is sent that asks for "/"; the first one holds. */
  readonly home?: string;
  readonly webSockets: Readonly<Record<string, WebSocketRoute>>;
}

export interface Keys {
  /** null alike for unknown, revoked and expired ones. Wall time. */
  find(text: string, nowNs: bigint): ApiKey | null;
  /** 16 bytes. */
  allows(key: ApiKey, address: Uint8Array): boolean;
}

export interface LimitVerdict {
  readonly allowed: boolean;
  /** Calls of a full allowance. */
  readonly limit: number;
  /** Whole calls left now. */
  readonly remaining: number;
  /** Until one more call is allowed; 0 when one is. */
  readonly retryAfterSeconds: number;
  /** Until all calls of the burst are allowed again. */
  readonly resetSeconds: number;
}

interface RateLimits {
  /** Monotonic time. Takes one call from the key's allowance. */
  take(key: ApiKey, nowNs: bigint): LimitVerdict;
}

export interface TransactionInspector {
  /** Throws ShredwayError "transaction_invalid" or "transaction_version". */
  inspect(wire: Uint8Array): TransactionFacts;
}

export interface SignatureVerifier {
  /** Whether every signature holds; null: no room for one more. */
  verify(wire: Uint8Array): Promise<boolean> | null;
}

interface Base58 {
  /** Nothing when the text is none. Cost grows with the square: callers bound the length. */
  decode(text: string): Uint8Array | null | undefined;
  encode(bytes: Uint8Array): string;
}

export interface SimulationOptions {
  readonly commitment: "processed" | "confirmed" | "finalized";
  readonly minContextSlot: bigint | null;
}

export interface Preflight {
  /** `value` of the node's answer. Rejects with ShredwayError. */
  simulate(
    wire: Uint8Array,
    options: SimulationOptions,
  ): Promise<{ readonly err: unknown } & Readonly<Record<string, unknown>>>;
}

/** Methods that are passed on to a node. */
export interface ReadMethods {
  has(method: string): boolean;
  /** Rejects with ShredwayError, "upstream_missing" when there is no node. */
  call(method: string, params: readonly Json[]): Promise<unknown>;
}

/** Who asks, or the answer that refuses him. */
export type Authorise = (head: HttpHead) => { readonly key: ApiKey } | HttpResponse;

export interface Region {
  readonly name: string;
  readonly url: string | null;
  /** Base58, its own or the service's. */
  readonly tipAddresses: readonly string[];
  readonly shredTipAddresses: readonly string[];
}

export interface GatewaySettings {
  /** At least one; the first is this machine's. */
  readonly regions: readonly [Region, ...Region[]];
  readonly minimumTipLamports: bigint;
  /** Lamports per compute unit: least priority fee of what goes to alternative partners. */
  readonly partnerUnitLamports: bigint;
  readonly trustedProxies: readonly AddressRange[];
}

/** From a tip to the shreds it buys. */
export interface ShredSales {
  readonly registrar: Registrar;
  readonly tiers: Tiers;
  /** Those in force. */
  readonly tierRules: () => TierRules;
  readonly destinations: Destinations;
}

export interface GatewayDependencies {
  readonly clock: Clock;
  readonly log?: Logger;
  readonly keys: Keys;
  readonly limits: RateLimits;
  readonly inspector: TransactionInspector;
  readonly verifier: SignatureVerifier;
  readonly base58: Base58;
  readonly submissions: Submissions;
  readonly bundleCommitments: BundleCommitments;
  /** null: no node is configured, `skipPreflight: false` is taken as true. */
  readonly preflight: Preflight | null;
  readonly reads: ReadMethods;
  /** null: no node is configured, subscriptions are refused. */
  readonly sockets: NodeSockets | null;
  /** What registered tips buy; null: this service registers none. */
  readonly shreds: ShredSales | null;
  /** null: this service tells none. */
  readonly tipFloor: TipFloor | null;
  /** null: no node is configured, nobody can tell a nonce's value. */
  readonly nonces: Nonces | null;
  readonly tracker: Tracker;
  /** Asked in this order for paths that the gateway does not have. */
  readonly pages: readonly Pages[];
  /** The present slot; null: unknown. */
  slot(): bigint | null;
}
