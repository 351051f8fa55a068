// The typed interface of the relay: life cycle, misuse, whole tables, counters across table changes.
// Native tests and test/integration cover packets.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { describeNative, native } from "../../../src/relay/data-plane/native.ts";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { Relay } from "../../../src/relay/data-plane/relay.ts";
import type { RelayOptions } from "../../../src/relay/data-plane/relay-options.ts";
import { Shredder, type SlotPosition } from "../../../src/relay/data-plane/shredder.ts";
import { buildSchedule } from "../../../src/relay/leaders/schedule.ts";
import { closing } from "../../support/closing.ts";
import { UdpReceiver, until } from "../../support/network/udp-receiver.ts";

const options: RelayOptions = {
  listen: ["127.0.0.1:0"],
  workers: 1,
  tiers: ["tier-1", "tier-2"],
  authentication: "leader-schedule",
  shredVersion: 1,
  prefault: false,
};

function reasonOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof ShredwayError) return `${error.reason}: ${error.message}`;
    throw error;
  }
  return "nothing thrown";
}

const shredder = new Shredder(new Uint8Array(32).fill(7));
function position(slot: bigint): SlotPosition {
  return {
    slot,
    parentOffset: 1,
    version: 1,
    chainedRoot: new Uint8Array(32),
    nextFecSetIndex: 0,
  };
}
function shredsOf(slot: bigint): Uint8Array[] {
  const entries = new Uint8Array(5000).fill(3);
  return shredder.shred(entries, { position: position(slot), referenceTick: 1, lastInSlot: true })
    .packets;
}
function send(relay: Relay, packets: readonly Uint8Array[]): void {
  const sender = closing(PacedSender.open({ to: relay.addresses[0] ?? "", from: "127.0.0.2:0" }));
  sender.enqueue(packets, new BigUint64Array(packets.length));
}

