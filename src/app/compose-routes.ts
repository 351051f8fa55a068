// Composition of the routes: partners over HTTP, and leaders over QUIC.
//
// Called by compose-gateway.ts.

import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import type { Logger } from "../core/log.ts";
import type { FastRoutes } from "../gateway/routes/http-route.ts";
import { openRoute } from "../gateway/routes/open-route.ts";
import { RouteTable } from "../gateway/routes/route-table.ts";
import { tpuOpener } from "../gateway/routes/tpu-route.ts";
import type { UpcomingLeaders } from "../gateway/tpu/leader-selection.ts";
import { NodeAddresses } from "../gateway/tpu/node-addresses.ts";
import type { Tracker } from "../gateway/tracker/types.ts";
import { readSeed } from "../platform/solana/key-file.ts";
import { RpcClient } from "../platform/solana/rpc-client.ts";
import { leaderNameAt } from "../relay/leaders/leader-context.ts";
import type { RelayService } from "../relay/relay-service.ts";

interface RoutesOptions {
  readonly config: Config;
  readonly relay: RelayService | undefined;
  /** Default: those of the relay. */
  readonly leaders?: UpcomingLeaders | undefined;
  readonly tracker: Tracker;
  readonly fastPath: FastRoutes | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

interface RoutesPart {
  readonly table: RouteTable;
  /** Close this after the route table. */
  readonly addresses: NodeAddresses;
}

/** Opens the configured routes. Throws ShredwayError, after closing everything that it opened. */
export async function openRoutes(options: RoutesOptions): Promise<RoutesPart> {
  const { config, relay, tracker, fastPath, clock, log } = options;
  const addresses = new NodeAddresses({
    nodes: config.solana ? new RpcClient(config.solana.rpc) : null,
    clock,
    log,
    allowPrivate: config.relay.allowPrivateDestinations,
  });
  const openTpu = tpuOpener({
    clock,
    log,
    leaders: options.leaders ?? {
      slot: () => relay?.leaders().slot ?? null,
      leaderAt: (slot) => leaderNameAt(relay?.schedule, slot),
    },
    addresses,
    partners: () => tracker.memberSet(),
    readSeed,
  });
  const table = new RouteTable((route) => openRoute(route, { clock, log, openTpu, fastPath }));
  try {
    await table.replace(config.routes);
  } catch (error) {
    addresses.close();
    throw error;
  }
  return { table, addresses };
}
