// The same histories of several nodes on a real PostgreSQL; each node has its own connections.

import fc from "fast-check";
import { describe, it } from "vitest";
import { onEachDatabase } from "../../platform/store/databases.ts";
import { SqlRows } from "../../platform/store/sql-rows.ts";
import { nodeSettings, nodeSteps } from "./node-steps.ts";
import { NodesHistory } from "./nodes.ts";

const runs = Number(process.env["SHREDWAY_NODE_RUNS"] ?? 12);

onEachDatabase((databases) => {
  describe("several nodes", () => {
    it("agree with the model over the database", async () => {
      const place = databases.location();
      const drivers = [await databases.migrated(place)];
      for (let i = 0; i < 2; i++) drivers.push(await databases.driver(place));
      await fc.assert(
        fc.asyncProperty(nodeSettings, nodeSteps(30), async (setting, steps) => {
          const rows = await SqlRows.empty(drivers);
          await new NodesHistory(setting, rows, () => rows.counted()).run(steps);
        }),
        { numRuns: runs },
      );
    }, 300_000);
  });
});
