import { describe, expect, it } from "vitest";
import {
  cutLine,
  formatBytes,
  formatClock,
  formatCount,
  formatNs,
  formatRate,
  formatShare,
  paint,
  table,
  toJson,
  visibleLength,
} from "../../../src/tools/terminal/formatting.ts";

describe("numbers for display", () => {
  it("formats counts", () => {
    expect(formatCount(0n)).toBe("0");
    expect(formatCount(999)).toBe("999");
    expect(formatCount(12_345n)).toBe("12,345");
    expect(formatCount(123_456_789n)).toBe("123.5 M");
    expect(formatCount(123_456_789_012n)).toBe("123.5 G");
  });

  it("formats rates", () => {
    expect(formatRate(0)).toBe("0/s");
    expect(formatRate(2.5)).toBe("2.5/s");
    expect(formatRate(4961.4)).toBe("4,961/s");
    expect(formatRate(Number.NaN)).toBe("-");
  });

  it("formats durations", () => {
    expect(formatNs(812n)).toBe("812 ns");
    expect(formatNs(26_400n)).toBe("26.4 µs");
    expect(formatNs(1_530_000n)).toBe("1.53 ms");
    expect(formatNs(2_100_000_000n)).toBe("2.10 s");
    expect(formatNs(123_000n)).toBe("123 µs");
  });

  it("formats shares: 100 % only for exactly 1", () => {
    expect(formatShare(1)).toBe("100 %");
    expect(formatShare(0.99999)).toBe("99.9 %");
    expect(formatShare(0)).toBe("0.0 %");
    expect(formatShare(Number.NaN)).toBe("-");
  });

  it("formats bytes and clock times", () => {
    expect(formatBytes(512)).toBe("512 bytes");
    expect(formatBytes(67_108_864)).toBe("64.0 MiB");
    expect(formatClock(754)).toBe("12:34");
    expect(formatClock(3723)).toBe("1:02:03");
  });
});

describe("toJson", () => {
  it("writes a bigint as a number while that is exact, otherwise as a string", () => {
    expect(toJson({ a: 1n, b: 2n ** 53n - 1n, c: 2n ** 53n, d: 2n ** 64n - 1n })).toBe(
      '{"a":1,"b":9007199254740991,"c":"9007199254740992","d":"18446744073709551615"}',
    );
  });
});

describe("table", () => {
  it("aligns by visible width, also with colours", () => {
    const { good } = paint(true);
    const lines = table(
      [{ title: "NAME" }, { title: "COUNT", right: true, width: 6 }, { title: "X" }],
      [
        ["alpha", good("5"), "y"],
        ["b", "1,000", ""],
      ],
    );
    expect(lines.map((line) => visibleLength(line))).toEqual([16, 16, 13]);
    expect(lines[0]).toBe("NAME    COUNT  X");
    expect(lines[2]).toBe("b       1,000");
  });

  it("truncates lines to a width and closes colours", () => {
    const { bad } = paint(true);
    expect(cutLine("short", 10)).toBe("short");
    const cut = cutLine(`${bad("abcdef")}ghijkl`, 8);
    expect(visibleLength(cut)).toBe(8);
    expect(cut.endsWith("\u001b[0m")).toBe(true);
  });
});
