import { expect, it } from "vitest";
import { counted } from "../../src/core/counted.ts";

it("uses the singular for one only", () => {
  expect([0, 1, 2].map((count) => counted(count, "feed"))).toEqual([
    "0 feeds",
    "1 feed",
    "2 feeds",
  ]);
  expect(counted(2, "address", "addresses")).toBe("2 addresses");
});
