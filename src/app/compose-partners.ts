// Composition of what alternative partners and durable nonces need: members, tracker, nonce book.
//
// Called by main-gateway.ts. Whatever fails closes what was opened before it; the store is the caller's.

import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import type { Logger } from "../core/log.ts";
import { bookLimitsFor, NonceService } from "../gateway/nonces/nonce-service.ts";
import { PartnerMembers } from "../gateway/tracker/partner-members.ts";
import { PartnerTracker } from "../gateway/tracker/partner-tracker.ts";
import { NativeCoSigningCheck } from "../gateway/transactions/co-signing.ts";
import { openNonceKeys } from "../platform/solana/key-file.ts";
import { fetchMembers } from "../platform/solana/member-list.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import type { Store } from "../platform/store/store.ts";
import { encodeBase58 } from "../relay/data-plane/base58.ts";
import type { RelayService } from "../relay/relay-service.ts";

interface PartnersOptions {
  readonly config: Config;
  readonly relay?: RelayService | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Answers in less time than a connection of HTTP lasts. */
const nonceNodeTimeoutMs = 6000;

/** The tracker, following the relay's schedule and the configuration's members. */
export class TrackerPart {
  readonly tracker: PartnerTracker;
  readonly #members: PartnerMembers;
  readonly #endSchedules: (() => void) | undefined;

  constructor({ config, relay, clock, log }: PartnersOptions) {
    const tracker = new PartnerTracker(() => relay?.leaders().slot ?? null);
    this.tracker = tracker;
    tracker.replaceSchedule(relay?.schedule);
    this.#endSchedules = relay?.onSchedule((schedule) => tracker.replaceSchedule(schedule));
    this.#members = new PartnerMembers(
      { clock, log, fetchMembers, publish: (members) => tracker.replaceMembers(members) },
      config,
    );
  }

  apply(config: Config): void {
    this.#members.apply(config);
  }

  close(): void {
    this.#members.close();
    this.#endSchedules?.();
  }
}

/** null: without a node nobody can tell a nonce's value. Throws ShredwayError. */
export async function openNonces({
  config,
  store,
  clock,
  log,
}: PartnersOptions & { readonly store: Store }): Promise<NonceService | null> {
  const { solana, nonces } = config;
  if (!solana) return null;
  const { fundingKeyFile, authorityKeyFile, pollMs } = nonces;
  return NonceService.open(
    {
      clock,
      log,
      node: new RpcClient(solana.rpc, nonceNodeTimeoutMs),
      store: store.nonces,
      keys: fundingKeyFile === undefined ? null : openNonceKeys(fundingKeyFile, authorityKeyFile),
      check: new NativeCoSigningCheck(),
      encode: encodeBase58,
    },
    bookLimitsFor(pollMs),
  );
}
