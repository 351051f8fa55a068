import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ShredRefusalReason,
  shredRefusalReasons,
  verdictNames,
} from "../../../src/relay/data-plane/names.ts";
import { type ParsedShred, parseShred } from "../../../src/relay/data-plane/parse-shred.ts";
import {
  goodCodeFields,
  goodDataFields,
  makePacket,
  type ShredFields,
} from "../../support/shreds/shreds.ts";

function reasonOf(result: ParsedShred): ShredRefusalReason | "ok" {
  return result.ok ? "ok" : result.reason;
}

function parseFields(fields: ShredFields, length?: number): ShredRefusalReason | "ok" {
  return reasonOf(parseShred(makePacket(fields, length)));
}

/** The result for a variant byte and a length, from the table of variants. */
function expectedOf(variant: number, length: number): ShredRefusalReason | "ok" {
  if (length > 1232) return "oversized";
  if (length < 65) return "too_short";
  if (variant === 0xa5 || variant === 0x5a) return "legacy_variant";
  const kind = variant - (variant % 16);
  if (kind === 0x80 || kind === 0x40) return "unchained_variant";
  if (![0x90, 0xb0, 0x60, 0x70].includes(kind)) return "unknown_variant";
  if (variant % 16 !== 6) return "proof_size_invalid";
  return length < (kind >= 0x90 ? 1203 : 1228) ? "too_short" : "ok";
}

describe("variants and lengths", () => {
  it("decides all 256 variants at every length from 0 to 1300", () => {
    for (let variant = 0; variant < 256; variant++) {
      const fields = (variant & 0xc0) === 0x80 ? goodDataFields : goodCodeFields;
      const whole = makePacket({ ...fields, variant }, 1300);
      for (let length = 0; length <= 1300; length++) {
        const actual = reasonOf(parseShred(whole.subarray(0, length)));
        if (actual !== expectedOf(variant, length)) {
          expect.fail(`variant ${variant}, ${length} bytes: got ${actual}`);
        }
      }
    }
  });

  it("names exactly static verdicts of the data plane, in their order", () => {
    const names: readonly string[] = shredRefusalReasons;
    expect(verdictNames.filter((name) => names.includes(name))).toEqual(names);
  });
});

describe("header rules", () => {
  const data = (change: Partial<ShredFields>) => parseFields({ ...goodDataFields, ...change });
  const code = (change: Partial<ShredFields>) => parseFields({ ...goodCodeFields, ...change });

  it("bounds index and FEC set index", () => {
    expect(data({ index: 32_768, fecSetIndex: 32_736 })).toBe("index_too_large");
    expect(data({ index: 32_767, fecSetIndex: 32_768 })).toBe("index_too_large");
    expect(data({ index: 32_767, fecSetIndex: 32_737 })).toBe("index_too_large");
    expect(data({ index: 32_767, fecSetIndex: 32_736 })).toBe("ok");
    expect(data({ index: 0xffff_ffff, fecSetIndex: 0xffff_ffff })).toBe("index_too_large");
    expect(code({ index: 32_768, fecSetIndex: 32_736 })).toBe("index_too_large");
  });

  it("requires the index inside an aligned FEC set", () => {
    expect(data({ fecSetIndex: 33 })).toBe("fec_set_misaligned");
    expect(data({ index: 64, at85: 0 })).toBe("index_outside_fec_set");
    expect(data({ index: 31 })).toBe("index_outside_fec_set");
    expect(data({ index: 32, at85: 0 })).toBe("ok");
    expect(code({ index: 64, last: 32 })).toBe("index_outside_fec_set");
  });

  it("requires valid flags", () => {
    expect(data({ at85: 0x80 })).toBe("flags_invalid");
    expect(data({ at85: 0xbf })).toBe("flags_invalid");
    expect(data({ at85: 0xff })).toBe("ok");
    expect(data({ index: 62, at85: 0x40 })).toBe("data_complete_misplaced");
    expect(data({ index: 62, at85: 0xc0 })).toBe("data_complete_misplaced");
    expect(data({ index: 62, at85: 0x3f })).toBe("ok");
  });

  it("requires a parent before the slot", () => {
    expect(data({ slot: 10n, at83: 11 })).toBe("parent_invalid");
    expect(data({ slot: 10n, at83: 10 })).toBe("ok");
    expect(data({ slot: 10n, at83: 0 })).toBe("parent_invalid");
    expect(data({ slot: 0n, at83: 0 })).toBe("ok");
    expect(data({ slot: 0n, at83: 1 })).toBe("parent_invalid");
    expect(data({ slot: 0xffff_ffff_ffff_ffffn, at83: 0xffff })).toBe("ok");
  });

  it.each([
    { variant: 0x96, sizeMax: 1051 },
    { variant: 0xb6, sizeMax: 987 },
  ])("bounds the size of variant $variant", ({ variant, sizeMax }) => {
    const wrong: number[] = [];
    for (let last = 0; last <= 0xffff; last += last < 2000 ? 1 : 997) {
      const expected = last >= 88 && last <= sizeMax ? "ok" : "size_invalid";
      if (data({ variant, last }) !== expected) wrong.push(last);
    }
    expect(wrong).toEqual([]);
  });

  it("requires code shreds of a 32:32 set at their position", () => {
    expect(code({ at83: 31 })).toBe("code_counts_invalid");
    expect(code({ at85: 33 })).toBe("code_counts_invalid");
    expect(code({ at83: 32 + 256 })).toBe("code_counts_invalid");
    expect(code({ last: 30 })).toBe("code_position_invalid");
    expect(code({ last: 31 + 32 })).toBe("code_position_invalid");
  });

  it("distinguishes a ping from a shred", () => {
    const ping = makePacket(goodDataFields, 132).slice();
    expect(reasonOf(parseShred(ping))).toBe("too_short");
    ping.set([4, 0, 0, 0]);
    expect(reasonOf(parseShred(ping))).toBe("ping");
    expect(reasonOf(parseShred(ping.subarray(0, 131)))).toBe("too_short");
  });

  it("states the expected and the received value", () => {
    expect(parseShred(makePacket({ ...goodCodeFields, last: 30 }))).toEqual({
      ok: false,
      reason: "code_position_invalid",
      expected: "position 31",
      actual: "30",
    });
  });
});

