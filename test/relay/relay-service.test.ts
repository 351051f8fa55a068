import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { Service } from "../../src/app/service.ts";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import { buildSchedule } from "../../src/relay/leaders/schedule.ts";
import { RelayService } from "../../src/relay/relay-service.ts";
import { relayOptionsOf } from "../../src/relay/relay-tables.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { until } from "../support/network/udp-receiver.ts";
import { ShredTraffic } from "../support/shreds/shred-traffic.ts";
import { traceShred } from "../support/shredstream/test-block-engine.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let opened: { close(): void }[] = [];
afterEach(() => {
  for (const part of opened) part.close();
  opened = [];
});

const text = (destinations: string) => `relay:
  listen: "127.0.0.1:0"
  shredVersion: 99
  leaders: { file: leaders.json }
  allowPrivateDestinations: true
  sources: [ { name: local, address: 127.0.0.1, tier: tier-1 } ]
  destinations: [ ${destinations} ]
`;

function openService(slotFile?: string) {
  const config = parseConfig(text(""), "a.yaml");
  const relay = Relay.open({ ...relayOptionsOf(config.relay), prefault: false });
  opened.push(relay);
  const lines: string[] = [];
  const clock = new ManualClock();
  const next = { text: text("") };
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const service = new RelayService({
    relay,
    config,
    readLeaders: () => buildSchedule(50n, [{ key: new Uint8Array(32).fill(7), slots: [0, 49] }]),
    readOwnAddresses: () => [],
    ...(slotFile !== undefined && { slotFile }),
    log,
    clock,
  });
  const readConfig = () => parseConfig(next.text, "a.yaml");
  const whole = new Service({ relay: service, readConfig, log });
  return { service, whole, relay, lines, clock, next };
}

/** Sends the next slot, from `firstSlot` on, and returns its number of packets. */
function slotSender(relay: Relay, firstSlot: bigint, shredVersion: number): () => number {
  const traffic = { leaders: 1, firstSlot, fecSetsPerSlot: 1, slotNs: 100_000_000 };
  const maker = new ShredTraffic({ ...traffic, seed: 5, shredVersion });
  const sender = PacedSender.open({ to: relay.addresses[0] ?? "" });
  opened.push(sender);
  return () => {
    const packets = maker.completeSlot().packets.map(({ packet }) => packet);
    sender.enqueue(packets, new BigUint64Array(packets.length));
    return packets.length;
  };
}

