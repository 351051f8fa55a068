// Landing latency in JavaScript: when a watched transaction reaches JavaScript, through a real
// relay and the addon.
//
// One process, like the product: relay, its worker and its deshred thread, the event loop; and the
// paced sender that feeds it. 10,000 shreds a second, eight watched transactions in every batch.

import { SeededRandom } from "../../src/core/seeded-random.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import { Shredder, type SlotPosition } from "../../src/relay/data-plane/shredder.ts";
import { buildSchedule } from "../../src/relay/leaders/schedule.ts";

const shredEveryNs = 100_000;
const firstSlot = 400_000_000n;
const batchesPerSlot = 16;
const setsPerBatch = 2;
const watchedPerBatch = 8;
const entriesPerBatch = 34;
const transactionsPerEntry = 8;

export interface JavaScriptLandings {
  /** Wall time from the kernel's receive time of the last needed shred, in ns, in any order. */
  readonly delaysNs: readonly number[];
  readonly watched: number;
}

/** A batch of transfers, 215 bytes each, which fills two FEC sets; and all its signatures. */
function makeBatch(random: SeededRandom): { bytes: Uint8Array; signatures: Uint8Array[] } {
  const signatures: Uint8Array[] = [];
  const parts: Uint8Array[] = [];
  const u64 = (value: number) => Buffer.from(new BigUint64Array([BigInt(value)]).buffer);
  const bytes = (count: number) => {
    const filled = new Uint8Array(count);
    random.fillBytes(filled);
    return filled;
  };
  parts.push(u64(entriesPerBatch));
  for (let entry = 0; entry < entriesPerBatch; entry++) {
    parts.push(u64(12_500), bytes(32), u64(transactionsPerEntry));
    for (let i = 0; i < transactionsPerEntry; i++) {
      const signature = bytes(64);
      signatures.push(signature);
      const keysAndBlockhash = bytes(4 * 32);
      const instruction = Uint8Array.of(1, 2, 2, 0, 1, 12, ...bytes(12));
      parts.push(Uint8Array.of(1), signature, Uint8Array.of(1, 0, 1, 3), keysAndBlockhash);
      parts.push(instruction);
    }
  }
  return { bytes: Buffer.concat(parts), signatures };
}

interface Traffic {
  readonly packets: Uint8Array[];
  readonly watched: Uint8Array[];
  readonly slots: number;
}

function makeTraffic(shredder: Shredder, batches: number): Traffic {
  const random = new SeededRandom(7);
  const packets: Uint8Array[] = [];
  const watched: Uint8Array[] = [];
  const begin = { parentOffset: 1, version: 1, chainedRoot: new Uint8Array(32) };
  let position: SlotPosition = { ...begin, slot: firstSlot, nextFecSetIndex: 0 };
  for (let i = 0; i < batches; i++) {
    const { bytes, signatures } = makeBatch(random);
    const shreds = shredder.shred(bytes, { position, referenceTick: 1, lastInSlot: false });
    if (shreds.packets.length !== setsPerBatch * 64) {
      throw new Error(
        `expected ${setsPerBatch} FEC sets for a batch, got ${shreds.packets.length}`,
      );
    }
    packets.push(...shreds.packets);
    const every = Math.floor(signatures.length / watchedPerBatch);
    watched.push(...signatures.filter((_, at) => at % every === 0).slice(0, watchedPerBatch));
    position =
      i % batchesPerSlot === batchesPerSlot - 1
        ? { ...shreds.position, slot: shreds.position.slot + 1n, nextFecSetIndex: 0 }
        : shreds.position;
  }
  return { packets, watched, slots: Math.ceil(batches / batchesPerSlot) };
}

/**
 * The wall clock with the resolution of the monotonic clock. Date.now() is truncated to
 * milliseconds and read first, so each difference of the two clocks is too small. The largest
 * difference is the most exact one.
 */
function wallClock(): () => bigint {
  let differenceNs = 0n;
  const endMs = performance.now() + 20;
  while (performance.now() < endMs) {
    const wallNs = BigInt(Date.now()) * 1_000_000n;
    const differenceNowNs = wallNs - process.hrtime.bigint();
    if (differenceNowNs > differenceNs) differenceNs = differenceNowNs;
  }
  return () => process.hrtime.bigint() + differenceNs;
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs for about `durationMs`. */
export async function landingsInJavaScript(durationMs: number): Promise<JavaScriptLandings> {
  const shredder = new Shredder(new Uint8Array(32).fill(3));
  const shredsPerBatch = setsPerBatch * 64;
  const batches = Math.ceil((durationMs * 1e6) / shredEveryNs / shredsPerBatch);
  const { packets, watched, slots } = makeTraffic(shredder, batches);
  const relay = Relay.open({
    listen: ["127.0.0.1:0"],
    workers: 1,
    tiers: ["tier-1"],
    authentication: "leader-schedule",
    shredVersion: 1,
  });
  const sender = PacedSender.open({ to: relay.addresses[0] ?? "" });
  try {
    relay.publishSources([{ name: "a", address: "127.0.0.1", tier: "tier-1" }]);
    const own = { key: shredder.publicKey, slots: Array.from({ length: slots }, (_, i) => i) };
    relay.publishLeaders(buildSchedule(firstSlot, [own]));
    relay.watchSignatures(watched);
    const now = wallClock();
    const delaysNs: number[] = [];
    relay.onLandings(() => {
      const landings = relay.drainLandings();
      const nowNs = now();
      for (const { seenNs } of landings) delaysNs.push(Number(nowNs - seenNs));
    });
    const times = BigUint64Array.from(packets, (_, i) => BigInt(i * shredEveryNs));
    sender.enqueue(packets, times);
    const endMs = performance.now() + durationMs + 10_000;
    while (delaysNs.length < watched.length && performance.now() < endMs) await sleep(20);
    return { delaysNs, watched: watched.length };
  } finally {
    sender.close();
    relay.close();
  }
}
