import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import {
  buildSchedule,
  leaderOf,
  loadLeaderSchedule,
  noLeader,
  parseLeaderSchedule,
  scheduleSlotsMax,
} from "../../../src/relay/leaders/schedule.ts";

const keyA = new Uint8Array(32).fill(1);
const keyB = new Uint8Array(32).fill(2);
const textA = pubkeyOf(keyA);
const textB = pubkeyOf(keyB);

describe("parseLeaderSchedule", () => {
  it("reads the format of getLeaderSchedule", () => {
    const schedule = parseLeaderSchedule(
      JSON.stringify({ firstSlot: 417955200, leaders: { [textA]: [0, 1, 2, 3], [textB]: [5, 6] } }),
    );
    expect(schedule.firstSlot).toBe(417955200n);
    expect([...schedule.leaderBySlot]).toEqual([0, 0, 0, 0, noLeader, 1, 1]);
    expect(schedule.keys).toEqual([keyA, keyB]);
    expect(leaderOf(schedule, 417955203n)).toEqual(keyA);
    expect(leaderOf(schedule, 417955206n)).toEqual(keyB);
    expect(leaderOf(schedule, 417955204n)).toBeNull();
    expect(leaderOf(schedule, 417955199n)).toBeNull();
    expect(leaderOf(schedule, 417955207n)).toBeNull();
  });

  it.each([
    ["not JSON", "{", /expected JSON/],
    ["a list", "[]", /expected an object, got \[\]/],
    ["null", "null", /expected an object, got null/],
    [
      "no first slot",
      `{"leaders": {"${textA}": [0]}}`,
      /firstSlot: expected an integer 0 or more, got nothing/,
    ],
    [
      "a negative first slot",
      `{"firstSlot": -1, "leaders": {"${textA}": [0]}}`,
      /firstSlot.*got -1/,
    ],
    [
      "a broken first slot",
      `{"firstSlot": 1.5, "leaders": {"${textA}": [0]}}`,
      /firstSlot.*got 1.5/,
    ],
    [
      "a first slot as text",
      `{"firstSlot": "1", "leaders": {"${textA}": [0]}}`,
      /firstSlot.*got "1"/,
    ],
    ["another key", `{"firstSlot": 1, "leaders": {}, "epoch": 7}`, /unknown key "epoch"/],
    ["no leaders", `{"firstSlot": 1}`, /leaders: expected an object.*got nothing/],
    ["an empty schedule", `{"firstSlot": 1, "leaders": {}}`, /at least one leader/],
    [
      "a leader without slots",
      `{"firstSlot": 1, "leaders": {"${textA}": []}}`,
      /at least one slot/,
    ],
    [
      "bad base58",
      `{"firstSlot": 1, "leaders": {"0${textA.slice(1)}": [0]}}`,
      /32 bytes in base58/,
    ],
    [
      "slots that are not a list",
      `{"firstSlot": 1, "leaders": {"${textA}": 5}}`,
      /expected a list of slots, got 5/,
    ],
    [
      "a slot as text",
      `{"firstSlot": 1, "leaders": {"${textA}": ["0"]}}`,
      /expected integers, got "0"/,
    ],
    [
      "a null slot",
      `{"firstSlot": 1, "leaders": {"${textA}": [null]}}`,
      /expected integers, got null/,
    ],
    [
      "a negative slot",
      `{"firstSlot": 1, "leaders": {"${textA}": [-1]}}`,
      /expected slots 0 to 863999.*got -1/,
    ],
    [
      "a broken slot",
      `{"firstSlot": 1, "leaders": {"${textA}": [0.5]}}`,
      /expected slots.*got 0.5/,
    ],
    [
      "a far slot",
      `{"firstSlot": 1, "leaders": {"${textA}": [864000]}}`,
      /expected slots.*got 864000/,
    ],
    [
      "a slot twice",
      `{"firstSlot": 1, "leaders": {"${textA}": [3, 3]}}`,
      /duplicate slot 3 twice from one leader/,
    ],
    [
      "two leaders for a slot",
      `{"firstSlot": 1, "leaders": {"${textA}": [3], "${textB}": [3]}}`,
      /slot 3 from two leaders/,
    ],
    [
      "a leader twice",
      `{"firstSlot": 1, "leaders": {"${textA}": [3], "${textA}": [4]}}`,
      /expected every key once/,
    ],
  ])("refuses %s", (_what, text, message) => {
    expect(() => parseLeaderSchedule(text)).toThrow(message);
    expect(() => parseLeaderSchedule(text)).toThrow(ShredwayError);
  });

  it("never throws anything but ShredwayError", () => {
    const texts = fc.oneof(
      fc.json(),
      fc.string(),
      fc
        .record({ firstSlot: fc.anything(), leaders: fc.dictionary(fc.string(), fc.anything()) })
        .map((value) => {
          try {
            return JSON.stringify(value);
          } catch {
            return "";
          }
        }),
    );
    fc.assert(
      fc.property(texts, (text) => {
        try {
          parseLeaderSchedule(text);
        } catch (error) {
          expect(error).toBeInstanceOf(ShredwayError);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe("buildSchedule", () => {
  it("maps every slot to its leader", () => {
    const owners = fc.array(fc.integer({ min: -1, max: 4 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(owners, fc.bigInt(0n, 2n ** 63n), (ownerBySlot, firstSlot) => {
        fc.pre(ownerBySlot.some((owner) => owner >= 0));
        const leaders = Array.from({ length: 5 }, (_, owner) => ({
          key: new Uint8Array(32).fill(owner),
          slots: ownerBySlot.flatMap((other, slot) => (other === owner ? [slot] : [])),
        }));
        const schedule = buildSchedule(firstSlot, leaders);
        for (const [slot, owner] of ownerBySlot.entries()) {
          const leader = leaderOf(schedule, firstSlot + BigInt(slot));
          expect(leader?.[0] ?? -1).toBe(owner);
        }
      }),
    );
  });

  it("accepts at most two whole epochs", () => {
    const slots = Array.from({ length: scheduleSlotsMax }, (_, slot) => slot);
    const schedule = buildSchedule(5n, [{ key: keyA, slots }]);
    expect(leaderOf(schedule, 5n + 863_999n)).toEqual(keyA);
    expect(() => buildSchedule(5n, [{ key: keyA, slots: [scheduleSlotsMax] }])).toThrow(/864000/);
    expect(() => buildSchedule(2n ** 64n - 1n, [{ key: keyA, slots: [0] }])).toThrow(/firstSlot/);
    expect(() => buildSchedule(0n, [{ key: keyA.subarray(1), slots: [0] }])).toThrow(/got 31/);
    expect(() =>
      buildSchedule(0n, [
        { key: keyA, slots: [0] },
        { key: keyA, slots: [1] },
      ]),
    ).toThrow(/every leader once/);
  });
});

describe("loadLeaderSchedule", () => {
  it("names the file in every error", () => {
    const folder = mkdtempSync(join(tmpdir(), "shredway-"));
    try {
      const path = join(folder, "leaders.json");
      expect(() => loadLeaderSchedule(path)).toThrow(`${path}: cannot be read`);
      writeFileSync(path, "{}");
      expect(() => loadLeaderSchedule(path)).toThrow(`${path}: leader schedule: firstSlot`);
      writeFileSync(path, Uint8Array.of(0xff, 0xfe));
      expect(() => loadLeaderSchedule(path)).toThrow("expected UTF-8");
      writeFileSync(path, JSON.stringify({ firstSlot: 0, leaders: { [textA]: [1] } }));
      expect(leaderOf(loadLeaderSchedule(path), 1n)).toEqual(keyA);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

it("rejects a leader whose key is a point of small order", () => {
  const text = JSON.stringify({
    firstSlot: 1,
    leaders: { "11111111111111111111111111111111": [0] },
  });
  expect(() => parseLeaderSchedule(text)).toThrow(
    /leaders\.1{32}: expected the public key of a leader, got a point of small order/,
  );
});
