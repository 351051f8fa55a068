// Composition of alternative partners and durable nonces: members, tracker, nonce accounts.
//
// Called by compose-gateway.ts. If a step fails, everything that was opened before it is closed, except the
// store, which belongs to the caller.

import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import type { Logger } from "../core/log.ts";
import { NonceService, nonceServiceLimitsFor } from "../gateway/nonces/nonce-service.ts";
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

/** This must be shorter than the timeout of an HTTP connection. */
const nonceNodeTimeoutMs = 6000;

/** The tracker follows the relay's leader schedule and the configured members. */
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

/** null: no node is configured to read nonce values. Throws ShredwayError. */
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
    nonceServiceLimitsFor(pollMs),
  );
}
