// A watched transaction, from a datagram to JavaScript, through the addon. Native tests cover the
// deshredder.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { Landing, LandingReport } from "../../../src/relay/data-plane/landings.ts";
import { describeNative } from "../../../src/relay/data-plane/native.ts";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { Relay } from "../../../src/relay/data-plane/relay.ts";
import { Shredder } from "../../../src/relay/data-plane/shredder.ts";
import {
  encodeEndpoint,
  encodeLeaders,
  encodeSources,
} from "../../../src/relay/data-plane/tables.ts";
import { buildSchedule } from "../../../src/relay/leaders/schedule.ts";
import { closing } from "../../support/closing.ts";
import { UdpReceiver, until } from "../../support/network/udp-receiver.ts";
import { slotPackets } from "../../support/shreds/slot-packets.ts";

const shredder = new Shredder(new Uint8Array(32).fill(9));
const random = new SeededRandom(4);

/** A legacy transaction of one signer and no instruction. */
function transaction(): { signature: Uint8Array; wire: Uint8Array } {
  const signature = new Uint8Array(64);
  random.fillBytes(signature);
  const message = [1, 0, 0, 1, ...new Uint8Array(64).fill(5), 0];
  return { signature, wire: Uint8Array.from([1, ...signature, ...message]) };
}

function batchOf(wires: readonly Uint8Array[]): Uint8Array {
  const header = Buffer.alloc(8 + 48);
  header.writeBigUInt64LE(1n, 0); // entries
  header.writeBigUInt64LE(1n, 8); // hashes
  header.writeBigUInt64LE(BigInt(wires.length), 48);
  return Buffer.concat([header, ...wires]);
}

function shredsOf(slot: bigint, wires: readonly Uint8Array[]): Uint8Array[] {
  return slotPackets(shredder, slot, [batchOf(wires)]);
}

/** An update-parent marker, in place of a batch. */
function updateParentMarker(): Uint8Array {
  const head = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 41, 0];
  return Uint8Array.from([...head, 1, ...new Uint8Array(40)]);
}

function openRelay(deshred = true): {
  relay: Relay;
  send: (packets: readonly Uint8Array[]) => void;
} {
  const relay = closing(
    Relay.open({
      listen: ["127.0.0.1:0"],
      workers: 1,
      tiers: ["tier-1"],
      authentication: "leader-schedule",
      shredVersion: 1,
      prefault: false,
      deshred,
    }),
  );
  relay.publishSources([{ name: "a", address: "127.0.0.0/8", tier: "tier-1" }]);
  const slots = Array.from({ length: 50 }, (_, i) => i);
  relay.publishLeaders(buildSchedule(100n, [{ key: shredder.publicKey, slots }]));
  const sender = closing(PacedSender.open({ to: relay.addresses[0] ?? "", from: "127.0.0.2:0" }));
  return {
    relay,
    send: (packets) => sender.enqueue(packets, new BigUint64Array(packets.length)),
  };
}

/** Reports since the last call, which must all be landings. */
function landingsOf(relay: Relay): Landing[] {
  return relay.drainLandings().map((report) => {
    if (report.kind === "landing") return report;
    return expect.fail("a slot began again");
  });
}

