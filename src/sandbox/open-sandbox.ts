// Composition root of the sandbox: a chain, sources and receivers around the service of
// app/open-service.ts.
//
// Called by tools/commands/sandbox.ts and by tests. Only code that needs a sandbox imports it.

import type { Server } from "node:net";
import { availableParallelism } from "node:os";
import type { GatewayService } from "../app/gateway-service.ts";
import { openService } from "../app/open-service.ts";
import type { Service } from "../app/service.ts";
import { formatEndpoint, parseEndpoint } from "../core/addresses/addresses.ts";
import type { Clock } from "../core/clock.ts";
import { type Config, completeConfig } from "../core/configuration/configuration.ts";
import { ShredwayError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { loadQuiche } from "../core/quic/quiche.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import { PacedSender } from "../relay/data-plane/paced-sender.ts";
import type { LandingWatchList } from "../relay/landing-watch-list.ts";
import { RpcLeaderSchedule } from "../relay/leaders/rpc-leader-schedule.ts";
import type { LeaderSchedule } from "../relay/leaders/schedule.ts";
import { SandboxChain } from "./chain/chain.ts";
import { SandboxKeyPair } from "./chain/keys.ts";
import { Delivery } from "./delivery.ts";
import { firstSlotOf } from "./first-slot.ts";
import { ensureKeyFile, type SandboxKeyFile } from "./key-files.ts";
import { SandboxPartners } from "./partners/partners.ts";
import {
  sandboxBufferBytes,
  sandboxPace,
  sandboxReceivers,
  sandboxRegion,
  sandboxSources,
  sandboxTiers,
} from "./plan.ts";
import { LandingProbe } from "./probe.ts";
import { openReceiver, type SandboxReceiver } from "./receiver.ts";
import { RpcEndpoint } from "./rpc/endpoint.ts";
import { paced, Sandbox } from "./sandbox.ts";
import { ensureSandboxKey } from "./sandbox-key.ts";
import { openShredstream, type SandboxShredstream } from "./shredstream.ts";
import { SourceFeed } from "./source-feed.ts";
import { SandboxTpu } from "./tpu/tpu-leaders.ts";

interface Closable {
  close(): void | Promise<void>;
}

/** Collects the opened resources. If `build` fails, it closes them, newest first. */
async function closingOnFailure<T>(
  build: (opened: <Part extends Closable>(part: Part) => Part) => Promise<T> | T,
): Promise<T> {
  const parts: Closable[] = [];
  try {
    return await build((part) => {
      parts.push(part);
      return part;
    });
  } catch (error) {
    for (const part of parts.toReversed()) await part.close();
    throw error;
  }
}

export interface SandboxChoice {
  /** "ip:port" of the relay; port 0: the kernel chooses. */
  readonly udp: string;
  /** "ip:port" of the chain's endpoint, which also uses the next port. */
  readonly rpc: string;
  /** "ip:port" of the gateway, which also uses the next port, unless the kernel chooses. */
  readonly http: string;
  /**
   * "ip:port" of the QUIC ingress, which also uses the next port for protected transactions. Absent, or if
   * the optional package is missing: no ingress.
   */
  readonly quic?: string;
  /** "ip:port" of decoded streams. Absent: none. */
  readonly streams?: string;
  /**
   * "ip:port" of the relay's block engine for subscribers. With it, the sandbox also has a source of kind
   * "shredstream" with a block engine of its own, and a subscriber. Absent: none of them.
   */
  readonly shredstream?: string;
  /** Listening socket at the address of `shredstream`, to take over; absent: a new one is opened. */
  readonly shredstreamSocket?: Server;
  /** Folder of the database and of the sandbox's API key. */
  readonly data: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Clock of the tiers only; default: `clock`. Tests use it to let days pass. */
  readonly tierClock?: Clock;
}

/** About the stake of a medium validator. */
const gatewayStakeLamports = 100_000_000_000_000n;

interface SandboxSurroundings {
  readonly rpcUrl: string;
  readonly receivers: readonly SandboxReceiver[];
  readonly partners: SandboxPartners;
  /** null: the optional package is missing. */
  readonly tpu: SandboxTpu | null;
  readonly wallets: SandboxWallets;
  readonly shredstream: SandboxShredstream | null;
}

/** `address`: for transactions without protection; the next port is for protected ones. */
function quicConfig(address: string) {
  const { bytes, port } = parseEndpoint(address, { allowPortZero: true });
  const protectedPort = port === 0 ? 0 : port + 1;
  return { listen: address, protectedListen: formatEndpoint({ bytes, port: protectedPort }) };
}

function sandboxConfig(
  choice: SandboxChoice,
  { rpcUrl, receivers, partners, tpu, wallets, shredstream }: SandboxSurroundings,
) {
  const httpPort = parseEndpoint(choice.http, { allowPortZero: true }).port;
  const { port } = parseEndpoint(choice.udp, { allowPortZero: true });
  const userDestination = port === 0 || port === 65_535 ? undefined : `127.0.0.1:${port + 1}`;
  const config = completeConfig({
    solana: { rpc: rpcUrl },
    // If the kernel chooses the port, the next port may be in use.
    http: { listen: choice.http, ...(httpPort === 0 && { webSocketListen: [] }) },
    ...(choice.quic !== undefined && tpu && { quic: quicConfig(choice.quic) }),
    ...(shredstream && { shredstream: shredstream.section }),
    // The sandbox's account has no tips, and receives what tier-1 receives.
    ...(choice.streams !== undefined && {
      streams: { listen: choice.streams, tier: sandboxTiers[0] },
    }),
    data: { directory: choice.data },
    tips: {
      addresses: [...wallets.tipAddresses],
      shredAddresses: [...wallets.shredTipAddresses],
    },
    regions: [{ name: sandboxRegion }],
    delivery: { regions: ["frankfurt", "new-york"], region: sandboxRegion },
    gateway: { resendMs: sandboxPace.resendMs },
    nonces: { fundingKeyFile: wallets.funding.path, pollMs: sandboxPace.noncePollMs },
    routes: [...partners.routeConfigs(), ...(tpu ? [tpu.routeConfig(wallets.identity.path)] : [])],
    relay: {
      listen: choice.udp,
      workers: port === 0 ? 1 : Math.min(2, availableParallelism()),
      tiers: [...sandboxTiers],
      shredVersion: sandboxPace.shredVersion,
      allowPrivateDestinations: true,
      transmit: "socket", // every receiver is on loopback
      receive: { bufferBytes: sandboxBufferBytes },
      sources: [
        ...sandboxSources.map(({ name, address, tier }) => ({ name, address, tier })),
        ...(shredstream ? [shredstream.source] : []),
      ],
      destinations: [
        ...receivers.map(({ name, address, tier }) => ({ name, address, tier })),
        ...(userDestination === undefined
          ? []
          : [{ name: "yours", address: userDestination, tier: "tier-2" }]),
      ],
    },
  });
  return { config, userDestination };
}

/** The accounts of the chain's genesis. */
interface SandboxWallets {
  readonly customer: SandboxKeyPair;
  readonly tipAddresses: readonly string[];
  readonly shredTipAddresses: readonly string[];
  /** Pays for the nonce accounts. */
  readonly funding: SandboxKeyFile;
  /** Identity for leaders over QUIC. */
  readonly identity: SandboxKeyFile;
}

function makeWallets({ data }: SandboxChoice): SandboxWallets {
  const { seed, tipAddresses, shredTipAddresses } = sandboxPace;
  const addresses = (count: number, name: string): string[] =>
    Array.from({ length: count }, (_, i) => SandboxKeyPair.named(seed, `${name} ${i}`).address);
  return {
    customer: SandboxKeyPair.named(seed, "customer"),
    tipAddresses: addresses(tipAddresses, "tip account"),
    shredTipAddresses: addresses(shredTipAddresses, "shred tip account"),
    funding: ensureKeyFile(data, "funding"),
    identity: ensureKeyFile(data, "identity"),
  };
}

function openChain(
  { clock, data }: SandboxChoice,
  { customer, funding, tipAddresses, shredTipAddresses }: SandboxWallets,
  feeds: readonly SourceFeed[],
): Promise<SandboxChain> {
  return SandboxChain.open({
    ...sandboxPace,
    firstSlot: firstSlotOf(data),
    genesisSeconds: clock.nowNs() / 1_000_000_000n,
    background: { tipAddresses },
    funded: new Map([
      [customer.address, 1_000_000_000_000n],
      [funding.address, 1_000_000_000_000n],
      ...[...tipAddresses, ...shredTipAddresses].map((address): [string, bigint] => [
        address,
        1_000_000_000n,
      ]),
    ]),
    onShreds: ({ packets }) => {
      // The times count from now, not from the leader's planned time: the tick may be late, and a
      // batch of overdue shreds would be sent as one burst.
      const nowNs = clock.monotonicNs();
      for (const feed of feeds) feed.add(paced(packets), nowNs);
    },
  });
}

/** null: the optional package is missing. */
async function openTpu(
  chain: SandboxChain,
  clock: Clock,
  { identity }: SandboxWallets,
): Promise<SandboxTpu | null> {
  const quiche = loadQuiche();
  const stakes = new Map([[identity.address, gatewayStakeLamports]]);
  return quiche && SandboxTpu.open(chain, { quiche, clock }, { stakes });
}

interface GatewayPart {
  readonly gateway: GatewayService;
  readonly landings: LandingWatchList;
}

function gatewayOf({ gateway }: Service): GatewayPart {
  const landings = gateway?.landings;
  if (gateway && landings) return { gateway, landings };
  throw new ShredwayError("internal", "the sandbox needs a gateway and a relay with deshred");
}

function openServiceFor(
  { log, clock, tierClock, shredstreamSocket }: SandboxChoice,
  config: Config,
): Promise<Service> {
  const readConfig = () => config;
  const times = { clock, ...(tierClock && { tierClock }) };
  const socket = shredstreamSocket && { subscriberSocket: shredstreamSocket };
  return openService({ config, readConfig, prefault: false, log, ...times, ...socket });
}

/**
 * Opens the default sandbox: a chain in this process, its shreds over UDP through the product to
 * receivers on loopback, its transactions over HTTP through the product to its leaders. There is no
 * traffic before Sandbox.start. Throws ShredwayError: "relay_open" or "http_open" if a port is in
 * use, "sandbox_missing" without the virtual machine, "config_invalid" if a file in the data folder
 * cannot be used.
 */
export function openSandbox(choice: SandboxChoice): Promise<Sandbox> {
  return closingOnFailure(async (opened) => {
    const { clock, log } = choice;
    const wallets = makeWallets(choice);
    const { tipAddresses } = wallets;
    const feeds: SourceFeed[] = [];
    const chain = await openChain(choice, wallets, feeds);
    const { shredVersion, seed } = sandboxPace;
    const tpu = await openTpu(chain, clock, wallets);
    if (tpu) opened(tpu);
    const tpuQuicAddress = (identity: string) => tpu?.addressOf(identity) ?? null;
    const node = { listen: choice.rpc, shredVersion, log, tpuQuicAddress };
    const endpoint = opened(await RpcEndpoint.open(chain, clock, node));
    const shredstream = await openShredstream({ ...choice, listen: choice.shredstream });
    if (shredstream) opened(shredstream);
    const receivers = sandboxReceivers.map((one) => {
      const receiver = openReceiver(one);
      opened(receiver.relay);
      return receiver;
    });
    const rpcUrl = `http://${endpoint.address}`;
    const partners = opened(await SandboxPartners.open(chain, clock, { tipAddresses, log }));
    const surroundings = { rpcUrl, receivers, partners, tpu, wallets, shredstream };
    const { config, userDestination } = sandboxConfig(choice, surroundings);
    const service = opened(await openServiceFor(choice, config));
    const to = reachable(service.relay.relay.addresses[0] ?? choice.udp);
    for (const [i, { address, profile }] of sandboxSources.entries()) {
      const player = opened(PacedSender.open({ to, from: `${address}:0` }));
      feeds.push(new SourceFeed({ delivery: new Delivery(profile, seed + i), player, clock }));
    }
    if (shredstream) {
      feeds.push(shredstream.engine.feed);
      receivers.push(shredstream.proxy.receiver); // it has a lease instead of a configured destination
    }
    const { gateway, landings } = gatewayOf(service);
    const apiKey = await ensureSandboxKey(gateway.keys, choice.data, clock.nowNs());
    const { customer: wallet } = wallets;
    const probe = new LandingProbe({ landings, wallet, tipAddresses, clock, log });
    const publish = (schedule: LeaderSchedule): void => {
      for (const { relay } of receivers) relay.publishLeaders(schedule);
    };
    const chainNode = new RpcClient(rpcUrl);
    const receiverLeaders = new RpcLeaderSchedule({ node: chainNode, clock, log, publish });
    return new Sandbox({
      chain,
      endpoint,
      partners,
      tpu,
      shredstream,
      feeds,
      service,
      gateway,
      landings,
      apiKey,
      receivers,
      receiverLeaders,
      probe,
      userDestination,
      clock,
    });
  });
}

/** Replaces 0.0.0.0, which is not a destination, by loopback: the sources are on this machine. */
function reachable(address: string): string {
  const endpoint = parseEndpoint(address);
  const unspecified = formatEndpoint({ ...endpoint, port: 0 }) === "0.0.0.0:0";
  return unspecified ? `127.0.0.1:${endpoint.port}` : address;
}
