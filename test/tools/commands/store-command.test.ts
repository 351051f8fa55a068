// Commands that only read the database: they leave its schema as it is, which may be the one of a running service.

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { databaseFileName, prepareDataFolder } from "../../../src/platform/store/data-folder.ts";
import { migrate, migrations, versionOf } from "../../../src/platform/store/migrations.ts";
import { SqliteDriver } from "../../../src/platform/store/sqlite/driver.ts";
import { shredwayHere } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const log = createLogger({ level: "silent" });
const openDriver = (directory: string) =>
  SqliteDriver.open({ path: join(directory, databaseFileName), clock: systemClock, log });

describe.each([
  ["keys", "list"],
  ["destinations", "list"],
  ["public-keys", "list"],
  ["public-keys", "history"],
  ["signing-keys", "list"],
])("shredway %s %s", (...words) => {
  it("refuses a database of an older version, and does not migrate it", async () => {
    const directory = temporaryFolder();
    const before = await openDriver(directory);
    const older = migrations.length - 1;
    await migrate(before, "blob", migrations.slice(0, older));
    await before.close();
    const { code, stderr, stdout } = await shredwayHere(...words, "--data", directory);
    expect(stderr).toContain(
      `schema version ${older}; expected ${migrations.length}: use the version of Shredway that the service ` +
        "has, or upgrade the service first (its start, or shredway migrate, migrates the database)",
    );
    expect([code, stdout]).toEqual([1, ""]);
    const after = await openDriver(directory);
    expect(await versionOf(after)).toBe(older);
    await after.close();
  });

  it("says that a database without tables is not set up", async () => {
    const directory = temporaryFolder();
    prepareDataFolder(directory);
    const { code, stderr } = await shredwayHere(...words, "--data", directory);
    expect(stderr).toContain("the database is not set up; start the service once");
    expect(code).toBe(1);
  });
});
