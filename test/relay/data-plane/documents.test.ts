// docs/relay.md, docs/deshred.md and docs/transmit.md list the names that the data plane reports.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { describeNative } from "../../../src/relay/data-plane/native.ts";

/** The part of docs/`name` under `## title`. */
function section(name: string, title: string): string {
  const path = fileURLToPath(new URL(`../../../docs/${name}`, import.meta.url));
  const parts = readFileSync(path, "utf8").split(/^## /m);
  return parts.find((part) => part.startsWith(title)) ?? "";
}

it("docs/relay.md lists every verdict with its meaning, in order", () => {
  const { verdicts, verdictMeanings } = describeNative();
  const rows = Array.from(
    section("relay.md", "Verdicts").matchAll(/^\| `([a-z_]+)` \| (.*) \|$/gm),
    ([, name, meaning]) => [name, meaning],
  );
  expect(rows).toEqual(verdicts.map((name, i) => [name, verdictMeanings[i]]));
});

it("docs/transmit.md lists every state of a next hop, and every counter of clones and sender threads", () => {
  const path = fileURLToPath(new URL("../../../docs/transmit.md", import.meta.url));
  const rows = Array.from(
    readFileSync(path, "utf8").matchAll(/^\| `([a-z_]+)` \|/gm),
    ([, name]) => name,
  );
  const { nextHopStates, workerCounters } = describeNative();
  const ofSenders = workerCounters.filter((name) => /divided|sender/.test(name));
  const ofClones = workerCounters.filter((name) => name.startsWith("clone"));
  expect(rows).toEqual([...ofClones, ...ofSenders, ...nextHopStates]);
});

it("docs/deshred.md names every counter of the deshredder, in order", () => {
  const rows = section("deshred.md", "Counters").match(/^\| `.*? \|/gm) ?? [];
  const names = rows.flatMap((row) => Array.from(row.matchAll(/`([a-z_]+)`/g), ([, name]) => name));
  expect(names).toEqual(describeNative().deshredCounters);
});
