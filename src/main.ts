// Composition root: the only place that constructs the parts of a running service and wires them.
//
// Called by the command line. Opens in an order in which whatever fails closes what was opened
// before it, and hands the parts to the objects that run them.

import { availableParallelism } from "node:os";
import { formatEndpoint, parseEndpoint } from "./core/addresses.ts";
import type { Clock } from "./core/clock.ts";
import { loadConfig } from "./core/config.ts";
import type { Logger } from "./core/log.ts";
import { readOwnAddresses } from "./core/own-addresses.ts";
import { PacedSender } from "./data-plane/paced-sender.ts";
import { Relay } from "./data-plane/relay.ts";
import { loadLeaderSchedule } from "./leaders/schedule.ts";
import {
  Demo,
  type DemoReceiver,
  demoReceivers,
  demoSources,
  demoTiers,
  demoTraffic,
} from "./sandbox/demo.ts";
import { DemoFeed } from "./sandbox/demo-feed.ts";
import { ShredTraffic } from "./sandbox/shred-traffic.ts";
import { RelayService } from "./service/relay-service.ts";
import { relayOptionsOf } from "./service/relay-tables.ts";

interface Closable {
  close(): void;
}

/** Runs `build`; when it throws, closes what it had opened, newest first. */
function closingOnFailure<T>(build: (opened: <Part extends Closable>(part: Part) => Part) => T): T {
  const parts: Closable[] = [];
  try {
    return build((part) => {
      parts.push(part);
      return part;
    });
  } catch (error) {
    for (const part of parts.toReversed()) part.close();
    throw error;
  }
}

/** The relay that `configFile` describes, with its tables in force. Throws ShredwayError. */
export function openRelayService(configFile: string, log: Logger, clock: Clock): RelayService {
  const readConfig = () => loadConfig(configFile, readOwnAddresses());
  const config = readConfig();
  return closingOnFailure((opened) => {
    const relay = opened(Relay.open(relayOptionsOf(config.relay)));
    return new RelayService({
      relay,
      config,
      readConfig,
      readLeaders: loadLeaderSchedule,
      readOwnAddresses,
      log,
      clock,
    });
  });
}

const demoBufferBytes = 4 << 20; // half a second of traffic; more would need privileges

/**
 * The default start: made-up traffic through a relay on `udp` ("ip:port", port 0: the kernel
 * chooses) to receivers on loopback. Throws ShredwayError "relay_open" when the port is taken.
 */
export function openDemo(udp: string, clock: Clock): Demo {
  return closingOnFailure((opened) => {
    const { port } = parseEndpoint(udp, { allowPortZero: true });
    const common = {
      tiers: demoTiers,
      authentication: "leader-schedule",
      shredVersion: demoTraffic.shredVersion,
      receive: { bufferBytes: demoBufferBytes },
      prefault: false,
    } as const;
    const workers = port === 0 ? 1 : Math.min(2, availableParallelism());
    const relay = opened(Relay.open({ ...common, listen: [udp], workers }));
    const relayAddress = relay.addresses[0] ?? udp;

    const receivers: DemoReceiver[] = demoReceivers.map(({ name, tier }) => {
      const receiver = opened(Relay.open({ ...common, listen: ["127.0.0.1:0"], workers: 1 }));
      const address = receiver.addresses[0] ?? "";
      receiver.publishSources([{ name: "relay", port: parseEndpoint(address).port, tier }]);
      return { name, tier, address, relay: receiver };
    });

    const openSeat = port === 0 || port === 65_535 ? undefined : `127.0.0.1:${port + 1}`;
    relay.publishSources(demoSources);
    relay.publishDestinations([
      ...receivers.map(({ name, address, tier }) => ({ name, address, tier })),
      ...(openSeat ? [{ name: "yours", address: openSeat, tier: "tier-2" }] : []),
    ]);

    const traffic = new ShredTraffic(demoTraffic);
    const to = reachable(relayAddress);
    const sources = demoSources.map(({ name, address, profile }) => ({
      name,
      profile,
      player: opened(PacedSender.open({ to, from: `${address}:0` })),
    }));
    const { slotNs, seed } = demoTraffic;
    const feed = new DemoFeed({ traffic, sources, clock, slotNs, seed });
    return new Demo({ relay, receivers, openSeat, traffic, feed, clock });
  });
}

/** 0.0.0.0 is no address to send to: the sources are on this machine, so loopback is meant. */
function reachable(address: string): string {
  const endpoint = parseEndpoint(address);
  const unspecified = formatEndpoint({ ...endpoint, port: 0 }) === "0.0.0.0:0";
  return unspecified ? `127.0.0.1:${endpoint.port}` : address;
}
