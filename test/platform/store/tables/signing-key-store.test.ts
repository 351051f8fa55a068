import { describe, expect, it } from "vitest";
import { onEachDatabase } from "../databases.ts";
import { until } from "../files.ts";

function key(kid: string, node: string, createdMs: number) {
  return { kid, publicKey: new Uint8Array(32).fill(createdMs), node, createdMs };
}

onEachDatabase((databases) => {
  describe("signing keys in the store", () => {
    it("one key of each node is in use; all others stay with the time of their end", async () => {
      const { signingKeys } = await databases.store();
      expect(await signingKeys.all()).toEqual([]);
      await signingKeys.use(key("a", "one", 1));
      await signingKeys.use(key("b", "two", 2));
      await signingKeys.add(key("c", "one", 3));
      await signingKeys.add(key("c", "two", 4));
      expect(await signingKeys.all()).toEqual([
        { ...key("a", "one", 1), retiredMs: null },
        { ...key("b", "two", 2), retiredMs: null },
        { ...key("c", "one", 3), retiredMs: null },
      ]);
      await signingKeys.use(key("c", "one", 5));
      await signingKeys.use(key("d", "one", 6));
      await signingKeys.use(key("a", "one", 7)); // restored from a backup
      expect(await signingKeys.all()).toEqual([
        { ...key("a", "one", 1), retiredMs: null },
        { ...key("b", "two", 2), retiredMs: null },
        { ...key("c", "one", 3), retiredMs: 6 },
        { ...key("d", "one", 6), retiredMs: 7 },
      ]);
    });

    it("survive the process, and are reported to another one", async () => {
      const directory = databases.location();
      const [one, other] = [await databases.store(directory), await databases.store(directory)];
      let notified = 0;
      other.signingKeys.onForeignChange(() => notified++);
      await one.signingKeys.use(key("a", "", 1));
      await until(() => notified > 0);
      await one.close();
      expect(await other.signingKeys.all()).toMatchObject([{ kid: "a", retiredMs: null }]);
    });
  });
});
