// Micro-benchmarks of the TypeScript parts, with the `benchmark` package.
//
// They measure the control plane's work outside the packet path: parsing a shred for receivers of
// the feed, tables to bytes, counters to objects. One second per part, a tenth in the small form.

import Benchmark from "benchmark";
import { parseShred } from "../src/relay/data-plane/parse-shred.ts";
import { decodeSnapshot, layoutOf } from "../src/relay/data-plane/snapshot.ts";
import {
  encodeDestinations,
  encodeLeaders,
  encodeSources,
} from "../src/relay/data-plane/tables.ts";
import { buildSchedule, leaderOf } from "../src/relay/leaders/schedule.ts";
import { type Line, ofKind, textOf } from "./report/lines.ts";
import { type Summary, summarise } from "./report/statistics.ts";
import { number } from "./report/table.ts";
import type { Section } from "./sections/section.ts";

const tiers = ["tier-1", "tier-2"];
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);

/** The work to measure, by name. `packets` are authentic shreds of both types. */
function parts(packets: readonly Uint8Array[]): Map<string, () => unknown> {
  const sources = numbers(16).map((i) => ({
    name: `source-${i}`,
    address: `192.0.2.${i + 1}`,
    tier: tiers[i % 2] ?? "",
  }));
  const destinations = numbers(200).map((i) => ({
    address: `198.51.100.${i + 1}:${9000 + i}`,
    tier: tiers[i % 2] ?? "",
  }));
  const leaders = numbers(1000).map((i) => {
    const key = new Uint8Array(32);
    new DataView(key.buffer).setUint32(0, i);
    return { key, slots: numbers(432).map((j) => i * 432 + j) };
  });
  const schedule = buildSchedule(400_000_000n, leaders);
  const shape = {
    workers: 2,
    sourceRows: 16,
    destinationRows: 200,
    histogramBuckets: 496,
    histogramPrecisionBits: 4,
    slotRows: 64,
    slotRowFields: 7,
  };
  const words = new BigUint64Array(layoutOf(shape).words).fill(7n);
  const rows = {
    sources: sources.map(({ name, tier }, id) => ({ id, name, tier, isForwarded: true })),
    destinations: destinations.map(({ address, tier }, id) => ({
      id,
      name: address,
      address,
      tier,
    })),
  };
  let next = 0;
  return new Map<string, () => unknown>([
    ["parseShred", () => parseShred(packets[next++ % packets.length] ?? new Uint8Array())],
    ["encodeSources, 16", () => encodeSources(sources, numbers(16), tiers)],
    ["encodeDestinations, 200", () => encodeDestinations(destinations, numbers(200), tiers)],
    ["encodeLeaders, 432,000 slots", () => encodeLeaders(schedule)],
    ["leaderOf", () => leaderOf(schedule, 400_123_456n)],
    ["decodeSnapshot, 16 sources, 200 destinations", () => decodeSnapshot(words, shape, rows, 1n)],
  ]);
}

function measure(name: string, work: () => unknown, small: boolean): Summary {
  const bench = new Benchmark(name, work, { maxTime: small ? 0.1 : 1, minSamples: small ? 3 : 20 });
  bench.run({ async: false });
  return summarise(bench.stats.sample.map((seconds) => seconds * 1e9));
}

/** `lines`: output of the native scenario "sample". */
export function microSection(lines: readonly Line[], small: boolean): Section {
  const packets = ofKind(lines, "sample").map((line) => Buffer.from(textOf(line, "packet"), "hex"));
  const results = [...parts(packets)].map(
    ([name, work]) => [name, measure(name, work, small)] as const,
  );
  return {
    name: "micro",
    title: "TypeScript parts",
    notes: ["Wall time, Benchmark.js; beside the packets, not on their path."],
    tables: [
      {
        title: "ns per call",
        columns: ["part", "median", "quartiles", "calls/s"],
        rows: results.map(([name, { median, low, high }]) => [
          name,
          number(median),
          `${number(low)}–${number(high)}`,
          number(1e9 / median),
        ]),
      },
    ],
    findings: [],
    values: Object.fromEntries(results.map(([name, summary]) => [`${name}, ns`, summary])),
  };
}
