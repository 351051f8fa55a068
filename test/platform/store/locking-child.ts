// A process that takes a lock: `locking-child.ts URL NAME TIMES`. Prints "held", then "lost" after its
// notification. Frozen or killed by postgres/locks.test.ts.

import { systemClock } from "../../../src/core/clock.ts";
import { PostgresDriver } from "../../../src/platform/store/postgres/driver.ts";
import { silent } from "./files.ts";

const [, , url = "", name = "", times = "{}"] = process.argv;
const driver = await PostgresDriver.open({
  url,
  clock: systemClock,
  log: silent,
  times: JSON.parse(times),
});
const lock = await driver.tryLock(name, () => process.stdout.write("lost\n"));
process.stdout.write(lock ? "held\n" : "refused\n");
