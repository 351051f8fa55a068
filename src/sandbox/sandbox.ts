// Sandbox: a chain, its endpoint, sources, the product, and receivers on loopback.
//
// Built by open-sandbox.ts, shown by tools/commands/sandbox.ts. The product is the same as in
// production; its configuration contains the sandbox's node. Receivers are relays without
// destinations, so the same code verifies what arrives and counts duplicates.

import type { GatewayService, GatewaySnapshot } from "../app/gateway-service.ts";
import type { Service } from "../app/service.ts";
import type { Clock, Timer } from "../core/clock.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import type { RelaySnapshot } from "../relay/data-plane/snapshot.ts";
import type { LandingWatchList } from "../relay/landing-watch-list.ts";
import type { RpcLeaderSchedule } from "../relay/leaders/rpc-leader-schedule.ts";
import type { SubscriptionStatus } from "../relay/shredstream/subscription-status.ts";
import type { SandboxChain } from "./chain/chain.ts";
import type { SandboxPartners } from "./partners/partners.ts";
import { shredGapNs, tickMs } from "./plan.ts";
import type { LandingProbe, ProbeRecord } from "./probe.ts";
import type { SandboxReceiver } from "./receiver.ts";
import type { RpcEndpoint } from "./rpc/endpoint.ts";
import type { SandboxShredstream } from "./shredstream.ts";
import type { SourceFeed } from "./source-feed.ts";
import type { SandboxTpu } from "./tpu/tpu-leaders.ts";

export interface ChainView {
  readonly slot: bigint;
  readonly blockHeight: bigint;
  readonly transactions: bigint;
  /** Name of the current leader. */
  readonly leader: string;
  readonly isAltPartner: boolean;
  /**
   * Slots until an alternative partner is the leader; 0: now; null: not in this epoch and the next.
   */
  readonly slotsToAltPartner: number | null;
}

export interface SandboxSnapshot {
  readonly chain: ChainView;
  readonly relay: RelaySnapshot;
  readonly gateway: GatewaySnapshot;
  /** From the slot clock, by the relay's shreds; null: not measured yet. */
  readonly slotNs: bigint | null;
  readonly receivers: readonly { readonly name: string; readonly seen: RelaySnapshot }[];
  readonly landings: readonly ProbeRecord[];
  /** null: not chosen. */
  readonly shredstream: ShredstreamView | null;
}

export interface ShredstreamView {
  /** Subscription of the relay's source; undefined before the start. */
  readonly source: SubscriptionStatus | undefined;
  /** Subscription of the relay's subscriber; undefined before the start. */
  readonly subscriber: SubscriptionStatus | undefined;
}

interface SandboxOptions {
  readonly chain: SandboxChain;
  readonly endpoint: RpcEndpoint;
  readonly partners: SandboxPartners;
  /** null: the optional package is missing. */
  readonly tpu: SandboxTpu | null;
  /** null: not chosen. */
  readonly shredstream: SandboxShredstream | null;
  readonly feeds: readonly SourceFeed[];
  readonly service: Service;
  readonly gateway: GatewayService;
  readonly landings: LandingWatchList;
  /** API key of the gateway with all scopes. */
  readonly apiKey: string;
  readonly receivers: readonly SandboxReceiver[];
  readonly receiverLeaders: RpcLeaderSchedule;
  readonly probe: LandingProbe;
  /** Address at which `listen` receives the feed; absent if the kernel chose the relay's port. */
  readonly userDestination: string | undefined;
  readonly clock: Clock;
}

const probeMs = 2000;
const altPartnerSearchSlots = 1000n;

export class Sandbox {
  readonly chain: SandboxChain;
  readonly endpoint: RpcEndpoint;
  readonly partners: SandboxPartners;
  readonly tpu: SandboxTpu | null;
  readonly shredstream: SandboxShredstream | null;
  readonly service: Service;
  readonly gateway: GatewayService;
  readonly landings: LandingWatchList;
  readonly feeds: readonly SourceFeed[];
  readonly receivers: readonly SandboxReceiver[];
  readonly userDestination: string | undefined;
  readonly #options: SandboxOptions;
  #timers: readonly Timer[] = [];

