// A disk that fills up.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { smallDisk } from "../../support/small-disk.ts";
import { Files, recordOf } from "./files.ts";

const { path: disk, isMounted } = smallDisk(2);
const files = new Files();

afterAll(() => files.clean());

describe("a full disk", () => {
  it.skipIf(!isMounted)(
    "rejects new writes, retains the rest, and continues when space is free",
    async () => {
      const filler = join(disk, "filler");
      writeFileSync(filler, new Uint8Array(1_000_000));
      const store = await files.store(join(disk, "data"));
      const persisted: string[] = [];
      let refused = 0;
      for (let i = 0; refused < 5; i++) {
        const put = store.submissions.put([recordOf(`s${i}`, { wire: new Uint8Array(20_000) })]);
        const end = await put.then(
          () => null,
          (error: unknown) => error,
        );
        if (end === null) persisted.push(`s${i}`);
        else {
          refused++;
          expect(end).toMatchObject({
            reason: "store_failed",
            message: expect.stringMatching(/disk|device/),
          });
        }
      }
      expect(persisted.length).toBeGreaterThan(5);
      expect((await store.submissions.open()).map(({ signature }) => signature).toSorted()).toEqual(
        persisted.toSorted(),
      );
      // Queries still succeed, and so would a single small write.
      await expect(store.ping()).rejects.toMatchObject({
        reason: "store_failed",
        message: expect.stringMatching(/disk|device/),
      });
      await store.keys.accounts();
      expect(store.numbers()).toMatchObject({ isReachable: true, isWriteFailing: true });
      rmSync(filler);
      await store.ping();
      expect(store.numbers()).toMatchObject({ isReachable: true, isWriteFailing: false });
      await store.submissions.put([recordOf("later")]);
      await store.close();
      const repeated = await files.store(join(disk, "data"));
      expect((await repeated.submissions.open()).length).toBe(persisted.length + 1);
      const driver = await files.driver({ path: join(disk, "data", "shredway.db") });
      expect(await driver.query("PRAGMA integrity_check", [])).toEqual([["ok"]]);
    },
  );
});
