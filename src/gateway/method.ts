// What a method of the gateway is, and what it may ask.
//
// Implemented by methods/*, gathered by methods/table.ts, called by exchange.ts and raw.ts.

import type { ApiKey, Scope } from "../accounts/types.ts";
import type { Json } from "../json-rpc/json-text.ts";
import type { Admission } from "./admission.ts";
import type { GatewayParts, GatewaySettings } from "./parts.ts";
import type { Room } from "./room.ts";

/** Switches that come with the URL. */
export interface UriOptions {
  readonly mevProtect: boolean;
  readonly swqosOnly: boolean;
  /** Of block engines: a transaction as a bundle of its own. */
  readonly bundleOnly: boolean;
}

/** Of the whole gateway. */
export interface Desk {
  readonly parts: GatewayParts;
  readonly settings: GatewaySettings;
  readonly admission: Admission;
  readonly room: Room;
  /** 0, 1, 2, …: for answers that begin elsewhere each time. */
  readonly nextTurn: () => number;
}

export interface Call extends Omit<Desk, "room"> {
  readonly key: ApiKey;
  readonly uri: UriOptions;
  /** Below /api/v1: answers as block engines give them. */
  readonly isBlockEngine: boolean;
  /** When the request came; wall time. */
  readonly receivedNs: bigint;
  /** Counts so many further calls of the key: each transaction is one. Throws "rate_limited". */
  takeMore(count: number): void;
  /** Goes into the header retry-after: for a method with limits of its own. */
  tellRetryAfter(seconds: number): void;
  /** Goes into the header x-bundle-id. */
  tellBundleId(id: string): void;
}

export interface Method {
  /** One of them is enough; empty: no key is needed, and no call is counted. */
  readonly scopes: readonly Scope[];
  readonly run: (call: Call, params: readonly Json[]) => unknown;
}

export type MethodTable = Readonly<Record<string, Method>>;
