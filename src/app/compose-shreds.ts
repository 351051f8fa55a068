// Composition of shred sales: registrar, tiers, destinations, ownership proofs.
//
// Called by compose-gateway.ts if shred-tip addresses are configured. If a step fails, everything that was
// opened before it is closed, except the store, which belongs to the caller.

import { randomBytes } from "node:crypto";
import { type Endpoint, formatAddress, parseEndpoint } from "../core/addresses/addresses.ts";
import {
  canonicalAddresses,
  listenersReached,
  readOwnAddresses,
} from "../core/addresses/own-addresses.ts";
import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import type { Logger } from "../core/log.ts";
import type {
  SignatureVerifier,
  TransactionInspector,
} from "../gateway/transactions/transaction-checks.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import type { Store } from "../platform/store/store.ts";
import { decodeBase58 } from "../relay/data-plane/base58.ts";
import { ReachabilityProbe } from "../relay/data-plane/reachability-probe.ts";
import type { LandingWatchList } from "../relay/landing-watch-list.ts";
import type { RelayService } from "../relay/relay-service.ts";
import { ChallengeSocket } from "../shreds/destinations/challenge-socket.ts";
import { destinationSettingsOf } from "../shreds/destinations/destination-rules.ts";
import { AccountDestinations } from "../shreds/destinations/destinations.ts";
import { DroppedRegistrations } from "../shreds/registrations/dropped-registrations.ts";
import type { LandingSources } from "../shreds/registrations/landing-confirmation.ts";
import { PendingRegistrations } from "../shreds/registrations/pending-registrations.ts";
import { TipRegistrar } from "../shreds/registrations/registrar.ts";
import { AccountTiers } from "../shreds/tiers/account-tiers.ts";
import { TierLeadership } from "../shreds/tiers/tier-leadership.ts";
import { type LeaseCounts, ShredSalesService } from "./shred-sales.ts";
import { tierRulesOf } from "./tier-rules.ts";

interface ShredSalesOptions {
  readonly config: Config;
  readonly relay: RelayService | undefined;
  readonly store: Store;
  readonly verifier: Pick<SignatureVerifier, "verify">;
  readonly landings: LandingWatchList | null;
  /** Uses the current shred-tip addresses. */
  readonly inspector: () => TransactionInspector;
  /** The current shred-tip addresses, in base58. */
  readonly addresses: () => ReadonlySet<string>;
  /** Shred-tip addresses of all nodes. */
  readonly knownAddresses: () => ReadonlySet<string>;
  /** Reads those of the other nodes again; absent: the database is not shared. */
  readonly refreshAddresses?: () => Promise<void>;
  /** Why no node sends to a region; absent: the database is not shared. */
  readonly regionProblem?: (region: string) => string | null;
  /** Whether another node sends to a region; absent: the database is not shared. */
  readonly isServedElsewhere?: (region: string) => boolean;
  readonly clock: Clock;
  readonly tierClock: Clock;
  readonly log: Logger;
}

/** How long the list of own addresses is valid. */
const ownAddressesNs = 5_000_000_000n;

/**
 * Whether an endpoint belongs to this service or, unless such destinations are allowed, to this machine. A
 * reload checks all destinations in one turn and reads the own addresses once.
 */
function ownTest(
  { relay }: Config,
  listeners: readonly Endpoint[],
  clock: Clock,
): (endpoint: Endpoint) => boolean {
  const read = () => {
    const texts = readOwnAddresses();
    const isReached = listenersReached(listeners, () => texts);
    const own = relay.allowPrivateDestinations ? new Set() : new Set(canonicalAddresses(texts));
    return (endpoint: Endpoint): boolean =>
      isReached(endpoint) !== undefined || own.has(formatAddress(endpoint.bytes));
  };
  let test = read();
  let readNs = clock.monotonicNs();
  return (endpoint) => {
    if (clock.monotonicNs() - readNs > ownAddressesNs) {
      test = read();
      readNs = clock.monotonicNs();
    }
    return test(endpoint);
  };
}

