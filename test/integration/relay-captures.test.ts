// End to end on real shreds: several sources send permuted, partly overlapping and partly corrupted
// copies of a capture, mixed with hostile packets. Each destination must receive every distinct
// authentic shred of its tier exactly once, in its own length, and nothing else.

import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { parseShred } from "../../src/relay/data-plane/parse-shred.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import type { RelayOptions } from "../../src/relay/data-plane/relay-options.ts";
import type { Destination, Source } from "../../src/relay/data-plane/tables.ts";
import { buildSchedule } from "../../src/relay/leaders/schedule.ts";
import { closing } from "../support/closing.ts";
import { freeUdpPort } from "../support/network/free-ports.ts";
import { UdpReceiver, until } from "../support/network/udp-receiver.ts";
import { hasTestdata, leaderKey, packetsOf, testdataFile } from "../support/shreds/captures.ts";

interface Capture {
  readonly packets: readonly Uint8Array[];
  readonly leader: Uint8Array;
  readonly version: number;
  readonly slot: bigint;
}

const captures = {
  "testnet slot 356797362": (): Capture => ({
    packets: [
      ...packetsOf(testdataFile("sig-testnet-356797362", "data.lpb")),
      ...packetsOf(testdataFile("sig-testnet-356797362", "code-reconstructed.lpb")),
    ],
    leader: leaderKey("sig-testnet-356797362"),
    version: 9065,
    slot: 356797362n,
  }),
  "testnet slot 385970984": (): Capture => ({
    packets: packetsOf(testdataFile("firedancer-testnet-385970984", "chained_resigned.lpb")),
    leader: leaderKey("firedancer-testnet-385970984"),
    version: 27350,
    slot: 385970984n,
  }),
};

const sources: Source[] = [
  { name: "a", address: "127.0.0.2", tier: "tier-1" },
  { name: "b", address: "127.0.0.3", tier: "tier-1" },
  { name: "c", address: "127.0.0.4", tier: "tier-2" },
];

function identityOf(packet: Uint8Array): string {
  const parsed = parseShred(packet);
  if (!parsed.ok) throw new Error(`no shred: ${parsed.reason}`);
  const { slot, index, fecSetIndex, type } = parsed.shred;
  return `${slot}/${fecSetIndex}/${type}/${index}`;
}

function shuffled<T>(random: SeededRandom, items: readonly T[]): T[] {
  return Array.from(random.permutation(items.length)).flatMap((place) =>
    items.slice(place, place + 1),
  );
}

function ownLength(packet: Uint8Array): Uint8Array {
  return packet.subarray(0, ((packet[64] ?? 0) & 0xc0) === 0x40 ? 1228 : 1203);
}

/** As the relay sends it: its own length, and without a retransmitter signature. */
function asSent(packet: Uint8Array): Uint8Array {
  const own = ownLength(packet).slice();
  if (isResigned(packet)) own.fill(0, own.length - 64);
  return own;
}

function isResigned(packet: Uint8Array): boolean {
  const nibble = (packet[64] ?? 0) & 0xf0;
  return nibble === 0xb0 || nibble === 0x70;
}

const keyOf = (packet: Uint8Array) => Buffer.from(packet).toString("latin1");

/**
 * Damaged copies of `packet`, which no destination may receive. A copy that differs only by its
 * signature is sent with the real one.
 */
function hostileCopies(packet: Uint8Array, random: SeededRandom): Uint8Array[] {
  const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset);
  const altered = (change: (copy: Uint8Array) => void) => {
    const copy = packet.slice();
    change(copy);
    return copy;
  };
  const length = ownLength(packet).length;
  const signedEnd = length - 120 - (isResigned(packet) ? 64 : 0);
  const flip = (from: number, to: number) =>
    altered((copy) => {
      const at = from + random.below(to - from);
      copy[at] = (copy[at] ?? 0) ^ (1 + random.below(255));
    });
  return [
    flip(0, 64), // forged signature
    flip(89, signedEnd), // altered body or chained root
    flip(signedEnd, signedEnd + 120), // broken proof
    altered((copy) => view(copy).setUint16(77, 1, true)), // another cluster
    altered((copy) => view(copy).setBigUint64(65, 2n ** 63n, true)), // absurd slots
    altered((copy) => view(copy).setBigUint64(65, 1n, true)),
    altered((copy) => view(copy).setUint32(73, 0xffff_ffff, true)),
    packet.slice(0, 400), // cut off
    new Uint8Array([...packet, ...new Uint8Array(1300 - packet.length)]), // too long
    new Uint8Array(132).fill(4, 0, 1), // a gossip ping
  ];
}