describe("RelayService", () => {
  it("reports the slots of the schedule, and warns if the traffic has others", async () => {
    const { service, relay, lines, clock } = openService();
    expect(lines.join()).toContain("the leader schedule covers slots 50 to 99");
    const packets = slotSender(relay, 7000n, 99)();
    await until(
      () => service.snapshot().verdicts.unknown_leader === BigInt(packets),
      "all packets in a verdict",
    );
    await clock.advance(10_000);
    expect(lines.at(-1)).toContain("MOST SHREDS ARE DROPPED: 64 of the last 64 packets");
    service.close();
    expect(clock.pending).toBe(0);
  });

  it("warns if most shreds have another shred version", async () => {
    const { service, relay, lines, clock } = openService();
    slotSender(relay, 60n, 98)();
    await until(() => service.snapshot().verdicts.wrong_version === 64n, "all packets");
    await clock.advance(10_000);
    expect(lines.at(-1)).toContain("64 of the last 64 packets have another shred version");
    expect(service.trafficProblem).toContain("MOST SHREDS ARE DROPPED");
    service.close();
  });

  it("drops shreds of slots that it had passed before a restart", async () => {
    const slotFile = join(temporaryFolder(), "highest-slot.json");
    writeFileSync(slotFile, '{"slot":"92","shredVersion":99}');
    const { service, relay, lines } = openService(slotFile);
    expect(lines.join()).toContain("shreds of slots before 60 are dropped");
    const sendSlot = slotSender(relay, 59n, 99);
    for (const slot of [59, 60]) {
      const count = BigInt(sendSlot()) * BigInt(slot - 58);
      await until(() => service.snapshot().received === count, "all packets");
    }
    // Shreds of slot 60 get further. The schedule's key is not a public key.
    expect(service.snapshot().verdicts).toMatchObject({ slot_behind: 64n, unknown_leader: 64n });
    service.close();
  });

  it("applies own use on a reload, and reports a port of groups that needs a restart", () => {
    const { service, whole, lines, next } = openService();
    expect(service.snapshot().sources[0]).toMatchObject({ isForwarded: true });
    next.text = text("").replace("tier: tier-1 }", "tier: tier-1, forward: false }");
    whole.reload();
    expect(service.snapshot().sources[0]).toMatchObject({ isForwarded: false });
    const group =
      "{ name: edge, kind: multicast, groups: [239.255.79.1], interface: lo, tier: tier-1 }";
    next.text = text("").replace("tier: tier-1 }", `tier: tier-1 }, ${group}`);
    whole.reload();
    expect(lines.join()).toContain(
      "restart needed for: relay.sources (a port of multicast groups)",
    );
    expect(service.snapshot().sources.map(({ name, isForwarded }) => [name, isForwarded])).toEqual([
      ["local", true],
      ["edge", false],
    ]);
    expect(service.groups).toMatchObject([{ source: "edge", isJoined: false }]);
    expect(service.groupProblem).toContain("no multicast socket for 239.255.79.1:7733");
    service.close();
  });

  it("keeps the delays of trace packets from multicast groups until the group is gone", () => {
    const { service, whole, relay, clock, next } = openService();
    const packet = traceShred("ny", { seconds: 1, nanos: 0 });
    const trace = { source: "edge/239.255.79.1", receivedNs: 1_500_000_000n, packet };
    Object.assign(relay, { drainTraces: () => [trace] });
    const sources = () => service.traces.delays().map(({ source }) => source);
    const edge = (groups: string) =>
      text("").replace(
        "tier: tier-1 }",
        `tier: tier-1 }, { name: edge, kind: multicast, groups: [${groups}], interface: lo, tier: tier-1 }`,
      );
    next.text = edge("239.255.79.1, 239.255.79.2");
    expect(whole.reload()).toBe(true);
    service.traces.update();
    expect(whole.reload()).toBe(true);
    expect(sources()).toEqual([trace.source]);
    next.text = edge("239.255.79.2, 239.255.79.3");
    expect(whole.reload()).toBe(true);
    expect(sources()).toEqual([]);
    service.close();
    expect(clock.pending).toBe(0);
  });

  it("reports that another node needs a restart, and rejects a configuration without file and node", () => {
    const { service, whole, lines, next } = openService();
    next.text = `solana: { rpc: "http://127.0.0.1:1/" }\n${text("")}`;
    expect(whole.reload()).toBe(true);
    expect(lines.at(-1)).toContain("restart needed for: solana.rpc");
    next.text = next.text.replace("  leaders: { file: leaders.json }\n", "");
    expect(whole.reload()).toBe(false);
    expect(lines.at(-1)).toContain("started without solana.rpc");
    service.close();
  });

  it("reports that another folder needs a restart, since no gateway does", () => {
    const { service, whole, lines, next } = openService(join(temporaryFolder(), "slot.json"));
    next.text = `data: { directory: other }\n${text("")}`;
    expect(whole.reload()).toBe(true);
    expect(lines.at(-1)).toContain('restart needed for: data.directory"');
    next.text = text("");
    lines.length = 0;
    expect(whole.reload()).toBe(true);
    expect(lines.join()).not.toContain("restart needed");
    service.close();
  });

  it("reports that a gateway needs a restart", () => {
    const { service, whole, lines, next } = openService();
    const key = "11111111111111111111111111111111";
    next.text = `http: {}\ntips: { addresses: [ "${key}" ] }\n${text("")}`;
    expect(whole.reload()).toBe(true);
    expect(lines.at(-1)).toContain("restart needed for: http");
    service.close();
  });

  it("returns the current and the next leader", () => {
    const { service, clock } = openService();
    expect(service.leaders()).toEqual({ slot: null, current: null, next: null });
    service.slots.slotClock.noteRpc(50n, clock.nowNs());
    const leader = pubkeyOf(new Uint8Array(32).fill(7));
    expect(service.leaders()).toEqual({ slot: 50n, current: leader, next: null });
    service.close();
  });

  it("returns the active schedule, and reports each new one", () => {
    const { service, whole } = openService();
    expect(service.schedule).toMatchObject({ firstSlot: 50n, epochFirstSlots: [50n] });
    const before = service.schedule;
    const notifications: unknown[] = [];
    const end = service.onSchedule((schedule) => void notifications.push(schedule));
    expect(whole.reload()).toBe(true);
    expect(notifications).toEqual([service.schedule]);
    expect(notifications[0]).toBe(service.schedule);
    expect(service.schedule).not.toBe(before);
    end();
    whole.reload();
    expect(notifications).toHaveLength(1);
    service.close();
  });

  it("rejects a destination that is its own listener", () => {
    const { service, whole, relay, lines, next } = openService();
    next.text = text(`{ address: "${relay.addresses[0]}", tier: tier-1 }`);
    expect(whole.reload()).toBe(false);
    expect(lines.at(-1)).toContain("is a listener of the relay itself");
    expect(service.config.destinations).toEqual([]);
    service.close();
  });
});
