// The generated names of the data plane.

import { expect, it } from "vitest";
import { generateNames } from "../../../native/names.mjs";
import {
  passedOnVerdicts,
  shredRefusalReasons,
  verdictNames,
} from "../../../src/relay/data-plane/names.ts";
import { describeNative } from "../../../src/relay/data-plane/native.ts";

it("match the lists in native/", async () => {
  await expect(generateNames()).toMatchFileSnapshot("../../../src/relay/data-plane/names.ts");
});

it("match the addon", () => {
  expect(describeNative().verdicts).toEqual(verdictNames);
  expect(describeNative().verdictMeanings).toHaveLength(verdictNames.length);
});

it("contain the static verdicts in one block, and the forwarded ones", () => {
  const first = verdictNames.indexOf("oversized");
  expect(verdictNames.slice(first, first + shredRefusalReasons.length)).toEqual(
    shredRefusalReasons,
  );
  expect(passedOnVerdicts).toEqual(["first", "new_tier", "equivocation", "first_forwardable"]);
});
