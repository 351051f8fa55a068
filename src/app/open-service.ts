// Composition root: constructs a service from its configuration.
//
// Called by the command line. If a step fails, everything that was opened before it is closed. The sandbox
// has its own composition in src/sandbox, so that production never loads its virtual machine.

import { randomBytes } from "node:crypto";
import type { Server } from "node:net";
import { readOwnAddresses } from "../core/addresses/own-addresses.ts";
import type { Clock } from "../core/clock.ts";
import { type Config, loadConfig } from "../core/configuration/configuration.ts";
import { connectionLimitsOf } from "../core/configuration/connection-limits.ts";
import { openFilesLimit } from "../core/files.ts";
import type { Logger } from "../core/log.ts";
import { TlsCertificate } from "../gateway/http/tls-certificate.ts";
import { fetchDestinations } from "../platform/solana/destination-list.ts";
import { readKeyPair } from "../platform/solana/key-file.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import { Relay } from "../relay/data-plane/relay.ts";
import { loadLeaderSchedule } from "../relay/leaders/schedule.ts";
import { placeThreads } from "../relay/place-threads.ts";
import { RelayService } from "../relay/relay-service.ts";
import { relayOptionsOf } from "../relay/relay-tables.ts";
import type { SenderThreadsChoice } from "../relay/sender-threads.ts";
import { SubscriberService } from "../relay/shredstream/subscriber-service.ts";
import { slotFileIn } from "../relay/slot-floor.ts";
import type { StreamService } from "../relay/streams/stream-service.ts";
import { AccountSubscribers } from "./account-subscribers.ts";
import { openGateway } from "./compose-gateway.ts";
import { type OpenWriteLocks, openStreams, openWriteLocks } from "./compose-streams.ts";
import type { GatewayService } from "./gateway-service.ts";
import { Operations } from "./operations.ts";
import { Service } from "./service.ts";
import type { ShredSalesService } from "./shred-sales.ts";
import { permittedCpus, withConfigurationKey } from "./start-errors.ts";
import { WarmUp } from "./warm-up.ts";

interface ServiceDependencies {
  readonly config: Config;
  readonly readConfig: () => Config;
  /** Adds the configuration's key to an error of the startup; default: none. */
  readonly explain?: (error: unknown) => unknown;
  /** Its abort ends the opening and the start at once: both then reject. */
  readonly interrupted?: AbortSignal | undefined;
  /** As in ServiceDependencies of service.ts. */
  readonly startWarmUp?: () => WarmUp;
  /** Touches the workers' memory at startup, so that no page fault occurs later. */
  readonly prefault?: boolean;
  /** Worker i runs on workerCpus[i]; default: relay.cpus. */
  readonly workerCpus?: readonly number[];
  /** Default: relay.senderThreads; `auto`: none. */
  readonly senderThreads?: SenderThreadsChoice;
  readonly log: Logger;
  readonly clock: Clock;
  /** Listening socket at `shredstream.listen`, to take over; default: a new one is opened. */
  readonly subscriberSocket?: Server;
  /** Clock of the tiers only; default: `clock`. */
  readonly tierClock?: Clock;
}

function openRelayPart({
  config,
  prefault,
  workerCpus = [],
  senderThreads,
  log,
  clock,
}: ServiceDependencies): RelayService {
  const relay = Relay.open({
    ...relayOptionsOf(config.relay),
    ...(prefault !== undefined && { prefault }),
    ...(workerCpus.length > 0 && { cpus: workerCpus }),
    ...(senderThreads && { senderThreads: senderThreads.perWorker }),
  });
  try {
    return new RelayService({
      relay,
      config,
      readLeaders: loadLeaderSchedule,
      readOwnAddresses,
      ...(config.solana && { node: new RpcClient(config.solana.rpc) }),
      fetchDestinations,
      shredstream: { readKey: readKeyPair, random: Math.random },
      slotFile: slotFileIn(config.data.directory),
      ...(senderThreads && { senderThreads }),
      log,
      clock,
    });
  } catch (error) {
    relay.close();
    throw error;
  }
}

