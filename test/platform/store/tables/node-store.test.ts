import { describe, expect, it } from "vitest";
import { onEachDatabase } from "../databases.ts";
import { until } from "../files.ts";

onEachDatabase((databases) => {
  describe("nodes in the store", () => {
    it("are returned as stored; a node replaces only its own row", async () => {
      const { nodes } = await databases.store();
      expect(await nodes.all()).toEqual([]);
      await nodes.put({ name: "new-york", settings: "{}" });
      await nodes.put({ name: "frankfurt", settings: '{"a":1}' });
      await nodes.put({ name: "new-york", settings: '{"b":2}' });
      expect(await nodes.all()).toEqual([
        { name: "frankfurt", settings: '{"a":1}' },
        { name: "new-york", settings: '{"b":2}' },
      ]);
    });

    it("survive the process, and are reported to another one", async () => {
      const directory = databases.location();
      const [one, other] = [await databases.store(directory), await databases.store(directory)];
      let notified = 0;
      other.nodes.onForeignChange(() => notified++);
      await one.nodes.put({ name: "a", settings: "{}" });
      await until(() => notified > 0);
      await one.close();
      expect(await other.nodes.all()).toEqual([{ name: "a", settings: "{}" }]);
    });
  });
});
