// Suggestions for mistyped names.

import { expect, it } from "vitest";
import { didYouMean, nearestName } from "../../src/core/near-names.ts";

const names = ["start", "keys", "sources", "destinations", "list", "listen"];

it.each([
  ["strat", "start"],
  ["key", "keys"],
  ["Sources", "sources"],
  ["destination", "destinations"],
  ["lisen", "listen"],
  ["lst", "list"],
  ["stop", undefined],
  ["", undefined],
  ["x".repeat(100_000), undefined],
])("for %s suggests %s", (given, expected) => {
  expect(nearestName(given, names)).toBe(expected);
});

it("ends an error message", () => {
  expect(didYouMean("strat", names, "shredway ")).toBe("; did you mean shredway start?");
  expect(didYouMean("stop", names)).toBe("");
});
