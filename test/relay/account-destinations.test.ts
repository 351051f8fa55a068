// Destinations of accounts on a real relay: delivered shreds across reloads and rejections, and reports
// of closed ports.

import { describe, expect, it } from "vitest";
import { Service } from "../../src/app/service.ts";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { describeNative } from "../../src/relay/data-plane/native.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import type { LeaderSchedule } from "../../src/relay/leaders/schedule.ts";
import { RelayService } from "../../src/relay/relay-service.ts";
import { relayOptionsOf } from "../../src/relay/relay-tables.ts";
import { ErrorRun } from "../../src/shreds/destinations/ownership-proof.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { closing } from "../support/closing.ts";
import { freeUdpPort } from "../support/network/free-ports.ts";
import { UdpReceiver, until } from "../support/network/udp-receiver.ts";
import { ShredTraffic } from "../support/shreds/shred-traffic.ts";

const configText = (destinations: readonly string[], listen = { port: 0, workers: 1 }) => `relay:
  listen: "127.0.0.1:${listen.port}"
  workers: ${listen.workers}
  shredVersion: 99
  leaders: { file: leaders.json }
  allowPrivateDestinations: true
  sources: [ { name: local, address: 127.0.0.1, tier: tier-1 } ]
  destinations: [ ${destinations.map((address) => `{ address: "${address}", tier: tier-1 }`).join(", ")} ]
`;

function openService(destinations: readonly string[] = [], listen = { port: 0, workers: 1 }) {
  const traffic = { leaders: 1, firstSlot: 7000n, fecSetsPerSlot: 1, slotNs: 100_000_000 };
  const maker = new ShredTraffic({ ...traffic, seed: 5, shredVersion: 99 });
  const config = parseConfig(configText(destinations, listen), "a.yaml");
  const relay = Relay.open({ ...relayOptionsOf(config.relay), prefault: false });
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const clock = new ManualClock();
  const next: { text: string; schedule: LeaderSchedule } = {
    text: configText(destinations, listen),
    schedule: maker.schedule(6000n, 2000),
  };
  const service = closing(
    new RelayService({
      relay,
      config,
      readLeaders: () => next.schedule,
      readOwnAddresses: () => [],
      log,
      clock,
    }),
  );
  const readConfig = () => parseConfig(next.text, "a.yaml");
  const whole = new Service({ relay: service, readConfig, log });
  const sender = closing(PacedSender.open({ to: relay.addresses[0] ?? "" }));
  /** One slot of 64 shreds. */
  const sendSlot = () => {
    const packets = maker.completeSlot().packets.map(({ packet }) => packet);
    sender.enqueue(packets, new BigUint64Array(packets.length));
  };
  const inForce = () => relay.snapshot().destinations.map(({ name }) => name);
  return { service, whole, relay, lines, clock, next, sendSlot, inForce };
}

const ofAccount = (address: string, tier = "tier-1") => ({ address, tier, name: `of ${address}` });

async function closedAddress(): Promise<string> {
  const gone = await UdpReceiver.open();
  await gone.close();
  return gone.address;
}