async function openDestinations(
  { config, store, relay, regionProblem, isServedElsewhere, clock, log }: ShredSalesOptions,
  leases: LeaseCounts,
  opened: { close(): void | Promise<void> }[],
): Promise<{ challenges: ChallengeSocket; destinations: AccountDestinations }> {
  const { listen, listenIpv6 } = config.delivery.proof;
  const known: { destinations?: AccountDestinations } = {};
  const challenges = await ChallengeSocket.open({
    listen,
    listenIpv6,
    clock,
    log,
    isAwaited: (from) => known.destinations?.isAwaited(from) ?? false,
    onMessage: (from, datagram) => known.destinations?.answer(from, datagram),
  });
  opened.push(challenges);
  const own = [...(relay?.relay.addresses ?? []), ...challenges.addresses];
  const listeners = own.map((text) => parseEndpoint(text));
  const destinations = await AccountDestinations.open(
    {
      clock,
      store: store.destinations,
      log,
      random: (count) => randomBytes(count),
      sendChallenge: (address, datagram) => challenges.send(address, datagram),
      openProbe: (address, datagram) => ReachabilityProbe.open(address, datagram),
      isOwnListener: ownTest(config, listeners, clock),
      regionProblem: (region) => regionProblem?.(region) ?? null,
      isServedElsewhere: (region) => isServedElsewhere?.(region) ?? false,
      countLeases: (accountId) => leases.of?.(accountId) ?? 0,
    },
    destinationSettingsOf(config),
  );
  opened.push(destinations);
  known.destinations = destinations;
  return { challenges, destinations };
}

/** null: no node is configured; tips count as soon as they are registered. */
function landingSourcesOf({
  config,
  landings,
  knownAddresses: addresses,
  refreshAddresses,
}: ShredSalesOptions): LandingSources | null {
  const node = config.solana && new RpcClient(config.solana.rpc);
  if (!node) return null;
  return {
    landed: node,
    outcomes: node,
    observations: landings,
    decode: decodeBase58,
    addresses,
    ...(refreshAddresses && { refreshAddresses }),
  };
}

/** Throws ShredwayError, after closing everything that it opened. */
export async function openShredSales(options: ShredSalesOptions): Promise<ShredSalesService> {
  const { config, relay, store, clock, tierClock, log, verifier, addresses } = options;
  const opened: { close(): void | Promise<void> }[] = [];
  try {
    const leases: LeaseCounts = {};
    const { challenges, destinations } = await openDestinations(options, leases, opened);
    const rules = tierRulesOf(config);
    const settled = new Map<string, number>();
    const registrations = new PendingRegistrations({
      clock,
      log,
      store: store.registrations,
      sources: landingSourcesOf(options),
      onResult: (outcome) => settled.set(outcome, (settled.get(outcome) ?? 0) + 1),
    });
    const tiers = new AccountTiers({ rules, store: store.tiers, clock: tierClock, log });
    const leadership = new TierLeadership({
      store: store.tiers,
      locks: store.locks,
      tiers,
      registrations,
      clock: tierClock,
      log,
      random: Math.random,
    });
    const registrar = new TipRegistrar({
      log,
      reader: {
        inspect: (wire) => options.inspector().inspect(wire),
        decode: (text) => decodeBase58(text),
      },
      verifier,
      store: store.registrations,
      tiers,
      pending: registrations,
      present: () => ({
        slot: relay?.leaders().slot ?? null,
        slotNs: relay?.slots.slotClock.now(clock.nowNs())?.slotNs ?? null,
      }),
      addresses,
    });
    const droppedRegistrations = new DroppedRegistrations({
      clock,
      log,
      store: store.droppedRegistrations,
      nowMs: () => tiers.nowMs(),
      isLeader: () => leadership.isLeader,
    });
    return new ShredSalesService({
      config,
      relay: relay ?? null,
      leadership,
      tiers,
      rules,
      registrar,
      registrations,
      droppedRegistrations,
      settled,
      destinations,
      challenges,
      leases,
      log,
    });
  } catch (error) {
    for (const part of opened.toReversed()) await part.close();
    throw error;
  }
}
