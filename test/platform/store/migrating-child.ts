// A process that runs a very slow schema step: `migrating-child.ts PLACE`. Prints a line when it begins;
// killed by migrations.test.ts.

import { join } from "node:path";
import { systemClock } from "../../../src/core/clock.ts";
import { databaseFileName } from "../../../src/platform/store/data-folder.ts";
import { type Migration, migrate } from "../../../src/platform/store/migrations.ts";
import { PostgresDriver } from "../../../src/platform/store/postgres/driver.ts";
import { SqliteDriver } from "../../../src/platform/store/sqlite/driver.ts";
import { silent } from "./files.ts";

export const firstStep: Migration = ["CREATE TABLE things (id bigint PRIMARY KEY)"];
export const longStep: Migration = [
  "CREATE TABLE more (id bigint PRIMARY KEY)",
  "INSERT INTO things (id) VALUES (1)",
  `INSERT INTO more WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n
   LIMIT 2000000000`,
];

const [, program, location] = process.argv;
if (program?.includes("/migrating-child.") && location) {
  const common = { clock: systemClock, log: silent };
  const isPostgres = location.startsWith("postgres:");
  const driver = isPostgres
    ? await PostgresDriver.open({ ...common, url: location })
    : await SqliteDriver.open({ ...common, path: join(location, databaseFileName) });
  const blobType = isPostgres ? "bytea" : "blob";
  await migrate(driver, blobType, [firstStep]);
  process.stdout.write("begins\n");
  await migrate(driver, blobType, [firstStep, longStep]);
  process.stdout.write("ended\n");
}