async function openRelay(capture: Capture, workers: number): Promise<Relay> {
  const options: RelayOptions = {
    listen: [`127.0.0.1:${workers === 1 ? 0 : await freeUdpPort()}`],
    workers,
    tiers: ["tier-1", "tier-2"],
    authentication: "leader-schedule",
    shredVersion: capture.version,
    prefault: false,
    failedChecksPerSecond: 100_000,
    receiveFilter: false, // so that noise gets its verdicts
  };
  const relay = closing(Relay.open(options));
  relay.publishSources(sources);
  relay.publishLeaders(
    buildSchedule(capture.slot - 10n, [{ key: capture.leader, slots: [8, 9, 10, 11, 12] }]),
  );
  return relay;
}

/** Limit of packets in flight per sender, below the smallest receive buffer. */
const atOnce = 100;
const rate = 9000; // packets per second and sender

/**
 * Sends each list from its address, concurrently and in parts. The next part follows when every
 * destination has received the previous one. Returns the number of packets that the relay received.
 */
async function playAll(
  relay: Relay,
  lists: Readonly<Record<string, readonly Uint8Array[]>>,
  receivers: readonly UdpReceiver[] = [],
): Promise<bigint> {
  const to = relay.addresses[0] ?? "";
  const players = Object.entries(lists).map(([from, packets]) => ({
    packets,
    sender: closing(PacedSender.open({ from: `${from}:0`, to })),
  }));
  const longest = Math.max(...players.map(({ packets }) => packets.length));
  const before = relay.snapshot().received;
  let total = 0n;
  const haveAll = (): boolean => {
    const { received, destinations } = relay.snapshot();
    if (received - before < total) return false;
    const sentTo = new Map(destinations.map(({ address, sent }) => [address, sent]));
    return receivers.every(({ address, packets }) => packets.length >= (sentTo.get(address) ?? 0n));
  };
  for (let begin = 0; begin < longest; begin += atOnce) {
    for (const { packets, sender } of players) {
      const part = packets.slice(begin, begin + atOnce);
      sender.enqueue(
        part,
        BigUint64Array.from(part, (_, i) => BigInt(Math.floor((i * 1e9) / rate))),
      );
      total += BigInt(part.length);
    }
    await until(haveAll, `${total} packets at the relay, and all that it sent at the receivers`);
  }
  return total;
}

/** Every identity of `authentic` once, each packet one of the sent ones, and nothing else. */
function expectExactlyOnce(received: readonly Uint8Array[], authentic: readonly Uint8Array[]) {
  const sent = new Set(authentic.map((packet) => keyOf(asSent(packet))));
  expect(received.filter((packet) => !sent.has(keyOf(packet)))).toEqual([]);
  const identities = received.map(identityOf);
  expect(identities.length).toBe(new Set(identities).size);
  expect(new Set(identities)).toEqual(new Set(authentic.map(identityOf)));
}

