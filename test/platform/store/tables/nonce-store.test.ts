import { describe, expect, it } from "vitest";
import type { ManagedNonce } from "../../../../src/gateway/nonces/types.ts";
import { onEachDatabase } from "../databases.ts";
import { until } from "../files.ts";

function nonceOf(index: number, changes: Partial<ManagedNonce> = {}): ManagedNonce {
  return {
    index,
    keyId: `k_${index}`,
    accountId: "a_1",
    address: `address ${index}`,
    state: "making",
    createdMs: 1_767_225_600_123,
    ...changes,
  };
}

onEachDatabase((databases) => {
  describe("managed nonces in the store", () => {
    it("are returned as stored, in the order of their index", async () => {
      const { nonces } = await databases.store();
      const all = [nonceOf(0), nonceOf(1, { state: "ready" }), nonceOf(2 ** 40)];
      for (const each of all.toReversed()) expect(await nonces.add(each)).toBe(true);
      expect(await nonces.all()).toEqual(all);
      expect(await nonces.find("k_1")).toEqual(all[1]);
      expect(await nonces.find("k_7")).toBeNull();
    });

    it("have a unique key, index and address", async () => {
      const { nonces } = await databases.store();
      await nonces.add(nonceOf(1));
      for (const added of [
        nonceOf(1, { keyId: "other", address: "other" }),
        nonceOf(2, { keyId: "k_1" }),
        nonceOf(2, { address: "address 1" }),
        nonceOf(1),
      ]) {
        expect(await nonces.add(added)).toBe(false);
      }
      expect(await nonces.all()).toEqual([nonceOf(1)]);
      expect(await nonces.add(nonceOf(2))).toBe(true); // the same account
    });

    it("become ready, and stay ready", async () => {
      const { nonces } = await databases.store();
      await nonces.add(nonceOf(1));
      await nonces.add(nonceOf(2));
      await nonces.setReady(1);
      await nonces.setReady(1);
      expect(await nonces.all()).toEqual([nonceOf(1, { state: "ready" }), nonceOf(2)]);
      await expect(nonces.setReady(3)).rejects.toMatchObject({
        reason: "store_failed",
        message: expect.stringContaining("3"),
      });
    });

    it("survive the process, and are reported to another one", async () => {
      const directory = databases.location();
      const service = await databases.store(directory);
      let published = 0;
      service.nonces.onForeignChange(() => published++);
      const other = await databases.store(directory);
      await other.nonces.add(nonceOf(1));
      await other.nonces.setReady(1);
      await until(() => published > 0);
      await other.close();
      expect(await service.nonces.find("k_1")).toEqual(nonceOf(1, { state: "ready" }));
    });

    it("created by two processes at once get different indexes", async () => {
      const directory = databases.location();
      const stores = await Promise.all([databases.store(directory), databases.store(directory)]);
      for (let index = 0; index < 10; index++) {
        const answers = await Promise.all(
          stores.map(({ nonces }, i) =>
            nonces.add(nonceOf(index, { keyId: `k_${index}_${i}`, address: `${index} ${i}` })),
          ),
        );
        expect(answers.filter((isAdded) => isAdded).length).toBe(1);
      }
      const same = await Promise.all(
        stores.flatMap(({ nonces }, i) =>
          [20, 22, 24].map((index) =>
            nonces.add(nonceOf(index + i, { keyId: "k_same", address: `same ${index + i}` })),
          ),
        ),
      );
      expect(same.filter((isAdded) => isAdded).length).toBe(1);
    });

    it("with manual edits are rejected by name", async () => {
      const directory = databases.location();
      const { nonces } = await databases.store(directory);
      await nonces.add(nonceOf(1));
      const tool = await databases.driver(directory);
      const words = "UPDATE managed_nonces SET state = 'made'";
      await tool.transaction([{ sql: words, params: [] }], "durable");
      await expect(nonces.all()).rejects.toMatchObject({
        reason: "store_failed",
        message: expect.stringContaining('"made"'),
      });
    });
  });
});
