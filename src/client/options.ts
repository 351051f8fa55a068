// Options of the client and of its calls, and the query of the URL that some of them form.

import type { SocketConstructor } from "./socket.ts";
import type { CallOptions } from "./transport.ts";

export interface ShredwayClientOptions {
  /** URL of the gateway. It may contain the key: "https://host/relay?api-key=…". */
  readonly url: string;
  /** Default: the key in `url`. Health, tip statistics and the tracker need no key. */
  readonly apiKey?: string;
  /** Default: the runtime's implementation. */
  readonly fetch?: typeof fetch;
  /** Default: the runtime's implementation. Node 20 has none: pass that of the package ws. */
  readonly WebSocket?: SocketConstructor;
  /** Limit of each request in milliseconds, up to the last byte of its response. Default 10,000. */
  readonly timeoutMs?: number;
  /** Number of retries of calls that change nothing. Default 0. */
  readonly readRetries?: number;
}

/** `encoding` of texts. If absent, the service detects it. Bytes are sent as base64. */
interface EncodingOptions {
  readonly encoding?: "base64" | "base58";
}

interface ReceiptOptions {
  /**
   * Requests a signed receipt and is called with it before the call returns, see verifyReceipt. null: the
   * submission was accepted, but the response contains no receipt; call getReceipt.
   */
  readonly onReceipt?: ((receipt: string | null) => void) | undefined;
}

/** Options of every submission. */
export interface SubmissionOptions extends CallOptions, RouteOptions, ReceiptOptions {}

interface ProtectionOptions {
  /** Use only routes with MEV protection. */
  readonly mevProtect?: boolean;
}

interface RouteOptions extends ProtectionOptions {
  /** Use only staked partners. */
  readonly swqosOnly?: boolean;
}

export interface SendTransactionOptions
  extends CallOptions,
    EncodingOptions,
    RouteOptions,
    ReceiptOptions {
  /** Default true, unlike stock clients: a simulation may take longer than the rest of a slot. */
  readonly skipPreflight?: boolean;
  /** Commitment of the state for the preflight. Default: finalized. */
  readonly preflightCommitment?: "processed" | "confirmed" | "finalized";
  /**
   * Number of resends by the service; 0: it sends once. If absent, it resends until the final
   * status.
   */
  readonly maxRetries?: number;
  /** The call fails while the current slot is lower. */
  readonly minContextSlot?: bigint | number;
}

export interface SendBundleOptions
  extends CallOptions,
    EncodingOptions,
    ProtectionOptions,
    ReceiptOptions {
  readonly revertProtection?: boolean;
}

export interface SendPairOptions
  extends CallOptions,
    EncodingOptions,
    RouteOptions,
    ReceiptOptions {}
export interface SendBatchOptions
  extends CallOptions,
    EncodingOptions,
    RouteOptions,
    ReceiptOptions {}

export interface SendAltOptions
  extends CallOptions,
    EncodingOptions,
    ProtectionOptions,
    ReceiptOptions {
  /**
   * Fall back to the routes of sendTransaction if no partner is the leader or accepts the
   * transaction.
   */
  readonly enableFallback: boolean;
  readonly revertProtection: boolean;
}

export interface RegisterTipsOptions extends CallOptions {
  /** Checks everything and stores nothing. */
  readonly dryRun?: boolean;
}

export interface TipAccountOptions extends CallOptions {
  /** Default: rotation. */
  readonly orderBy?: "rotation" | "contention";
}

export interface GetReceiptOptions extends CallOptions {
  /** Default: final. */
  readonly statement?: "final" | "accepted";
}

export interface TransactionPushOptions extends CallOptions {
  /** Seconds until the push ends unless it is renewed: 1 to 600. Default 60. */
  readonly leaseSeconds?: number;
  /** false: the destination receives no shreds while the push is open. If absent, as before. */
  readonly shreds?: boolean;
}