describe.skipIf(!hasTestdata)("the relay on real captures", () => {
  for (const [name, read] of Object.entries(captures)) {
    for (const workers of [1, 2]) {
      it(`${name}, ${workers} worker(s): every authentic shred once, nothing else`, async () => {
        const capture = read();
        const random = new SeededRandom(20261121 + workers);
        const relay = await openRelay(capture, workers);
        const [tier1, tier2, second] = await Promise.all([
          UdpReceiver.open(),
          UdpReceiver.open(),
          UdpReceiver.open(),
        ]);
        for (const receiver of [tier1, tier2, second]) closing(receiver);
        const gone = `127.0.0.1:${await freeUdpPort()}`;
        const destinations: Destination[] = [
          { address: tier1.address, tier: "tier-1" },
          { address: gone, tier: "tier-2" },
          { address: tier2.address, tier: "tier-2" },
          { address: second.address, tier: "tier-2" },
        ];
        relay.publishDestinations(destinations);

        // a and b deliver overlapping parts, c delivers everything, each in its own order. Each hostile
        // copy is sent before or after its original.
        const share = (keepShare: number) =>
          capture.packets.filter(() => random.happens(keepShare));
        const parts = [share(0.6), share(0.6), [...capture.packets]];
        const traffic = parts.map((part) => {
          const mixed = part.flatMap((packet) =>
            random.happens(0.15)
              ? shuffled(random, [packet, ...hostileCopies(packet, random)])
              : random.happens(0.2)
                ? [new Uint8Array([...packet, 1, 2, 3, 4].slice(0, 1232))]
                : [packet],
          );
          return shuffled(random, mixed);
        });
        const [a = [], b = [], c = []] = traffic;
        const lists = { "127.0.0.2": a, "127.0.0.3": b, "127.0.0.4": c };
        const stranger = { "127.0.0.9": capture.packets };

        // Meanwhile tables are replaced every few milliseconds.
        let swaps = 0;
        const swapping = setInterval(() => {
          relay.publishSources(sources);
          relay.publishDestinations(swaps % 2 ? destinations : destinations.toReversed());
          swaps++;
        }, 3);
        closing({ close: () => clearInterval(swapping) });
        const total = await playAll(relay, { ...lists, ...stranger }, [tier1, tier2, second]);
        clearInterval(swapping);
        expect(swaps).toBeGreaterThan(0);

        const narrow = [...(parts[0] ?? []), ...(parts[1] ?? [])];
        await until(
          () => tier2.packets.length >= new Set(capture.packets.map(identityOf)).size,
          "tier 2 complete",
        );
        await until(
          () => tier1.packets.length >= new Set(narrow.map(identityOf)).size,
          "tier 1 complete",
        );
        await new Promise((resolve) => setTimeout(resolve, 50));
        expectExactlyOnce(tier1.packets, narrow);
        expectExactlyOnce(tier2.packets, capture.packets);
        expectExactlyOnce(second.packets, capture.packets);

        const dead = () => relay.snapshot().destinations.find(({ address }) => address === gone);
        await until(() => (dead()?.icmp ?? 0n) > 0n, "the word that nobody listens there");
        const snapshot = relay.snapshot();
        const counted = Object.values(snapshot.verdicts).reduce((sum, count) => sum + count, 0n);
        expect(snapshot.received).toBe(total);
        expect(counted).toBe(total);
        expect(snapshot.receiveDrops).toBe(0n);
        expect(snapshot.verdicts.unknown_source).toBe(BigInt(capture.packets.length));
        expect(snapshot.verdicts.first).toBe(BigInt(new Set(capture.packets.map(identityOf)).size));
        for (const verdict of [
          "wrong_version",
          "slot_ahead",
          "ping",
          "oversized",
          "too_short",
        ] as const) {
          expect(snapshot.verdicts[verdict], verdict).toBeGreaterThan(0n);
        }
      });
    }
  }

  it("several forwarders of the resigned last FEC set count once", async () => {
    const capture = captures["testnet slot 385970984"]();
    const relay = await openRelay(capture, 1);
    const receiver = closing(await UdpReceiver.open());
    relay.publishDestinations([{ address: receiver.address, tier: "tier-1" }]);
    await playAll(relay, { "127.0.0.2": capture.packets }, [receiver]);
    await until(() => receiver.packets.length >= 291, "291 shreds");
    expectExactlyOnce(receiver.packets, capture.packets);
    expect(receiver.packets.length).toBe(291);
    expect(relay.snapshot().verdicts.duplicate).toBe(16n);
  });

  it("old formats are refused by name", async () => {
    const relay = await openRelay(
      { packets: [], leader: leaderKey("sig-testnet-356797362"), version: 50093, slot: 100n },
      1,
    );
    const old: [[string, string], "unchained_variant" | "proof_size_invalid" | "legacy_variant"][] =
      [
        [["sig-mainnet-2024-08", "mainnet_shreds.lpb"], "unchained_variant"],
        [["sig-agave-fec34", "fec34.lpb"], "proof_size_invalid"],
        [["firedancer-localnet", "localnet-slot50.lpb"], "legacy_variant"],
      ];
    for (const [path, verdict] of old) {
      const packets = packetsOf(testdataFile(...path));
      const before = relay.snapshot().verdicts[verdict];
      await playAll(relay, { "127.0.0.2": packets });
      await until(
        () => relay.snapshot().verdicts[verdict] - before === BigInt(packets.length),
        `${packets.length} x ${verdict}`,
      );
    }
  });
});
