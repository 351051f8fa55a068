// Bundles in the store: written with their submissions, known after newer bundles, deleted like the history.

import { describe, expect, it } from "vitest";
import { migrate, migrations } from "../../../../src/platform/store/migrations.ts";
import { SqlSubmissionStore } from "../../../../src/platform/store/tables/submission-store.ts";
import { tablesAt } from "../../../../src/platform/store/transfer/tables.ts";
import { onEachDatabase } from "../databases.ts";
import { bundleRecordOf, recordOf, recordsOfBundle, signatureCodec } from "../files.ts";

const older = bundleRecordOf(["s1", "s2"]);
const newer = bundleRecordOf(["s2", "s3"]);
const ids = [older.bundleId, newer.bundleId];
const known = [older, newer].map(({ bundleId, signatures }) => ({ bundleId, signatures }));
const byId = (a: { readonly bundleId: string }, b: { readonly bundleId: string }) =>
  ids.indexOf(a.bundleId) - ids.indexOf(b.bundleId);

onEachDatabase((databases) => {
  const open = async (location?: string, node = "") =>
    new SqlSubmissionStore(await databases.migrated(location), signatureCodec, node);
  const found = async (store: SqlSubmissionStore, accountId = "a_1") =>
    (await store.findBundles(accountId, [...ids, "unknown"])).toSorted(byId);

  describe("bundles", () => {
    it("are known, in order, also if a newer one has a transaction", async () => {
      const store = await open();
      expect(await store.add(recordsOfBundle(older), [older])).toBe(true);
      expect(await found(store)).toEqual(known.slice(0, 1));
      await store.put(recordsOfBundle(newer), [newer]);
      expect(await found(store)).toEqual(known);
      expect(await found(store, "a_2")).toEqual([]);
      const bundleIds = (await store.find("a_1", ["s1", "s2"])).map(({ bundleId }) => bundleId);
      expect(new Set(bundleIds)).toEqual(new Set(ids)); // the newest one of each transaction
    });

    it("are known on every node, whichever has their transactions", async () => {
      const location = databases.location();
      const [a, b] = [await open(location, "a"), await open(location, "b")];
      await a.add(recordsOfBundle(older), [older]);
      expect(await b.add(recordsOfBundle(newer), [newer])).toBe(false);
      expect(await found(b)).toEqual(known.slice(0, 1));
      await b.put(recordsOfBundle(newer), [newer]);
      for (const store of [a, b]) expect(await found(store)).toEqual(known);
    });

    it("are stored with their submissions or not at all", async () => {
      const store = await open();
      const [first] = recordsOfBundle(older);
      const broken = recordOf("s2", { receivedNs: 2n ** 64n }); // no database has such an integer
      await expect(store.put(first ? [first, broken] : [], [older])).rejects.toMatchObject({
        reason: "store_failed",
      });
      expect(await found(store)).toEqual([]);
      const wrong = { ...older, acceptedNs: 2n ** 64n };
      await expect(store.put(recordsOfBundle(older), [wrong])).rejects.toMatchObject({
        reason: "store_failed",
      });
      expect(await store.find("a_1", ["s1", "s2"])).toEqual([]);
    });

    it("are stored alone if their submissions stay as they are", async () => {
      const store = await open();
      await store.put([], [older]);
      expect(await found(store)).toEqual(known.slice(0, 1));
      expect(await store.open()).toEqual([]);
    });

    it("are deleted when the history after their last acceptance is over", async () => {
      const store = await open();
      const at = (acceptedNs: bigint) => ({ ...older, acceptedNs });
      await store.put([], [at(100n)]);
      await store.put([], [at(500n)]);
      await store.put([], [at(300n)]); // the write of an earlier call on another node
      const many = Array.from({ length: 1200 }, (_, i) => bundleRecordOf([`m${i}`], 400n));
      await store.put([], many);
      expect(await store.forgetEndedBefore(500n)).toBe(0);
      expect(await found(store)).toEqual(known.slice(0, 1));
      expect(
        await store.findBundles("a_1", [many[0]?.bundleId ?? "", many[1199]?.bundleId ?? ""]),
      ).toEqual([]);
      await store.forgetEndedBefore(501n);
      expect(await found(store)).toEqual([]);
    });

    it("that are older than the history are known as long as their submissions are", async () => {
      const store = await open();
      await store.put(recordsOfBundle(older), [older]);
      await store.forgetEndedBefore(older.acceptedNs + 1n);
      expect(await found(store)).toEqual(known.slice(0, 1));
    });

    it("of an earlier version are known from their submissions after the upgrade", async () => {
      const { blobType } = databases;
      const driver = await databases.driver();
      const before = migrations.findIndex((_, i) =>
        tablesAt(i + 1).some(({ name }) => name === "bundles"),
      );
      await migrate(driver, blobType, migrations.slice(0, before));
      const store = new SqlSubmissionStore(driver, signatureCodec);
      await store.put(recordsOfBundle(older));
      await migrate(driver, blobType);
      expect(await found(store)).toEqual(known.slice(0, 1));
      await store.put(recordsOfBundle(newer), [newer]);
      const part = { bundleId: older.bundleId, signatures: ["s1"] };
      expect(await found(store)).toEqual([part, known[1]]); // not the id of this list: unknown to callers
      await store.put(recordsOfBundle(older), [older]);
      expect(await found(store)).toEqual(known);
    });
  });
});