describe("parts", () => {
  it("returns the fields and parts of a data shred", () => {
    const packet = makePacket(goodDataFields, 1220);
    const result = parseShred(packet);
    if (!result.ok || result.shred.type !== "data") return expect.fail("expected a data shred");
    const { shred } = result;
    expect(shred).toMatchObject({
      slot: 1000n,
      index: 63,
      fecSetIndex: 32,
      version: 50_093,
      variant: 0x96,
      resigned: false,
      parentOffset: 1,
      referenceTick: 5,
      dataComplete: true,
      lastInSlot: false,
      retransmitterSignature: null,
    });
    expect(shred.bytes).toEqual(packet.subarray(0, 1203));
    expect(shred.signature).toEqual(packet.subarray(0, 64));
    expect(shred.payload).toEqual(packet.subarray(88, 188));
    expect(shred.chainedRoot).toEqual(packet.subarray(1051, 1083));
    expect(shred.proof).toEqual(packet.subarray(1083, 1203));
    expect(shred.payload.buffer).toBe(packet.buffer);
  });

  it.each([
    { variant: 0xb6, chainedRoot: 987, proof: 1019, retransmitter: 1139, end: 1203 },
    { variant: 0x76, chainedRoot: 1012, proof: 1044, retransmitter: 1164, end: 1228 },
    { variant: 0x66, chainedRoot: 1076, proof: 1108, retransmitter: 1228, end: 1228 },
  ])(
    "finds the tail of variant $variant",
    ({ variant, chainedRoot, proof, retransmitter, end }) => {
      const fields = variant >= 0x80 ? goodDataFields : goodCodeFields;
      const packet = makePacket({ ...fields, variant });
      const result = parseShred(packet);
      if (!result.ok) return expect.fail(result.reason);
      const { shred } = result;
      expect(shred.chainedRoot).toEqual(packet.subarray(chainedRoot, proof));
      expect(shred.proof).toEqual(packet.subarray(proof, retransmitter));
      expect(shred.resigned).toBe(retransmitter < end);
      expect(shred.retransmitterSignature).toEqual(
        retransmitter < end ? packet.subarray(retransmitter, end) : null,
      );
      if (shred.type === "code") {
        expect(shred.position).toBe(31);
        expect(shred.payload).toEqual(packet.subarray(89, chainedRoot));
      }
    },
  );

  it("reads a packet in the middle of a larger buffer", () => {
    const packet = makePacket({ ...goodDataFields, slot: 0xfedc_ba98_7654_3210n });
    const larger = new Uint8Array(3000).fill(0xee);
    larger.set(packet, 777);
    const result = parseShred(larger.subarray(777, 777 + packet.length));
    expect(result.ok && result.shred.slot).toBe(0xfedc_ba98_7654_3210n);
    expect(result.ok && result.shred.bytes).toEqual(packet);
  });
});

describe("hostile bytes", () => {
  it("never throws, and rejects with a known reason or returns parts within the packet", () => {
    const header = fc.record({
      variant: fc.oneof(fc.constantFrom(0x96, 0x66, 0xb6, 0x76), fc.nat(255)),
      slot: fc.oneof(
        fc.constantFrom(0n, 1n, 0xffff_ffff_ffff_ffffn),
        fc.bigInt(0n, 2n ** 64n - 1n),
      ),
      index: fc.oneof(fc.nat(70), fc.nat(0xffff_ffff)),
      fecSetIndex: fc.oneof(fc.constantFrom(0, 32, 64), fc.nat(0xffff_ffff)),
      version: fc.nat(0xffff),
      at83: fc.oneof(fc.constantFrom(0, 1, 32), fc.nat(0xffff)),
      at85: fc.oneof(fc.constantFrom(0, 32, 0x40, 0xc0), fc.nat(255)),
      last: fc.oneof(fc.nat(1100), fc.nat(0xffff)),
    });
    const packets = fc.oneof(
      fc.uint8Array({ maxLength: 1300 }),
      fc.tuple(header, fc.nat(1300)).map(([fields, length]) => makePacket(fields, length)),
    );
    fc.assert(
      fc.property(packets, (packet) => {
        const result = parseShred(packet);
        if (!result.ok) {
          expect(shredRefusalReasons).toContain(result.reason);
          return;
        }
        const { shred } = result;
        expect(shred.bytes.length).toBe(shred.type === "data" ? 1203 : 1228);
        expect(shred.signature.length).toBe(64);
        expect(shred.chainedRoot.length).toBe(32);
        expect(shred.proof.length).toBe(120);
        expect(shred.index - shred.fecSetIndex).toBeGreaterThanOrEqual(0);
        expect(shred.index - shred.fecSetIndex).toBeLessThan(32);
        expect(shred.payload.length).toBeLessThanOrEqual(987);
      }),
      { numRuns: 3000 },
    );
  });

  it("rejects a packet whose buffer was transferred", () => {
    const packet = makePacket(goodDataFields).slice();
    structuredClone(packet.buffer, { transfer: [packet.buffer] });
    expect(reasonOf(parseShred(packet))).toBe("too_short");
  });
});
