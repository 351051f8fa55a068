// A process killed at any time: acknowledged rows exist completely, and the file opens without repair.

import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { linesUntilKilled } from "../../support/processes/killed-child.ts";
import { bundleOf, keyOf } from "./crash-child.ts";
import { onEachDatabase } from "./databases.ts";

const child = fileURLToPath(new URL("./crash-child.ts", import.meta.url));
/** SHREDWAY_CRASH_ROUNDS=300 for a long run. */
const rounds = Number(process.env["SHREDWAY_CRASH_ROUNDS"] ?? 10);

onEachDatabase((databases) => {
  describe("kill -9", () => {
    it(`loses no acknowledged write, in ${rounds} rounds`, {
      timeout: 300_000,
    }, async () => {
      const location = databases.location();
      await databases.make(location);
      const all: string[] = [];
      for (let round = 0; round < rounds; round++) {
        const names = await linesUntilKilled(child, [location, String(round)], Math.random() * 120);
        expect(names.length).toBeGreaterThan(0);
        all.push(...names);
        const store = await databases.store(location);
        const bundles = names
          .filter((name) => name.startsWith("bundle "))
          .map((name) => name.slice(7));
        const expected = bundles.flatMap(bundleOf);
        const found = await store.submissions.findBundles("a_1", bundles);
        const bySignature = (list: typeof found) =>
          new Map(list.map((record) => [record.signature, record]));
        expect(bySignature(found)).toEqual(bySignature(expected));
        await store.close();
      }
      const store = await databases.store(location);
      const sizes = new Map<string | null, number>();
      for (const { bundleId } of await store.submissions.open()) {
        sizes.set(bundleId, (sizes.get(bundleId) ?? 0) + 1);
      }
      expect([...sizes].filter(([, size]) => size !== 3)).toEqual([]); // completely or not at all
      const keys = new Map((await store.keys.keys()).map((key) => [key.id, key]));
      const [account] = await store.keys.accounts();
      for (const line of all.filter((name) => name.startsWith("key "))) {
        expect(keys.get(line.slice(4))).toEqual(keyOf(line.slice(4), account?.id ?? ""));
      }
      await store.close();
      expect(await databases.damage(location)).toEqual([]);
    });
  });
});