function openSubscribers(
  config: NonNullable<Config["shredstream"]>,
  relay: RelayService,
  shreds: ShredSalesService | null,
  { config: whole, clock, log, subscriberSocket }: ServiceDependencies,
): SubscriberService {
  const subscribers = new SubscriberService({
    config,
    socket: subscriberSocket,
    connectionsMax: connectionLimitsOf(whole, openFilesLimit()).subscribers,
    certificate:
      config.tls && new TlsCertificate(config.tls, { clock, log, section: "shredstream" }),
    allowPrivate: () => relay.config.allowPrivateDestinations,
    isOwn: (address) => relay.isOwn(address),
    publish: (destinations) => relay.setLeasedDestinations(destinations),
    addressesOf: shreds?.addressesOf,
    randomBytes,
    clock,
    log,
  });
  shreds?.countLeases((accountId) => subscribers.leasesOf(accountId));
  return subscribers;
}

/** undefined: accounts cannot subscribe, because no proxies are served or no shreds are sold. */
function followAccounts(
  gateway: GatewayService | undefined,
  subscribers: SubscriberService | undefined,
  { clock, log }: ServiceDependencies,
): AccountSubscribers | undefined {
  if (!gateway?.shreds || !subscribers) return undefined;
  const { publicKeys, shreds } = gateway;
  return new AccountSubscribers({ publicKeys, tiers: shreds.tiers, subscribers, clock, log });
}

/** Throws ShredwayError, after closing everything that it opened. */
export async function openService(dependencies: ServiceDependencies): Promise<Service> {
  const { config, readConfig, explain, startWarmUp, log, clock, tierClock } = dependencies;
  const { interrupted } = dependencies;
  const relay = openRelayPart(dependencies);
  const operations = new Operations({ config, relay, log, clock });
  let gateway: GatewayService | undefined;
  let subscribers: SubscriberService | undefined;
  try {
    const { pages } = operations;
    // Both refer to each other: streams use the gateway's keys.
    const opened: { streams?: StreamService; writeLocks?: OpenWriteLocks } = {};
    gateway =
      config.http &&
      (await openGateway({
        config,
        relay,
        pages,
        log,
        clock,
        streams: () => opened.streams,
        writeLocks: () => opened.writeLocks?.observer,
        ...(tierClock && { tierClock }),
        interrupted,
      }));
    if (gateway) operations.watch(gateway);
    subscribers =
      config.shredstream &&
      openSubscribers(config.shredstream, relay, gateway?.shreds ?? null, dependencies);
    if (subscribers) operations.watchSubscribers(subscribers);
    const accountSubscribers = followAccounts(gateway, subscribers, dependencies);
    const streams =
      gateway &&
      openStreams({
        config,
        relay,
        access: gateway.streamAccess,
        shreds: gateway.shreds,
        clock,
        log,
      });
    if (streams) {
      opened.streams = streams;
      operations.watchStreams(streams);
      gateway?.showStreams(streams);
    }
    const writeLocks = gateway && openWriteLocks({ config, relay, streams, clock, log });
    if (writeLocks) opened.writeLocks = writeLocks;
    return new Service({
      relay,
      ...(writeLocks && { writeLocks }),
      ...(streams && { streams }),
      ...(subscribers && { subscribers }),
      ...(accountSubscribers && { accountSubscribers }),
      ...(gateway && { gateway }),
      operations,
      config,
      readConfig,
      ...(explain && { explain }),
      ...(startWarmUp && { startWarmUp }),
      interrupted,
      log,
    });
  } catch (error) {
    subscribers?.close();
    await gateway?.close();
    operations.close();
    relay.close();
    throw error;
  }
}

/**
 * Opens the service that `configFile` describes, with its tables published. `interrupted`: its abort ends the
 * opening and the start at once. Throws ShredwayError.
 */
export async function openServiceOf(
  configFile: string,
  log: Logger,
  clock: Clock,
  interrupted?: AbortSignal,
): Promise<Service> {
  const readConfig = () => loadConfig(configFile, readOwnAddresses());
  const config = readConfig();
  const permitted = permittedCpus();
  const explain = (error: unknown) => withConfigurationKey(error, config, permitted);
  try {
    const places = placeThreads(config.relay, log);
    const startWarmUp = () => WarmUp.start({ config, log, clock });
    return await openService({
      config,
      readConfig,
      explain,
      startWarmUp,
      ...places,
      interrupted,
      log,
      clock,
    });
  } catch (error) {
    throw explain(error);
  }
}
