// Dependencies of the portal: interfaces of the components that it uses and does not own.
//
// Types only. compose-portal.ts passes them in.

import type { Clock } from "../../core/clock.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { Logger } from "../../core/log.ts";
import type { Problem } from "../../core/recent-warnings.ts";
import type { ConnectionSnapshot } from "../../gateway/accounts/connection-records.ts";
import type { ApiKey, KeyStore } from "../../gateway/accounts/types.ts";
import type { HttpHead, HttpResponse, RefusalShape } from "../../gateway/http/types.ts";
import type { ShredSales } from "../../gateway/methods/dependencies.ts";
import type {
  RouteSnapshot,
  SubmissionLister,
  Submissions,
} from "../../gateway/submission/types.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import type { SubscriptionStatus } from "../../relay/shredstream/subscription-status.ts";
import type { TraceDelays } from "../../relay/shredstream/trace-delays.ts";
import type { StreamSnapshot } from "../../relay/streams/stream-records.ts";
import type { TipFloor, TipHistoryReader } from "../../tips/tip-types.ts";
import type { SessionKeys } from "./sessions.ts";
import type { ServiceView } from "./types.ts";

/** The part of the gateway that the portal uses. */
export interface PortalGateway {
  /** Client address, 16 bytes. */
  addressOf(head: HttpHead): Uint8Array;
  isProxied(head: HttpHead): boolean;
  /** Checks a key that a user entered. Invalid keys count against the client's address. */
  check(
    head: HttpHead,
    text: string,
    refuse: RefusalShape,
  ): { readonly key: ApiKey } | { readonly key?: undefined; readonly refusal: HttpResponse };
  /** Counts one call against the key's rate limit. Throws ShredwayError "rate_limited". */
  admit(key: ApiKey, method: string): void;
  /** Runs a gateway method with this key. Throws or rejects with ShredwayError. */
  dispatch(key: ApiKey, method: string, params: readonly Json[]): unknown;
  /** Wall time of the last request with the key at this node since its start; null: none. */
  lastUseNs(keyId: string): bigint | null;
  /** Limit on the calls with the key. */
  limitOf(key: ApiKey): { readonly requestsPerSecond: number; readonly burst: number };
  /** Logs an internal error and returns its reference. */
  report(thrown: unknown): string;
}

/** Facts about the service that every session sees. */
export interface ServiceFacts {
  readonly version: string;
  readonly region: string | null;
  /** Null for a single node. */
  readonly node: string | null;
  /** From the active configuration; empty if the service does not sell shreds. */
  delivery(): { readonly regions: readonly string[]; readonly perAccountMax: number };
  /** Public URL of the gateway; addresses and minimum for the tips of submissions. */
  submission(): Pick<ServiceView, "gatewayUrl" | "tipAddresses" | "minimumTipLamports">;
  /** Addresses from which receivers get shreds; empty if unknown. */
  senderAddresses(): readonly string[];
  /** From the relay; null means unknown. */
  leaders(): { readonly slot: bigint | null; readonly current: string | null };
  warnings(): readonly string[];
}

export interface PortalDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly sessionHours: number;
  /** Folder of the page's files. */
  readonly pageFolder: string;
  readonly keys: SessionKeys;
  readonly keyStore: KeyStore;
  /** Resolves when this process applies every change of the key store. */
  readonly refreshKeys: () => Promise<void>;
  /** Read at the first request, because the gateway is created after the portal. */
  readonly gateway: () => PortalGateway;
  readonly service: ServiceFacts;
  /** Null if this process has no relay. */
  readonly relay: (() => RelaySnapshot) | null;
  /** Subscriptions at block engines. */
  readonly subscriptions: () => readonly SubscriptionStatus[];
  /** One-way delays of their trace packets. */
  readonly traceDelays: () => ReturnType<TraceDelays["delays"]>;
  /** Null if this service does not register tips for shreds. */
  readonly shreds: ShredSales | null;
  readonly shredTipAddresses: () => readonly string[];
  readonly tips: Pick<TipFloor, "snapshot"> & { readonly history: TipHistoryReader };
  readonly submissions: Pick<Submissions, "subscribe" | "statuses">;
  readonly submissionLists: SubmissionLister;
  readonly routes: () => readonly RouteSnapshot[];
  /** Connections that submit over QUIC or a WebSocket. */
  readonly connections: () => ConnectionSnapshot;
  /** Decoded streams; empty without the section `streams`. */
  readonly streams: () => StreamSnapshot;
  readonly problems: () => readonly Problem[];
}