describe("setAccountDestinations", () => {
  it("sends to them immediately, in addition to configured ones, across reloads, until the next list", async () => {
    const [fixed, alpha, bravo] = [
      closing(await UdpReceiver.open()),
      closing(await UdpReceiver.open()),
      closing(await UdpReceiver.open()),
    ];
    const { service, whole, next, sendSlot, inForce } = openService([fixed.address]);
    service.setAccountDestinations([ofAccount(alpha.address)]);
    expect(inForce()).toEqual([fixed.address, `of ${alpha.address}`]);
    sendSlot();
    await until(() => fixed.packets.length === 64 && alpha.packets.length === 64, "the first slot");

    next.text = configText([]);
    expect(whole.reload()).toBe(true);
    service.setAccountDestinations([ofAccount(bravo.address), ofAccount(alpha.address)]);
    expect(inForce()).toEqual([`of ${bravo.address}`, `of ${alpha.address}`]);
    sendSlot();
    await until(() => bravo.packets.length === 64, "the second slot, at the new one");
    await until(() => alpha.packets.length === 128, "the second slot, at the old one");

    service.setAccountDestinations([ofAccount(bravo.address)]);
    sendSlot();
    await until(() => bravo.packets.length === 128, "the third slot");
    expect([fixed.packets.length, alpha.packets.length]).toEqual([64, 128]);
  });

  it("copies the list: later changes by the caller have no effect", () => {
    const { service, whole, inForce } = openService();
    const list = [ofAccount("127.0.0.1:9")];
    service.setAccountDestinations(list);
    list.push(ofAccount("127.0.0.1:10"));
    expect(whole.reload()).toBe(true);
    expect(inForce()).toEqual(["of 127.0.0.1:9"]);
  });

  it("is restored after a failed reload", () => {
    const { service, whole, lines, next, inForce } = openService(["127.0.0.1:9"]);
    service.setAccountDestinations([ofAccount("127.0.0.1:10")]);
    const before = ["127.0.0.1:9", "of 127.0.0.1:10"];
    next.text = configText(["127.0.0.1:11"]);
    const { schedule } = next;
    next.schedule = { ...schedule, keys: [] }; // rejected after the destinations were published
    expect(whole.reload()).toBe(false);
    expect(lines.at(-1)).toContain("reload failed");
    expect(inForce()).toEqual(before);
    next.schedule = schedule;
    expect(whole.reload()).toBe(true);
    expect(inForce()).toEqual(["127.0.0.1:11", "of 127.0.0.1:10"]);
  });

  it("skips configured destinations, including new ones, and its own listeners", () => {
    const { service, whole, relay, lines, next, inForce } = openService(["127.0.0.1:9"]);
    const own = relay.addresses[0] ?? "";
    const list = ["127.0.0.1:9", own, "127.0.0.1:10"].map((address) => ofAccount(address));
    service.setAccountDestinations(list);
    service.setAccountDestinations(list);
    expect(inForce()).toEqual(["127.0.0.1:9", "of 127.0.0.1:10"]);
    const warned = () => lines.filter((line) => line.includes("is not served: "));
    expect(warned()).toHaveLength(2);
    expect(warned().join()).toContain("it is a listener of the relay itself");
    next.text = configText(["127.0.0.1:10"]);
    expect(whole.reload()).toBe(true);
    expect(inForce()).toEqual(["127.0.0.1:10", "of 127.0.0.1:9"]);
    expect(warned()).toHaveLength(3);
  });

  it("accepts the widest tiers up to the relay's limit, and reports how many are left out", () => {
    const { service, lines, inForce } = openService(["127.0.0.1:9"]);
    const { destinations: max } = describeNative().limits;
    const narrow = Array.from({ length: max }, (_, i) =>
      ofAccount(`127.1.${i >> 8}.${i & 255}:9`, "tier-1"),
    );
    const wide = ofAccount("127.0.0.1:10", "tier-2");
    service.setAccountDestinations([...narrow, wide]);
    expect(inForce()).toHaveLength(max);
    expect(inForce().slice(0, 2)).toEqual(["127.0.0.1:9", wide.name]);
    expect(lines.at(-1)).toContain("2 account destinations of the narrowest tiers are not served");
    service.setAccountDestinations([wide]);
    expect(inForce()).toEqual(["127.0.0.1:9", wide.name]);
  });

  it("never throws, and replaces the old table for any list", () => {
    const { service, inForce } = openService();
    service.setAccountDestinations([ofAccount("127.0.0.1:10")]);
    service.setAccountDestinations([
      ofAccount("nowhere"),
      ofAccount("127.0.0.1:11", "tier-9"),
      ofAccount("[::ffff:127.0.0.1]:12"),
      ofAccount("127.0.0.1:12"),
    ]);
    expect(inForce()).toEqual(["of [::ffff:127.0.0.1]:12"]);
    service.close();
    service.setAccountDestinations([ofAccount("127.0.0.1:13")]);
  });

  it("warns about an empty table only if it is empty", () => {
    const { service } = openService();
    const text = "relay.destinations is empty";
    expect(service.warnings().join()).toContain(text);
    service.setAccountDestinations([ofAccount("127.0.0.1:10")]);
    expect(service.warnings().join()).not.toContain(text);
    service.setAccountDestinations([]);
    expect(service.warnings().join()).toContain(text);
  });
});