describe("landings", () => {
  it("are reported for watched signatures, from half of the shreds, with a notification", async () => {
    const { relay, send } = openRelay();
    const transactions = Array.from({ length: 40 }, transaction);
    const wanted = [transactions[3], transactions[39]].map(
      (one) => one?.signature ?? expect.fail(),
    );
    relay.watchSignatures(wanted);
    const landings: Landing[] = [];
    relay.onLandings(() => landings.push(...landingsOf(relay)));
    const packets = shredsOf(
      120n,
      transactions.map(({ wire }) => wire),
    );
    send(packets.filter((_, i) => i % 2 === 1));
    await until(() => landings.length === 2, "both landings");
    expect(landings.map(({ signature }) => signature)).toEqual(wanted);
    expect(landings.map(({ ordinal }) => ordinal)).toEqual([3, 39]);
    expect(landings[0]).toMatchObject({ slot: 120n, batchIndex: 0, remembered: false });
    const { deshred } = relay.snapshot();
    expect(deshred).toMatchObject({ watched: 2n, landings: 2n, landings_lost: 0n });
    expect(deshred.reportLatency.count).toBe(2n);
    expect(Number(landings[0]?.seenNs)).toBeGreaterThan(1.7e18);
  });

  it("are withdrawn by an update-parent marker that follows them", async () => {
    const { relay, send } = openRelay();
    const [first, second] = [transaction(), transaction()];
    relay.watchSignatures([first.signature, second.signature]);
    await until(() => relay.snapshot().deshred.watched === 2n, "the watches");
    const reports: LandingReport[] = [];
    relay.onLandings(() => reports.push(...relay.drainLandings()));
    const batches = [
      batchOf([first.wire, second.wire]),
      updateParentMarker(),
      batchOf([second.wire]),
    ];
    send(slotPackets(shredder, 122n, batches));
    await until(() => reports.some(({ kind }) => kind === "restart"), "the restart");
    expect(reports.filter(({ kind }) => kind === "restart")).toEqual([
      { kind: "restart", slot: 122n, batchIndex: 32, seenNs: expect.any(BigInt) },
    ]);
    const standing = () =>
      reports.filter((report) => report.kind === "landing" && report.batchIndex >= 32);
    await until(() => standing().length > 0, "the landing behind the marker");
    await until(() => relay.snapshot().deshred.batches === 3n, "the whole slot");
    reports.push(...relay.drainLandings());
    expect(standing()).toEqual([expect.objectContaining({ signature: second.signature })]);
  });

  it("are reported late for late watches, and not for removed ones", async () => {
    const { relay, send } = openRelay();
    const [first, second] = [transaction(), transaction()];
    relay.watchSignatures([second.signature]);
    await until(() => relay.snapshot().deshred.watched === 1n, "the watch");
    relay.unwatchSignatures([second.signature]);
    await until(() => relay.snapshot().deshred.watched === 0n, "nothing watched");
    send(shredsOf(121n, [first.wire, second.wire]));
    await until(() => relay.snapshot().deshred.transactions === 2n, "both transactions");
    expect(relay.drainLandings()).toEqual([]);
    relay.watchSignatures([first.signature]);
    let landings: Landing[] = [];
    await until(() => {
      landings = landingsOf(relay);
      return landings.length > 0;
    }, "what was remembered");
    expect(landings).toMatchObject([{ slot: 121n, ordinal: 0, remembered: true }]);
    expect(landings[0]?.signature).toEqual(first.signature);
  });

  it("reject invalid signatures, too many of them, and a relay without deshredding", () => {
    const { relay } = openRelay();
    const reason = { reason: "watch_refused" };
    expect(() => relay.watchSignatures([new Uint8Array(63)])).toThrow("64 bytes, got 63");
    const limit = describeNative().limits.watchedSignatures;
    const same = new Uint8Array(64);
    expect(() => relay.watchSignatures(Array.from({ length: limit + 1 }, () => same))).toThrow(
      `at most ${limit}`,
    );
    relay.onLandings(() => {});
    expect(() => relay.onLandings(() => {})).toThrow("once");
    const { relay: blind } = openRelay(false);
    expect(() => blind.watchSignatures([same])).toThrow(expect.objectContaining(reason));
    expect(() => blind.drainLandings()).toThrow("deshredding is disabled");
    expect(blind.snapshot().deshred.shreds).toBe(0n);
  });

  it("end with the environment during a notification", async () => {
    const slots = Array.from({ length: 50 }, (_, i) => 100n + BigInt(i));
    const transactions = slots.map(() => Array.from({ length: 40 }, transaction));
    const packets = slots.flatMap((slot, i) =>
      shredsOf(slot, transactions[i]?.map(({ wire }) => wire) ?? []),
    );
    const all = { key: shredder.publicKey, slots: slots.map((slot) => Number(slot) - 100) };
    const workerData = {
      root: process.cwd(),
      sources: encodeSources([{ name: "a", address: "127.0.0.0/8", tier: "t" }], [0], ["t"]),
      leaders: encodeLeaders(buildSchedule(100n, [all])),
      watched: Buffer.concat(transactions.flat().map(({ signature }) => signature)),
      listen: encodeEndpoint("127.0.0.1:0", { allowPortZero: true }),
    };
    for (let round = 0; round < 5; round++) {
      const worker = new Worker(
        `const { workerData, parentPort } = require("node:worker_threads");
         const addon = require("node-gyp-build")(workerData.root);
         const relay = new addon.Relay({ listen: [workerData.listen], prefault: false });
         relay.publishSources(workerData.sources);
         relay.publishLeaders(workerData.leaders);
         relay.watchSignatures(workerData.watched);
         const into = new Uint8Array(96);
         relay.onLandings(() => { relay.drainLandings(into); parentPort.postMessage("rung"); });
         parentPort.on("message", () => {}); // the notifier alone keeps nothing alive
         parentPort.postMessage(relay.addresses()[0]);`,
        { eval: true, workerData },
      );
      const [address] = await once(worker, "message");
      const sender = closing(PacedSender.open({ to: String(address), from: "127.0.0.2:0" }));
      sender.enqueue(packets, new BigUint64Array(packets.length));
      expect(await once(worker, "message")).toEqual(["rung"]);
      await worker.terminate();
    }
  });
});

