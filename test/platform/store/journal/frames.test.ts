import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SqlValue } from "../../../../src/platform/store/driver.ts";
import {
  decodeRows,
  FrameWriter,
  frameHeadBytes,
  rowAt,
} from "../../../../src/platform/store/journal/frames.ts";

const value: fc.Arbitrary<SqlValue> = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.uint8Array({ maxLength: 5000 }),
  fc.constant(null),
);
const rows = fc.array(fc.array(value, { maxLength: 20 }), { maxLength: 6 });

describe("frames", () => {
  it("returns the rows that it was given", () => {
    const writer = new FrameWriter();
    fc.assert(
      fc.property(rows, (given) => {
        const { bytes, rows: encoded } = writer.encode(given);
        const frame = Buffer.from(bytes);
        expect(frame.readUInt32LE(0)).toBe(frame.length - frameHeadBytes);
        expect(decodeRows(frame.subarray(frameHeadBytes))).toEqual(given);
        expect(encoded.map((row) => rowAt(Buffer.from(row), 0).row)).toEqual(given);
      }),
    );
  });

  it("refuses an integer that no database can hold", () => {
    expect(() => new FrameWriter().encode([[2n ** 63n]])).toThrow(RangeError);
  });
});
