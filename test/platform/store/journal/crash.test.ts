// A service killed at any time: every acknowledged bundle exists completely.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { linesUntilKilled } from "../../../support/processes/killed-child.ts";
import { bundleOf } from "../crash-child.ts";
import { openLocation } from "../files.ts";

const child = fileURLToPath(new URL("./bundle-child.ts", import.meta.url));
/** SHREDWAY_CRASH_ROUNDS=300 for a long run. */
const rounds = Number(process.env["SHREDWAY_CRASH_ROUNDS"] ?? 10);

it(`loses no acknowledged bundle, in ${rounds} rounds`, { timeout: 300_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "shredway-journal-"));
  const all: string[] = [];
  for (let round = 0; round < rounds; round++) {
    // Longer than a turn of the journal's files.
    all.push(...(await linesUntilKilled(child, [folder, String(round)], Math.random() * 3000)));
    const store = await openLocation(folder);
    const expected = all.map(bundleOf);
    const ids = expected.map(({ bundleId }) => bundleId);
    const found = new Map(
      (await store.submissions.findBundles("a_1", ids)).map((one) => [
        one.bundleId,
        one.signatures,
      ]),
    );
    expect(found).toEqual(new Map(expected.map((one) => [one.bundleId, one.signatures])));
    const signatures = new Set(expected.flatMap((bundle) => bundle.signatures));
    const records = await store.submissions.find("a_1", [...signatures]);
    expect(records.length).toBe(signatures.size);
    await store.close();
  }
  expect(all.length).toBeGreaterThan(rounds);
  rmSync(folder, { recursive: true });
});
