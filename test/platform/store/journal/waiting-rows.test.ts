import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SqlValue } from "../../../../src/platform/store/driver.ts";
import { FrameWriter } from "../../../../src/platform/store/journal/frames.ts";
import { WaitingRows } from "../../../../src/platform/store/journal/waiting-rows.ts";

const writer = new FrameWriter();

function bytesOf(row: readonly SqlValue[]): Uint8Array {
  return writer.encode([row]).rows[0] ?? new Uint8Array();
}

function rowsIn(rows: WaitingRows, most = 100): (readonly SqlValue[])[] {
  return [...rows.parts(most)].flatMap((part) => part.map(({ row }) => row));
}

const action = fc.record({
  key: fc.constantFrom("a", "b", "c", "d", "e"),
  /** null: removes the row. Some rows do not fit in a piece. */
  bytes: fc.option(fc.constantFrom(0, 10, 5000, 100_000, 250_000, 300_000)),
});

describe("waiting rows", () => {
  it("have the last row of each key, like a map", () => {
    const actions = fc.array(action, { maxLength: 60 });
    fc.assert(
      fc.property(actions, fc.integer({ min: 1, max: 4 }), (all, most) => {
        const rows = new WaitingRows();
        const expected = new Map<string, string>();
        for (const [number, { key, bytes }] of all.entries()) {
          if (bytes === null) {
            expect(rows.delete(key)).toBe(expected.delete(key));
            continue;
          }
          const text = `${key}${number}`.padEnd(bytes);
          rows.set(key, bytesOf([text]));
          expected.set(key, text);
        }
        expect(rows.size).toBe(expected.size);
        for (const key of "abcde") expect(rows.has(key)).toBe(expected.has(key));
        expect(new Set(rowsIn(rows, most).flat())).toEqual(new Set(expected.values()));
      }),
      { numRuns: 60 },
    );
  });

  it("leave out what is removed while they are read", () => {
    const rows = new WaitingRows();
    for (const key of ["a", "b", "c", "d"]) rows.set(key, bytesOf([key]));
    const seen: SqlValue[][] = [];
    for (const part of rows.parts(2)) {
      seen.push(part.map(({ key }) => key));
      for (const { key } of part) rows.delete(key);
      rows.delete("c");
    }
    expect(seen).toEqual([["a", "b"], ["d"]]);
    expect(rows.size).toBe(0);
  });

  it("begin again when all are removed", () => {
    const rows = new WaitingRows();
    const names = Array.from({ length: 20 }, (_, i) => `row ${i}`);
    for (let round = 0; round < 5; round++) {
      for (const name of names) rows.set(name, bytesOf([name.padEnd(40_000), BigInt(round)]));
      expect(rows.kept).toBe(20);
      expect(rowsIn(rows)).toEqual(names.map((name) => [name.padEnd(40_000), BigInt(round)]));
      for (const name of names) expect(rows.delete(name)).toBe(true);
      expect([rows.size, rows.kept, rows.delete("row 1")]).toEqual([0, 0, false]);
    }
  });
});
