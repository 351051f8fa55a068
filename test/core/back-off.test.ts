import { expect, it } from "vitest";
import { backOffMs } from "../../src/core/back-off.ts";

const range = { firstMs: 250, maxMs: 30_000 };

it("doubles the delay with each failure, up to the longest", () => {
  const delays = [0, 1, 2, 6, 7, 5000].map((failures) => backOffMs(range, failures));
  expect(delays).toEqual([250, 500, 1000, 16_000, 30_000, 30_000]);
});

it("removes a random part of up to a half, also from the longest delay", () => {
  expect(backOffMs(range, 1, 0.5)).toBe(375);
  expect(backOffMs(range, 50, 1)).toBe(15_000);
});
