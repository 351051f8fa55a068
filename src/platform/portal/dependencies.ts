// What the portal is made of: everything that it asks and does not own.
//
// Only types. Handed in by compose-portal.ts; each is the smallest interface of the thing behind it.

import type { Clock } from "../../core/clock.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { Logger } from "../../core/log.ts";
import type { Problem } from "../../core/recent-warnings.ts";
import type { ApiKey, KeyStore } from "../../gateway/accounts/types.ts";
import type { RefusalShape } from "../../gateway/endpoints/answers.ts";
import type { HttpHead, HttpResponse } from "../../gateway/http/types.ts";
import type { ShredSales } from "../../gateway/methods/dependencies.ts";
import type {
  RouteSnapshot,
  SubmissionLister,
  Submissions,
} from "../../gateway/submission/types.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import type { TipHistory } from "../../tips/tip-history.ts";
import type { SessionKeys } from "./sessions.ts";

/** The gateway as the portal uses it. */
export interface Counter {
  /** 16 bytes. */
  addressOf(head: HttpHead): Uint8Array;
  isProxied(head: HttpHead): boolean;
  /** A key that somebody typed: counted with all wrong keys of his address. */
  check(
    head: HttpHead,
    text: string,
    refuse: RefusalShape,
  ): { readonly key: ApiKey } | { readonly key?: undefined; readonly refusal: HttpResponse };
  /** Counts one call against the limit of the key. Throws ShredwayError "rate_limited". */
  admit(key: ApiKey, method: string): void;
  /** One of the gateway's methods with this key. Throws or rejects with ShredwayError. */
  dispatch(key: ApiKey, method: string, params: readonly Json[]): unknown;
  /** Writes a fault to the log; returns its reference. */
  report(thrown: unknown): string;
}

/** What is told of the whole service. */
export interface ServiceFacts {
  readonly version: string;
  readonly region: string | null;
  /** null: it shares its store with nobody. */
  readonly node: string | null;
  /** Of the configuration in force; none where no shreds are sold. */
  delivery(): { readonly regions: readonly string[]; readonly perAccountMax: number };
  /** Of the relay; null: unknown. */
  leaders(): { readonly slot: bigint | null; readonly current: string | null };
  warnings(): readonly string[];
}

export interface PortalDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly sessionHours: number;
  /** Where the page lies. */
  readonly pageFolder: string;
  readonly keys: SessionKeys;
  readonly keyStore: KeyStore;
  /** Settles when every change of the key store is in force here. */
  readonly refreshKeys: () => Promise<void>;
  /** Asked when the first request comes: the gateway is made after its pages. */
  readonly counter: () => Counter;
  readonly service: ServiceFacts;
  /** null: this process has no relay. */
  readonly relay: (() => RelaySnapshot) | null;
  /** null: no tips for shreds are registered here. */
  readonly shreds: ShredSales | null;
  readonly shredTipAddresses: () => readonly string[];
  readonly tips: TipHistory;
  readonly submissions: Pick<Submissions, "subscribe" | "statuses">;
  readonly submissionLists: SubmissionLister;
  readonly routes: () => readonly RouteSnapshot[];
  readonly problems: () => readonly Problem[];
}