describe("onUnreachable", () => {
  it("reports an account's closed port, and the statistics count the same errors", async () => {
    const [fixed, gone] = [await closedAddress(), await closedAddress()];
    const there = closing(await UdpReceiver.open());
    const { service, clock, sendSlot } = openService([fixed]);
    const notifications: [string, bigint][] = [];
    service.onUnreachable((address, atNs) => notifications.push([address, atNs]));
    service.setAccountDestinations([ofAccount(gone), ofAccount(there.address)]);
    const counted = new Map<string, number>();
    const count = () => {
      for (const [name, times] of Object.entries(service.countEvents()))
        counted.set(name, (counted.get(name) ?? 0) + times);
    };
    const icmp = (address: string) =>
      service.snapshot().destinations.find((each) => each.address === address)?.icmp ?? 0n;
    sendSlot();
    await until(() => icmp(gone) > 0n && icmp(fixed) > 0n, "ICMP errors of both");
    count();
    expect(notifications).toEqual([]); // drained for the statistics, not reported yet
    sendSlot();
    await until(() => there.packets.length === 128, "the second slot");
    let errors = 0n;
    do {
      // Some are drained by the timer first, others by the statistics.
      await clock.advance(250);
      const allCounted = () => {
        count();
        return BigInt(counted.get(`icmp_error ${gone}`) ?? 0) === icmp(gone);
      };
      await until(allCounted, "every error in the statistics");
      errors = icmp(gone);
      await clock.advance(250);
    } while (icmp(gone) !== errors);
    expect(notifications.map(([address]) => address)).toEqual(
      Array.from({ length: Number(errors) }, () => gone),
    );
    expect(notifications.at(-1)?.[1]).toBeGreaterThan(1_700_000_000_000_000_000n);
    expect(counted.get(`icmp_error ${fixed}`)).toBeGreaterThan(0);
  });

  it("reports enough errors of a closed port to pause it, whichever of two workers sends", async () => {
    const gone = await closedAddress();
    const twoWorkers = { port: await freeUdpPort(), workers: 2 };
    const { service, relay, clock, sendSlot } = openService([], twoWorkers);
    const run = new ErrorRun();
    const answers: boolean[] = [];
    service.onUnreachable((_, atNs) => answers.push(run.add(Number(atNs / 1_000_000n))));
    service.setAccountDestinations([ofAccount(gone)]);
    // Errors have the kernel's time, so this takes the 10 s of the rule.
    for (const endMs = Date.now() + 60_000; !answers.includes(true) && Date.now() < endMs; ) {
      for (let i = 0; i < 10; i++) {
        sendSlot();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      await clock.advance(250); // returns the records of both workers
    }
    expect(answers).toContain(true);
    const senders = relay.snapshot().workers.filter((worker) => worker.send_calls > 0n);
    expect(senders).toHaveLength(2);
  });

  it("does not report a removed destination, and reports a present one by its own address", async () => {
    const gone = await closedAddress();
    const { service, clock, sendSlot } = openService();
    const notifications: string[] = [];
    service.onUnreachable((address) => {
      notifications.push(address);
      service.setAccountDestinations([]); // it pauses, and the others of this quarter second are ignored
    });
    service.setAccountDestinations([ofAccount(gone)]);
    const icmp = () => service.snapshot().destinations[0]?.icmp ?? 0n;
    sendSlot();
    await until(() => icmp() > 0n, "an ICMP error");
    sendSlot();
    await until(() => icmp() > 1n, "one more");
    await clock.advance(250);
    expect(notifications).toEqual([gone]);
    await clock.advance(250);
    expect(notifications).toEqual([gone]);
    const { [`icmp_error ${gone}`]: counted } = service.countEvents();
    expect(counted).toBeGreaterThan(1);
    const another = await closedAddress();
    service.setAccountDestinations([ofAccount(another)]);
    sendSlot();
    await until(() => icmp() > 0n, "an ICMP error of the new one");
    await clock.advance(250);
    expect(notifications).toEqual([gone, another]);
  });
});
