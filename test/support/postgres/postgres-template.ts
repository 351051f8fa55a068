// Creates one empty PostgreSQL data folder before all tests, which their servers copy. Creating one
// takes longer than most of these tests.

import { rmSync } from "node:fs";
import { makeTemplate, postgresPrograms } from "./postgres.ts";

export default function makePostgresTemplate(): (() => void) | undefined {
  if (!postgresPrograms) return undefined;
  const folder = makeTemplate();
  process.env["SHREDWAY_TEST_POSTGRES_TEMPLATE"] = folder; // the workers inherit it
  return () => rmSync(folder, { recursive: true, force: true });
}
