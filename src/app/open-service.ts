// Composition root: the only place that constructs the parts of a running service and wires them.
//
// Called by the command line. Opens in an order in which whatever fails closes what was opened
// before it, and hands the parts to the objects that run them. The sandbox around a service is
// composed in main-sandbox.ts, apart, so that production never loads its virtual machine.

import { readOwnAddresses } from "../core/addresses/own-addresses.ts";
import type { Clock } from "../core/clock.ts";
import { type Config, loadConfig } from "../core/configuration/configuration.ts";
import type { Logger } from "../core/log.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import { Relay } from "../relay/data-plane/relay.ts";
import { loadLeaderSchedule } from "../relay/leaders/schedule.ts";
import { RelayService } from "../relay/relay-service.ts";
import { relayOptionsOf } from "../relay/relay-tables.ts";
import { openGateway } from "./compose-gateway.ts";
import { Operations } from "./operations.ts";
import { Service } from "./service.ts";

interface ServiceDependencies {
  readonly config: Config;
  readonly readConfig: () => Config;
  /** Touch the workers' memory at the start. */
  readonly prefault?: boolean;
  readonly log: Logger;
  readonly clock: Clock;
  /** Of the tiers alone; default: `clock`. */
  readonly tierClock?: Clock;
}

function openRelayPart({ config, prefault, log, clock }: ServiceDependencies): RelayService {
  const relay = Relay.open({
    ...relayOptionsOf(config.relay),
    ...(prefault !== undefined && { prefault }),
  });
  try {
    return new RelayService({
      relay,
      config,
      readLeaders: loadLeaderSchedule,
      readOwnAddresses,
      ...(config.solana && { node: new RpcClient(config.solana.rpc) }),
      log,
      clock,
    });
  } catch (error) {
    relay.close();
    throw error;
  }
}

/** Throws ShredwayError; nothing stays open then. */
export async function openService(dependencies: ServiceDependencies): Promise<Service> {
  const { config, readConfig, log, clock, tierClock } = dependencies;
  const relay = openRelayPart(dependencies);
  const operations = new Operations({ config, relay, log, clock });
  try {
    const { pages } = operations;
    const gateway =
      config.http &&
      (await openGateway({ config, relay, pages, log, clock, ...(tierClock && { tierClock }) }));
    if (gateway) operations.watch(gateway);
    return new Service({ relay, ...(gateway && { gateway }), operations, readConfig, log });
  } catch (error) {
    operations.close();
    relay.close();
    throw error;
  }
}

/** The service that `configFile` describes, with its tables in force. Throws ShredwayError. */
export function openServiceOf(configFile: string, log: Logger, clock: Clock): Promise<Service> {
  const readConfig = () => loadConfig(configFile, readOwnAddresses());
  return openService({ config: readConfig(), readConfig, log, clock });
}
