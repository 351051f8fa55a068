// What each call of the client takes besides its parameters.
//
// Only types.

import type { SocketConstructor } from "./socket.ts";
import type { CallOptions } from "./transport.ts";

export interface ShredwayClientOptions {
  /** Of the gateway, also as the operator gives it: "https://host/relay?api-key=…". */
  readonly url: string;
  /** Default: the one in `url`. Health, tip statistics and the tracker need none. */
  readonly apiKey?: string;
  readonly fetch?: typeof fetch;
  /** Default: the runtime's own. Node 20 has none: pass the one of the package ws. */
  readonly WebSocket?: SocketConstructor;
  /** Of each request. Default 10,000. */
  readonly timeoutMs?: number;
  /** How often a call that changes nothing is sent again. Default 0. */
  readonly readRetries?: number;
}

/** `encoding` of texts; without it the service looks. Bytes are sent as base64. */
interface EncodingOptions {
  readonly encoding?: "base64" | "base58";
}

interface ProtectionOptions {
  /** Only by routes that keep what they get. */
  readonly mevProtect?: boolean;
}

export interface RouteOptions extends ProtectionOptions {
  /** Only by staked partners. */
  readonly swqosOnly?: boolean;
}

export interface SendTransactionOptions extends CallOptions, EncodingOptions, RouteOptions {
  /** Default true, unlike stock clients: a simulation takes longer than a slot may have left. */
  readonly skipPreflight?: boolean;
  readonly preflightCommitment?: "processed" | "confirmed" | "finalized";
  /** By the service; 0: it sends once. Absent: until its end. */
  readonly maxRetries?: number;
  readonly minContextSlot?: bigint | number;
}

export interface SendBundleOptions extends CallOptions, EncodingOptions, ProtectionOptions {
  readonly revertProtection?: boolean;
}

export interface SendPairOptions extends CallOptions, EncodingOptions, RouteOptions {}
export interface SendBatchOptions extends CallOptions, EncodingOptions, RouteOptions {}

export interface SendAltOptions extends CallOptions, EncodingOptions, ProtectionOptions {
  /** By the routes of sendTransaction when no partner leads or takes it. */
  readonly enableFallback: boolean;
  readonly revertProtection: boolean;
}

export interface RegisterTipsOptions extends CallOptions {
  /** Checks everything and keeps nothing. */
  readonly dryRun?: boolean;
}