describe("Relay", () => {
  it("names invalid options, addresses and tables, and does not change", async () => {
    expect(reasonOf(() => Relay.open({ ...options, listen: ["localhost:1"] }))).toMatch(
      /^address_invalid: .*localhost/,
    );
    expect(reasonOf(() => Relay.open({ ...options, workers: 2 }))).toMatch(
      /^relay_open: .*port other than 0/,
    );
    expect(reasonOf(() => Relay.open({ ...options, workers: 1000 }))).toMatch(/^relay_open/);
    expect(reasonOf(() => Relay.open({ ...options, tiers: [] }))).toMatch(/1 to 8 tiers, got 0/);
    const occupied = createSocket("udp4").bind(0, "127.0.0.1");
    await once(occupied, "listening");
    const address = `127.0.0.1:${occupied.address().port}`;
    expect(reasonOf(() => Relay.open({ ...options, listen: [address] }))).toContain(address);
    occupied.close();

    const relay = closing(Relay.open(options));
    const receiver = closing(await UdpReceiver.open());
    relay.publishSources([{ name: "a", address: "127.0.0.0/8", tier: "tier-1" }]);
    relay.publishDestinations([{ address: receiver.address, tier: "tier-1" }]);
    relay.publishLeaders(buildSchedule(90n, [{ key: shredder.publicKey, slots: [10] }]));
    const refused = [
      () => relay.publishSources([{ name: "x", address: "127.0.0.1", tier: "gold" }]),
      () => relay.publishSources([{ name: "x", tier: "tier-1" }]),
      () =>
        relay.publishSources([
          { name: "x", address: "10.0.0.1", tier: "tier-1" },
          { name: "y", address: "10.0.0.1", tier: "tier-1" },
        ]),
      () => relay.publishDestinations([{ address: "127.0.0.1:0", tier: "tier-1" }]),
      () =>
        relay.publishDestinations([
          { address: "127.0.0.1:9", tier: "tier-1" },
          { address: "127.0.0.1:9", tier: "tier-2" },
        ]),
      () =>
        relay.publishDestinations([
          { address: "127.0.0.1:9", tier: "tier-1" },
          { address: "[::ffff:127.0.0.1]:9", tier: "tier-2" },
        ]),
      () => relay.publishDestinations([{ address: "127.0.0.1:9", tier: "gold" }]),
    ];
    for (const call of refused)
      expect(reasonOf(call)).toMatch(/^(table_refused|unknown_tier|address_invalid)/);

    send(relay, shredsOf(100n));
    await until(() => receiver.packets.length === 64, "64 shreds by the tables before");
    expect(relay.snapshot().sources.map(({ name, first }) => [name, first])).toEqual([["a", 64n]]);
  });

  it("may be closed repeatedly, and rejects work afterwards", () => {
    const relay = Relay.open(options);
    relay.close();
    relay.close();
    expect(reasonOf(() => relay.snapshot())).toMatch(/^relay_closed/);
    expect(reasonOf(() => relay.publishSources([]))).toMatch(/^relay_closed/);
    expect(reasonOf(() => relay.drainEvents())).toMatch(/^relay_closed/);
  });

  it("continues a destination's counts across table changes, and starts at zero when its number is reused", async () => {
    const relay = closing(Relay.open(options));
    const receiver = closing(await UdpReceiver.open());
    const other = closing(await UdpReceiver.open());
    relay.publishSources([{ name: "a", address: "127.0.0.0/8", tier: "tier-1" }]);
    relay.publishLeaders(buildSchedule(100n, [{ key: shredder.publicKey, slots: [0, 1, 2] }]));
    relay.publishDestinations([{ address: receiver.address, tier: "tier-1" }]);
    send(relay, shredsOf(100n));
    await until(() => receiver.packets.length === 64, "the first slot");
    relay.publishDestinations([
      { address: other.address, tier: "tier-2" },
      { address: receiver.address, tier: "tier-2", name: "mine" },
    ]);
    send(relay, shredsOf(101n));
    await until(() => other.packets.length === 64 && receiver.packets.length === 128, "the second");
    await until(() => relay.snapshot().latency.count === 128n, "128 latencies");
    const rows = relay.snapshot().destinations.map(({ name, tier, sent }) => [name, tier, sent]);
    expect(rows).toEqual([
      [other.address, "tier-2", 64n],
      ["mine", "tier-2", 128n],
    ]);

    // Assigns all numbers, so that the next new address must reuse one.
    const { destinations: max } = describeNative().limits;
    const many = Array.from({ length: max }, (_, i) => ({
      address: `127.1.${i >> 8}.${i & 255}:9`,
      tier: "tier-1",
    }));
    relay.publishDestinations(many);
    relay.publishDestinations([{ address: receiver.address, tier: "tier-1" }]);
    expect(relay.snapshot().destinations[0]?.sent).toBe(0n);
    send(relay, shredsOf(102n));
    await until(() => receiver.packets.length === 192, "the third");
    await until(() => relay.snapshot().destinations[0]?.sent === 64n, "64 counted");
    expect(
      reasonOf(() =>
        relay.publishDestinations([...many, { address: "127.2.0.1:9", tier: "tier-1" }]),
      ),
    ).toMatch(/^table_refused/);
  });

  it("counts the packets of all former sources in the totals, also after their numbers are reused", async () => {
    const relay = closing(Relay.open(options));
    const { sources: max } = describeNative().limits;
    const publish = (prefix: string) =>
      relay.publishSources(
        Array.from({ length: max }, (_, i) => ({
          name: `${prefix}${i}`,
          address: `127.0.${i >> 8}.${i & 255}`,
          tier: "tier-1",
        })),
      );
    publish("former");
    send(relay, shredsOf(100n));
    await until(() => relay.snapshot().verdicts.unknown_leader === 64n, "the first slot");
    publish("new");
    send(relay, shredsOf(101n));
    await until(() => relay.snapshot().received === 128n, "the second slot");
    const { verdicts, sources } = relay.snapshot();
    expect(verdicts.unknown_leader).toBe(128n);
    expect(sources.find(({ name }) => name === "new2")?.received).toBe(64n);
  });

  it("sends nothing that only a source for own use delivered, and counts it", async () => {
    const relay = closing(Relay.open(options));
    const receiver = closing(await UdpReceiver.open());
    const publish = (forward?: boolean) =>
      relay.publishSources([
        {
          name: "own",
          address: "127.0.0.2",
          tier: "tier-1",
          ...(forward !== undefined && { forward }),
        },
      ]);
    relay.publishDestinations([{ address: receiver.address, tier: "tier-1" }]);
    relay.publishLeaders(buildSchedule(100n, [{ key: shredder.publicKey, slots: [0] }]));
    publish(false);
    send(relay, shredsOf(100n));
    await until(() => relay.snapshot().verdicts.own_use === 64n, "64 shreds for own use");
    const { sources, destinations, slots } = relay.snapshot();
    expect(sources[0]).toMatchObject({ isForwarded: false, first: 64n });
    expect(destinations[0]?.sent).toBe(0n);
    expect(slots).toMatchObject([{ slot: 100n, data: 32, code: 32 }]);

    publish();
    send(relay, shredsOf(100n));
    await until(() => receiver.packets.length === 64, "64 forwarded shreds");
    await until(() => relay.snapshot().verdicts.first_forwardable === 64n, "their verdicts");
    expect(relay.snapshot().sources[0]).toMatchObject({ isForwarded: true, first: 64n });
  });

  it("reports slots, workers and events", async () => {
    const relay = closing(Relay.open(options));
    relay.publishSources([{ name: "a", address: "127.0.0.2", tier: "tier-1" }]);
    relay.publishLeaders(buildSchedule(100n, [{ key: shredder.publicKey, slots: [0] }]));
    const entries = new Uint8Array(5000).fill(9); // another block for the same slot
    const equivocation = shredder.shred(entries, {
      position: position(100n),
      referenceTick: 1,
      lastInSlot: true,
    }).packets;
    send(relay, [...shredsOf(100n), ...equivocation]);
    await until(() => relay.snapshot().received === 128n, "128 packets");
    const { slots, workers, verdicts } = relay.snapshot();
    expect(slots).toMatchObject([
      { slot: 100n, data: 32, code: 32, highestDataIndex: 31, lastDataIndex: 31 },
    ]);
    expect(slots[0]?.firstSeenNs).toBeLessThanOrEqual(slots[0]?.lastSeenNs ?? 0n);
    expect(workers[0]?.signature_checks).toBe(2n);
    expect([verdicts.first, verdicts.equivocation]).toEqual([64n, 64n]);
    const events = relay.drainEvents();
    expect(events.filter(({ kind }) => kind === "equivocation")).toHaveLength(64);
    expect(events.find(({ kind }) => kind === "equivocation")).toMatchObject({
      subject: "a",
      slot: 100n,
      fecSetIndex: 0,
    });
    expect(events.some(({ kind }) => kind === "window_anchored")).toBe(true);
    expect(relay.drainEvents()).toEqual([]);
  });

  it("answers ownership challenges only with the option", async () => {
    const service = createSocket("udp4").bind(0, "127.0.0.1");
    closing({ close: () => void service.close() });
    await once(service, "listening");
    const answers: string[] = [];
    service.on("message", (packet, { port }) => answers.push(`${packet.toString()} ${port}`));
    const challenge = `SWPROOF1${"t".repeat(16)} and more`;
    const [answering, silent] = [{ ...options, answerChallenges: true }, options].map((each) => {
      const relay = closing(Relay.open(each));
      relay.publishSources([{ name: "a", address: "127.0.0.1", tier: "tier-1" }]);
      service.send(challenge, Number(relay.addresses[0]?.split(":")[1]));
      return relay;
    });
    await until(() => silent?.snapshot().verdicts.too_short === 1n, "the one that is not answered");
    await until(() => answers.length > 0, "an answer");
    expect(answers).toEqual([`${challenge} ${answering?.addresses[0]?.split(":")[1]}`]);
    expect(answering?.snapshot().verdicts).toMatchObject({ challenge: 1n, too_short: 0n });
  });

  it("serves IPv6 sources and destinations", async ({ skip }) => {
    const receiver = await UdpReceiver.open("::1").catch(() => undefined);
    if (!receiver) {
      skip("this machine has no IPv6");
      return;
    }
    closing(receiver);
    const relay = closing(Relay.open({ ...options, listen: ["[::1]:0"] }));
    relay.publishSources([{ name: "a", address: "::1", tier: "tier-1" }]);
    relay.publishLeaders(buildSchedule(100n, [{ key: shredder.publicKey, slots: [0] }]));
    relay.publishDestinations([{ address: receiver.address, tier: "tier-1" }]);
    const packets = shredsOf(100n);
    const sender = closing(PacedSender.open({ to: relay.addresses[0] ?? "" }));
    sender.enqueue(packets, new BigUint64Array(packets.length));
    await until(() => receiver.packets.length === 64, "64 shreds over IPv6");
  });

  it("ends silently with its environment", async () => {
    const worker = new Worker(
      `const addon = require("node-gyp-build")(${JSON.stringify(process.cwd())});
       const address = Buffer.alloc(18); address[10] = address[11] = 0xff; address[12] = 127; address[15] = 1;
       const relay = new addon.Relay({ listen: [address], prefault: false });
       new addon.PacedSender(Buffer.from([...address.subarray(0, 16), 9, 0]), address, 1 << 20);
       require("node:worker_threads").parentPort.postMessage(relay.addresses()[0]);
       setInterval(() => {}, 1_000);`,
      { eval: true },
    );
    const [address] = await once(worker, "message");
    const port = Number(String(address).split(":").at(-1));
    const take = async () => {
      const socket = createSocket("udp4");
      closing({ close: () => void socket.close() });
      socket.bind(port, "127.0.0.1");
      await once(socket, "listening");
      return socket.address().port;
    };
    await expect(take()).rejects.toMatchObject({ code: "EADDRINUSE" });
    expect(await worker.terminate()).toBe(1);
    expect(await take()).toBe(port); // its sockets are closed
  });
});

