// docs/relay.md says what the data plane says of itself.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { describeNative } from "../../src/data-plane/native.ts";

it("docs/relay.md lists every verdict with its meaning, in order", () => {
  const text = readFileSync(fileURLToPath(new URL("../../docs/relay.md", import.meta.url)), "utf8");
  const { verdicts, verdictMeanings } = describeNative();
  const rows = Array.from(text.matchAll(/^\| `([a-z_]+)` \| (.*) \|$/gm), ([, name, meaning]) => [
    name,
    meaning,
  ]);
  expect(rows).toEqual(verdicts.map((name, i) => [name, verdictMeanings[i]]));
});
