// The program in a network namespace for the tests of transmit: a relay, or its peers (a source and
// plain UDP receivers). Called by two-namespaces.ts, through messages.

import { createHash } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { Relay } from "../../../src/relay/data-plane/relay.ts";
import type { RelayOptions } from "../../../src/relay/data-plane/relay-options.ts";
import type { Destination } from "../../../src/relay/data-plane/tables.ts";
import { buildSchedule } from "../../../src/relay/leaders/schedule.ts";
import { digestOf, type RelayState } from "./transmit-digest.ts";

interface Call {
  readonly id: number;
  readonly name: string;
  readonly args: readonly unknown[];
}

let relay: Relay | undefined;
const receivers = new Map<string, { socket: Socket; hashes: string[] }>();
let source: Socket | undefined;

function present(): Relay {
  if (!relay) throw new Error("no relay was opened");
  return relay;
}

const functions = {
  openRelay(options: RelayOptions, leader: { key: Uint8Array; slot: bigint }) {
    relay = Relay.open(options);
    relay.publishSources([{ name: "far", address: "10.1.0.2", tier: "any" }]);
    const slots = Array.from({ length: 64 }, (_, i) => i);
    relay.publishLeaders(buildSchedule(leader.slot - 10n, [{ key: leader.key, slots }]));
    return { address: relay.addresses[0] ?? "", transmit: relay.transmit };
  },

  publish(destinations: readonly Destination[]) {
    present().publishDestinations(destinations);
  },

  state(): RelayState {
    const { received, destinations, nextHops, workers } = present().snapshot();
    const [worker] = workers;
    return {
      received,
      sent: new Map(destinations.map(({ address, sent }) => [address, Number(sent)])),
      failed: destinations.flatMap(({ failed }) => Object.values(failed)).some((n) => n > 0n),
      cloned: Number(worker?.cloned_destinations ?? 0n),
      triggers: Number(worker?.clone_triggers ?? 0n),
      fallbacks: Number(worker?.clone_fallbacks ?? 0n),
      nextHops,
    };
  },

  async openReceivers(addresses: readonly string[], port: number) {
    for (const address of addresses) {
      const isIpv6 = address.includes(":");
      const socket = createSocket({ type: isIpv6 ? "udp6" : "udp4", recvBufferSize: 4 << 20 });
      const hashes: string[] = [];
      socket.on("message", (packet) =>
        hashes.push(createHash("sha256").update(packet).digest("base64")),
      );
      socket.bind(port, address);
      await once(socket, "listening");
      receivers.set(isIpv6 ? `[${address}]:${port}` : `${address}:${port}`, { socket, hashes });
    }
    source = createSocket("udp4");
    source.bind(0, "10.1.0.2");
    await once(source, "listening");
  },

  /** Sends as fast as possible: a burst. */
  send(packets: readonly Uint8Array[], to: string) {
    const [host = "", port = ""] = to.split(":");
    for (const packet of packets) source?.send(packet, Number(port), host);
  },

  counts: () => new Map([...receivers].map(([address, { hashes }]) => [address, hashes.length])),

  digests: () =>
    new Map([...receivers].map(([address, { hashes }]) => [address, digestOf(hashes)])),
};

const callable = new Map<string, unknown>(Object.entries(functions));

async function answer({ id, name, args }: Call): Promise<void> {
  try {
    const called = callable.get(name);
    if (typeof called !== "function") throw new Error(`no function ${name}`);
    process.send?.({ id, value: await called(...args) });
  } catch (error) {
    process.send?.({ id, error: String(error) });
  }
}

process.on("message", (call: Call) => void answer(call));
process.on("disconnect", () => process.exit());
