// parseShred against the known answers of the real captures.

import { describe, expect, it } from "vitest";
import { openCapture } from "../../src/relay/captures/read-capture.ts";
import {
  type ParsedShred,
  parseShred,
  type Shred,
} from "../../src/relay/data-plane/parse-shred.ts";
import { hasTestdata, knownAnswers, packetsOf, testdataFile } from "../support/shreds/captures.ts";

function countBy<T>(values: readonly T[], keyOf: (value: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[keyOf(value)] = (counts[keyOf(value)] ?? 0) + 1;
  return counts;
}

function range(values: readonly number[]): [number, number] | null {
  return values.length === 0 ? null : [Math.min(...values), Math.max(...values)];
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

function flagsOf(shred: Shred): string {
  if (shred.type !== "data") throw new Error("no data shred");
  const upper = shred.lastInSlot ? 0xc0 : shred.dataComplete ? 0x40 : 0;
  return hex(shred.referenceTick | upper);
}

const current = [
  { folder: "firedancer-demo", file: "demo-shreds.lpb", answers: "demo-shreds" },
  {
    folder: "firedancer-testnet-385970984",
    file: "chained_resigned.lpb",
    answers: "chained_resigned",
  },
  { folder: "sig-testnet-356797362", file: "data.lpb", answers: "data" },
  {
    folder: "sig-testnet-356797362",
    file: "code-reconstructed.lpb",
    answers: "code-reconstructed",
  },
];

describe.skipIf(!hasTestdata)("captures in the current format", () => {
  it.each(current)(
    "agrees with the known answers of $folder/$file",
    ({ folder, file, answers }) => {
      const known = knownAnswers(folder)[answers];
      if (!known) return expect.fail(`no known answers for ${answers}`);
      const results = packetsOf(testdataFile(folder, file)).map(parseShred);
      expect(results.filter((result) => !result.ok)).toEqual([]);
      const shreds = results.flatMap((result) => (result.ok ? [result.shred] : []));
      const data = shreds.filter((shred) => shred.type === "data");
      const code = shreds.filter((shred) => shred.type === "code");

      expect(shreds.length).toBe(known.packets);
      expect(countBy(shreds, ({ variant }) => hex(variant))).toEqual(known.variants);
      expect(countBy(shreds, ({ version }) => String(version))).toEqual(known.versions);
      expect(countBy(shreds, ({ slot }) => String(slot))).toEqual(known.slots);
      expect(range(data.map(({ index }) => index))).toEqual(known.dataIndex);
      expect(range(code.map(({ index }) => index))).toEqual(known.codeIndex);
      if (data.length > 0) {
        const parents = [...new Set(data.map(({ parentOffset }) => parentOffset))];
        expect(parents).toEqual(known.parentOffsets);
        expect(range(data.map(({ payload }) => payload.length + 88))).toEqual(known.dataSizeMinMax);
        expect(countBy(data, flagsOf)).toEqual(known.flags);
      }
      const chains = new Map(
        shreds.map(({ slot, fecSetIndex, chainedRoot }) => [
          `${slot}:${fecSetIndex}`,
          Buffer.from(chainedRoot).toString("hex"),
        ]),
      );
      expect(chains.size).toBe(known.fecSets);
      for (const { k, chain } of known.sets) expect(chains.get(k)).toBe(chain);
    },
  );

  it("reads the same packets from pcap and .lpb of firedancer-demo", () => {
    const pcap = openCapture(testdataFile("firedancer-demo", "demo-shreds.pcap"));
    const packets = Array.from(pcap.packets, ({ packet }) => packet);
    pcap.close();
    expect(pcap.format).toBe("pcap");
    const inLpb = packetsOf(testdataFile("firedancer-demo", "demo-shreds.lpb"));
    expect(packets.length).toBe(512);
    expect(
      packets.every((packet, i) => Buffer.compare(packet, inLpb[i] ?? packet.subarray(1)) === 0),
    ).toBe(true);
  });
});

const old = [
  { folder: "firedancer-localnet", file: "localnet-slot0.lpb", reasons: { unchained_variant: 4 } },
  { folder: "firedancer-localnet", file: "localnet-slot50.lpb", reasons: { legacy_variant: 8 } },
  {
    folder: "radiance-mainnet-102815960",
    file: "legacy-shreds.lpb",
    reasons: { legacy_variant: 2047 },
  },
  { folder: "sig-agave-fec34", file: "fec34.lpb", reasons: { proof_size_invalid: 68 } },
  { folder: "sig-mainnet-2024-08", file: "mainnet_shreds.lpb", reasons: { unchained_variant: 99 } },
];

describe.skipIf(!hasTestdata)("captures in old formats", () => {
  const reasonOf = (result: ParsedShred): string => (result.ok ? "ok" : result.reason);
  it.each(old)("rejects $folder/$file with the right reason", ({ folder, file, reasons }) => {
    const results = packetsOf(testdataFile(folder, file)).map(parseShred);
    expect(countBy(results, reasonOf)).toEqual(reasons);
  });
});