describe("recovered shreds", () => {
  it("are sent only to destinations with recovered: true, counted separately, and never twice", async () => {
    const { relay, send } = openRelay();
    const [eager, patient] = [closing(await UdpReceiver.open()), closing(await UdpReceiver.open())];
    relay.publishDestinations([
      { address: eager.address, tier: "tier-1", recovered: true },
      { address: patient.address, tier: "tier-1" },
    ]);
    const packets = shredsOf(130n, [transaction().wire]);
    const half = packets.filter((_, i) => i % 2 === 0);
    send(half);
    await until(() => eager.packets.length === 64, "all 64 shreds");
    expect(new Set(eager.packets.map((one) => Buffer.from(one).toString("hex")))).toEqual(
      new Set(packets.map((one) => Buffer.from(one).toString("hex"))),
    );
    send(packets);
    await until(() => relay.snapshot().received === 96n, "all packets");
    await until(() => patient.packets.length === 64, "all 64 shreds, a little later");
    expect(eager.packets.length).toBe(64);
    const [first, second] = relay.snapshot().destinations;
    expect(first).toMatchObject({ sent: 32n, recoveredSent: 32n });
    expect(second).toMatchObject({ sent: 64n, recoveredSent: 0n });
  });
});

describe("slot bounds", () => {
  it("drop impossible slots, even with a valid signature", async () => {
    const { relay, send } = openRelay();
    const soon = () => BigInt(Date.now() + 4000) * 1_000_000n;
    relay.setSlotBounds({ lowest: 110n, highest: 119n, isConfirmed: true, untilNs: soon() });
    send([...shredsOf(109n, []), ...shredsOf(110n, []), ...shredsOf(120n, [])]);
    await until(() => relay.snapshot().received === 192n, "all packets");
    const { verdicts } = relay.snapshot();
    expect(verdicts).toMatchObject({ slot_behind: 64n, first: 64n, slot_ahead: 64n });
    expect(() =>
      relay.setSlotBounds({ lowest: -1n, highest: 5n, isConfirmed: true, untilNs: 0n }),
    ).toThrow("0 to 184");
    // Expired bounds have no effect, nor do those of a clock that was set back.
    for (const [slot, untilNs] of [
      [121n, soon() - 10_000_000_000n],
      [122n, soon() + 60_000_000_000n],
    ] as const) {
      const before = relay.snapshot().verdicts.first;
      relay.setSlotBounds({ lowest: 110n, highest: 119n, isConfirmed: true, untilNs });
      send(shredsOf(slot, []));
      await until(() => relay.snapshot().verdicts.first === before + 64n, "shreds of now");
    }
  });

  it("drop slots before the floor, always", async () => {
    const { relay, send } = openRelay();
    relay.setSlotFloor(110n);
    send([...shredsOf(109n, []), ...shredsOf(110n, [])]);
    await until(() => relay.snapshot().received === 128n, "all packets");
    expect(relay.snapshot().verdicts).toMatchObject({ slot_behind: 64n, first: 64n });
    expect(() => relay.setSlotFloor(-1n)).toThrow("0 to 184");
  });
});
