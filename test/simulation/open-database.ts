// The database of one life of the service, with the present schema.

import type { Logger } from "../../src/core/log.ts";
import type { SqlDriver } from "../../src/platform/store/driver.ts";
import { migrate } from "../../src/platform/store/migrations.ts";
import { PostgresDriver } from "../../src/platform/store/postgres/driver.ts";
import { SqliteDriver } from "../../src/platform/store/sqlite/driver.ts";
import type { LifeOptions } from "./service-life.ts";

export async function openDatabase(
  { process, disk, postgres, random }: LifeOptions,
  log: Logger,
): Promise<SqlDriver> {
  const { clock } = process;
  if (postgres === null) {
    const { databasePath: path, start } = disk;
    const driver = await SqliteDriver.open({ path, clock, log, start });
    await migrate(driver, "blob");
    return driver;
  }
  const driver = await PostgresDriver.open({
    url: postgres.url,
    clock,
    log,
    random: () => random.share(),
    openStream: () => {
      const stream = postgres.connect();
      process.onKill(() => stream.kill());
      return stream;
    },
  });
  await migrate(driver, "bytea");
  return driver;
}
