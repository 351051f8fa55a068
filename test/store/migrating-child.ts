// A process that takes a step of the schema which does not end for a long time: `migrating-child.ts PATH`.
// Prints a line when it begins; killed by migrations.test.ts.

import { systemClock } from "../../src/core/clock.ts";
import { type Migration, migrate } from "../../src/store/migrations.ts";
import { SqliteDriver } from "../../src/store/sqlite-driver.ts";
import { silent } from "./files.ts";

export const firstStep: Migration = ["CREATE TABLE things (id bigint PRIMARY KEY)"];
export const longStep: Migration = [
  "CREATE TABLE more (id bigint PRIMARY KEY)",
  "INSERT INTO things (id) VALUES (1)",
  `INSERT INTO more WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n
   LIMIT 2000000000`,
];

const [, program, path] = process.argv;
if (program?.endsWith("migrating-child.ts") && path) {
  const driver = await SqliteDriver.open({ path, clock: systemClock, log: silent });
  await migrate(driver, "blob", [firstStep]);
  process.stdout.write("begins\n");
  await migrate(driver, "blob", [firstStep, longStep]);
  process.stdout.write("ended\n");
}
