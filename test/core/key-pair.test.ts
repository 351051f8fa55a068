import { describe, expect, it } from "vitest";
import { isSmallOrderKey } from "../../src/core/key-pair.ts";

describe("isSmallOrderKey", () => {
  const p = 2n ** 255n - 19n;
  const bytesOf = (value: bigint) =>
    Buffer.from(Buffer.from(value.toString(16).padStart(64, "0"), "hex").toReversed());
  const power = (base: bigint, exponent: bigint) => {
    let result = 1n;
    for (let b = base % p, e = exponent; e > 0n; e >>= 1n, b = (b * b) % p)
      if (e & 1n) result = (result * b) % p;
    return result;
  };
  const d = ((p - 121_665n) * power(121_666n, p - 2n)) % p;
  // x^2 = (y^2 - 1) / (d y^2 + 1); the double of a point of order 8 has order 4, so its y is 0:
  // x^2 + y^2 = 0, and with that d y^4 + 2 y^2 - 1 = 0.
  const hasOrder8 = (y: bigint) => (d * power(y, 4n) + 2n * y * y - 1n) % p === 0n;
  const order8 = [
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  ].map((hex) => BigInt(`0x${Buffer.from(Buffer.from(hex, "hex").toReversed()).toString("hex")}`));

  it("recognises every encoding of the eight points, with either sign", () => {
    expect(order8.every(hasOrder8)).toBe(true);
    expect(((order8[0] ?? 0n) + (order8[1] ?? 0n)) % p).toBe(0n);
    for (const y of [0n, 1n, p - 1n, p, p + 1n, ...order8]) {
      expect(isSmallOrderKey(bytesOf(y))).toBe(true);
      expect(isSmallOrderKey(bytesOf(y | (1n << 255n)))).toBe(true);
    }
    for (const y of [2n, p - 2n, p + 2n]) expect(isSmallOrderKey(bytesOf(y))).toBe(false);
  });
});