  constructor(options: SandboxOptions) {
    this.#options = options;
    this.chain = options.chain;
    this.endpoint = options.endpoint;
    this.partners = options.partners;
    this.tpu = options.tpu;
    this.shredstream = options.shredstream;
    this.service = options.service;
    this.gateway = options.gateway;
    this.landings = options.landings;
    this.feeds = options.feeds;
    this.receivers = options.receivers;
    this.userDestination = options.userDestination;
  }

  /** Begins the first slot when the relay has the leader schedule. */
  async start(): Promise<void> {
    const { service, receiverLeaders, clock, probe } = this.#options;
    await Promise.all([service.start(), receiverLeaders.start()]);
    if (service.subscribers) this.shredstream?.proxy.start(service.subscribers.address);
    probe.start(new RpcClient(this.gatewayUrl));
    this.#timers = [
      clock.every(tickMs, () => this.#tick()),
      clock.every(probeMs, () => void probe.send()),
    ];
    this.#tick();
  }

  /** Complete, with the API key. Available after `start`. */
  get gatewayUrl(): string {
    const { gateway, apiKey } = this.#options;
    return `http://${gateway.addresses[0] ?? ""}/relay?api-key=${apiKey}`;
  }

  /** UDP addresses of the QUIC ingress: without and with protection; empty: it is off. */
  get quicAddresses(): readonly string[] {
    return this.#options.gateway.quicAddresses;
  }

  /** SHA-256 of the QUIC ingress's certificate; null: it is off. */
  get quicFingerprint(): string | null {
    return this.#options.gateway.quicFingerprint;
  }

  /** TCP address of decoded streams; empty: they are off. */
  get streamsAddress(): string {
    return this.#options.service.streams?.address ?? "";
  }

  snapshot(): SandboxSnapshot {
    const { service, gateway, receivers, probe, clock } = this.#options;
    return {
      chain: this.#viewChain(),
      relay: service.relay.snapshot(),
      gateway: gateway.snapshot(),
      slotNs: service.relay.slots.slotClock.now(clock.nowNs())?.slotNs ?? null,
      receivers: receivers.map(({ name, relay }) => ({ name, seen: relay.snapshot() })),
      landings: probe.records,
      shredstream: this.shredstream && {
        source: service.relay.shredstream.statuses()[0],
        subscriber: this.shredstream.proxy.status,
      },
    };
  }

  /**
   * Stops the chain's traffic. The relay and its receivers stay open, so that the last shreds
   * arrive.
   */
  stopTraffic(): void {
    for (const timer of this.#timers) timer.cancel();
    for (const feed of this.#options.feeds) feed.close();
  }

  async close(): Promise<void> {
    const { service, receivers, receiverLeaders, endpoint, partners, tpu, probe } = this.#options;
    this.stopTraffic();
    this.shredstream?.proxy.close();
    probe.close();
    receiverLeaders.stop();
    await service.close();
    this.shredstream?.close();
    partners.close();
    await tpu?.close();
    endpoint.close();
    for (const { relay } of receivers) relay.close();
  }

  #tick(): void {
    const { chain, feeds, clock } = this.#options;
    chain.advanceTo(clock.monotonicNs());
    // Sent one tick ahead, so that a late timer does not delay the shreds.
    for (const feed of feeds) feed.tick(BigInt(2 * tickMs) * 1_000_000n);
  }

  #viewChain(): ChainView {
    const { chain } = this.#options;
    const slot = chain.currentSlot;
    const byIdentity = new Map(chain.validators().map((one) => [one.identity, one]));
    const leaderAt = (at: bigint) => byIdentity.get(chain.leaderOf(at) ?? "");
    const isAltPartner = (at: bigint) => leaderAt(at)?.isAltPartner === true;
    let ahead = 0n;
    while (ahead < altPartnerSearchSlots && !isAltPartner(slot + ahead)) ahead++;
    return {
      slot,
      blockHeight: chain.blockHeight("processed"),
      transactions: chain.transactionCount(),
      leader: leaderAt(slot)?.name ?? "nobody",
      isAltPartner: isAltPartner(slot),
      slotsToAltPartner: ahead < altPartnerSearchSlots ? Number(ahead) : null,
    };
  }
}

/** A batch of shreds with the send times of its leader. */
export function paced(packets: readonly Uint8Array[]): { packet: Uint8Array; timeNs: number }[] {
  return packets.map((packet, i) => ({ packet, timeNs: i * shredGapNs }));
}
