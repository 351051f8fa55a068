// A process killed at any time: acknowledged rows exist completely, and the file opens without repair.

import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { bundleIdOf } from "../../../src/gateway/submission/tracked-transaction.ts";
import { linesUntilKilled } from "../../support/processes/killed-child.ts";
import { bundleOf, keyOf, recordsOf } from "./crash-child.ts";
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
        const expected = bundles.map(bundleOf);
        const ids = expected.map(({ bundleId }) => bundleId);
        const byId = new Map(
          (await store.submissions.findBundles("a_1", ids)).map((one) => [
            one.bundleId,
            one.signatures,
          ]),
        );
        expect(byId).toEqual(new Map(expected.map((one) => [one.bundleId, one.signatures])));
        const records = expected.flatMap(recordsOf);
        const found = await store.submissions.find(
          "a_1",
          records.map(({ signature }) => signature),
        );
        // Each belongs to the first or to the second bundle with it.
        const bySignature = (list: typeof found) =>
          new Map(
            list.map((record) => [record.signature, { ...record, bundleId: null, bundleIndex: 0 }]),
          );
        expect(bySignature(found)).toEqual(bySignature(records));
        await store.close();
      }
      const store = await databases.store(location);
      // Completely or not at all: a submission never without its bundle, and no bundle without its submissions.
      const open = await store.submissions.open();
      const opened = new Set(open.map(({ signature }) => signature));
      const ids = [...new Set(open.map(({ bundleId }) => bundleId ?? ""))];
      const stored = await store.submissions.findBundles("a_1", ids);
      expect(stored.length).toBe(ids.length);
      for (const { bundleId, signatures } of stored) {
        expect(bundleIdOf(signatures)).toBe(bundleId);
        expect(signatures.filter((signature) => !opened.has(signature))).toEqual([]);
      }
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