describe("the native boundary", () => {
  const addon = native();
  const throwingField = <T extends object>(name: string, rest: T): T =>
    Object.defineProperty({ ...rest }, name, {
      get() {
        throw new Error(`no ${name} today`);
      },
    });
  const plain = {
    listen: [new Uint8Array(18)],
    workers: 1,
    authenticate: true,
    shredVersion: 1,
    tierCount: 1,
  };

  it("forwards errors of option getters", () => {
    for (const name of ["listen", "cpus", "workers", "authenticate", "sendFrom"]) {
      expect(() => new addon.Relay(throwingField(name, plain))).toThrow(`no ${name} today`);
    }
    const listen = Object.defineProperty([new Uint8Array(18)], 0, {
      get() {
        throw new Error("no element today");
      },
    });
    expect(() => new addon.Relay({ ...plain, listen })).toThrow("no element today");
    const direct = new addon.Shredder(new Uint8Array(32));
    for (const name of ["slot", "parentOffset", "version", "chainedRoot", "nextFecSetIndex"]) {
      const odd = throwingField(name, position(5n));
      expect(() => direct.shred(new Uint8Array(1), odd, 0, false)).toThrow(`no ${name} today`);
    }
  });

  it("survives entries that a getter removes", () => {
    const entries = new Uint8Array(20_000).fill(1);
    const odd = Object.defineProperty({ ...position(5n) }, "slot", {
      get() {
        structuredClone(entries.buffer, { transfer: [entries.buffer] });
        return 5n;
      },
    });
    const created = new addon.Shredder(new Uint8Array(32)).shred(entries, odd, 0, false);
    expect(created.nextFecSetIndex).toBe(32); // an empty batch: the entries are missing
  });

  it("retains a source's counts after a rejected table", async () => {
    const relay = closing(Relay.open(options));
    relay.publishSources([{ name: "a", address: "127.0.0.2", tier: "tier-1" }]);
    relay.publishLeaders(buildSchedule(100n, [{ key: shredder.publicKey, slots: [0] }]));
    send(relay, shredsOf(100n));
    await until(() => relay.snapshot().received === 64n, "64 packets");
    const twice = { address: "10.0.0.1", tier: "tier-1" };
    const refused = () =>
      relay.publishSources([
        { name: "b", ...twice },
        { name: "c", ...twice },
      ]);
    expect(reasonOf(refused)).toMatch(/^table_refused/);
    relay.publishSources([{ name: "a", address: "127.0.0.2", tier: "tier-1" }]);
    expect(relay.snapshot().sources[0]?.received).toBe(64n);
  });
});

describe("Shredder", () => {
  it("rejects oversized batches and advances only on success", () => {
    const full = { ...position(5n), nextFecSetIndex: 32_768 - 32 };
    const entries = new Uint8Array(40_000);
    const shred = () =>
      shredder.shred(entries, { position: full, referenceTick: 0, lastInSlot: false });
    expect(reasonOf(shred)).toMatch(/^shred_refused/);
    expect(reasonOf(() => new Shredder(new Uint8Array(31)))).toContain("32 bytes, got 31");
    const next = shredder.shred(entries, {
      position: position(5n),
      referenceTick: 0,
      lastInSlot: false,
    });
    expect(next.packets).toHaveLength(128);
    expect(next.position.nextFecSetIndex).toBe(64);
    expect(next.position.chainedRoot).not.toEqual(position(5n).chainedRoot);
  });
});
