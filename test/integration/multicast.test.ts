// Multicast sources of a whole service between two network namespaces: groups that are discovered by
// their routes, overlapping shreds with different retransmitter signatures, two workers, an interface
// that is set down and up again.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../src/relay/data-plane/base58.ts";
import { closing } from "../support/closing.ts";
import {
  hasTwoNamespaces,
  type TransmitChild,
  TwoNamespaces,
} from "../support/network/two-namespaces.ts";
import { Shredway } from "../support/processes/shredway.ts";
import { ShredTraffic } from "../support/shreds/shred-traffic.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const first = "233.84.178.1";
const second = "233.84.178.12";
const readMetrics =
  'fetch("http://127.0.0.1:9780/metrics").then((r) => r.text()).then((t) => process.stdout.write(t))';

/** The configuration: the groups come from the routes, and one sender is forwarded. */
function configurationIn(folder: string, leader: Uint8Array): string {
  const leaders = { firstSlot: 4990, leaders: { [encodeBase58(leader)]: [...Array(64).keys()] } };
  writeFileSync(join(folder, "leaders.json"), JSON.stringify(leaders));
  const file = join(folder, "shredway.yaml");
  writeFileSync(
    file,
    `relay:
  listen: "10.1.0.1:20000"
  workers: 2
  shredVersion: 7
  leaders: { file: leaders.json }
  allowPrivateDestinations: true
  sources:
    - { name: edge, kind: multicast, interface: cable, tier: tier-1 }
    - { name: far, address: 10.1.0.2, tier: tier-1 }
  destinations: [ { address: "10.1.0.2:9000", tier: tier-1 } ]
operations: { listen: "127.0.0.1:9780" }
data: { directory: ./data }
`,
  );
  return file;
}

class Lab {
  readonly lab = TwoNamespaces.open();
  readonly peers: TransmitChild = this.lab.child(this.lab.far);
  readonly service: Shredway;

  constructor(file: string) {
    this.lab.ip(this.lab.near, "link set cable mtu 1476");
    this.lab.ip(this.lab.far, "link set cable mtu 1476", "route add 233.84.178.0/24 dev cable");
    const before = ["ip", "netns", "exec", this.lab.near];
    this.service = Shredway.in(before, "start", "--config", file);
    closing({ close: () => this.service.kill() });
  }

  metric(name: string, labels: string): number | null {
    const text = this.lab.run(this.lab.near, process.execPath, "-e", readMetrics);
    const line = text
      .split("\n")
      .find((each) => each.startsWith(`${name}{`) && each.includes(labels));
    return line === undefined ? null : Number(line.split(" ").at(-1));
  }

  async until(name: string, labels: string, value: number): Promise<void> {
    const end = performance.now() + 60_000;
    for (let seen = this.metric(name, labels); seen !== value; seen = this.metric(name, labels)) {
      if (performance.now() > end)
        throw new Error(
          `expected ${name}{${labels}} ${value}, got ${seen}\n${this.service.stdout}`,
        );
    }
  }

  joined(group: string, value: 0 | 1): Promise<void> {
    return this.until("shredway_relay_group_joined", `group="${group}"`, value);
  }

  packets(source: string, verdict: string, count: number): Promise<void> {
    const labels = `source="${source}",tier="tier-1",verdict="${verdict}"`;
    return this.until("shredway_relay_source_packets_total", labels, count);
  }
}

/** Resigned shreds with the signature of another retransmitter. */
function retransmitted(packets: readonly Uint8Array[], by: number): Uint8Array[] {
  return packets.map((packet) => {
    const isResigned = [0xb0, 0x70].includes((packet[64] ?? 0) & 0xf0);
    return isResigned ? Uint8Array.from(packet).fill(by, packet.length - 64) : packet;
  });
}

describe.skipIf(!hasTwoNamespaces)("multicast sources", () => {
  it("receive discovered groups for own use, and again after the interface returns", async () => {
    const traffic = new ShredTraffic({
      seed: 3,
      leaders: 1,
      firstSlot: 5000n,
      shredVersion: 7,
      fecSetsPerSlot: 4,
      slotNs: 400_000_000,
    });
    const leader = traffic.leaderKeys[0] ?? new Uint8Array(32);
    const lab = new Lab(configurationIn(temporaryFolder(), leader));
    const routes = [first, second].map((group) => `route add ${group} via 10.1.0.2 dev cable`);
    await lab.peers.call("openReceivers", ["10.1.0.2"], 9000);
    await lab.service.printed(/^ready /m);
    lab.lab.ip(lab.lab.near, ...routes);
    await lab.joined(first, 1);
    await lab.joined(second, 1);

    const slotPackets = () => traffic.completeSlot().packets.map(({ packet }) => packet);
    const packets = slotPackets();
    const total = packets.length;
    expect(retransmitted(packets, 1)).not.toEqual(retransmitted(packets, 2));
    await lab.peers.call("send", retransmitted(packets, 1), `${first}:7733`);
    await lab.packets(`edge/${first}`, "own_use", total);
    await lab.peers.call("send", retransmitted(packets, 2), `${second}:7733`);
    await lab.packets(`edge/${second}`, "duplicate", total);
    await lab.peers.call("send", [Buffer.from("445a0001", "hex")], `${first}:7733`);
    await lab.packets(`edge/${first}`, "heartbeat", 1);
    expect([...(await lab.peers.call<Map<string, number>>("counts")).values()]).toEqual([0]);
    await lab.peers.call("send", packets, "10.1.0.1:20000");
    await lab.packets("far", "first_forwardable", total);

    lab.lab.ip(lab.lab.near, "link set cable down");
    await lab.joined(first, 0);
    lab.lab.ip(lab.lab.near, "link set cable up", ...routes);
    await lab.joined(first, 1);
    const later = slotPackets();
    await lab.peers.call("send", later, `${first}:7733`);
    await lab.packets(`edge/${first}`, "own_use", total + later.length);
    lab.lab.ip(lab.lab.near, `route del ${first}`);
    await lab.joined(first, 0);
    await lab.service.printed(/its route through cable is gone/, "stderr");
    lab.service.signal("SIGTERM");
    expect((await lab.service.end()).code).toBe(0);
  });
});
