// Before any test: one empty PostgreSQL data folder, which the servers of the tests copy. Making one
// takes longer than most tests that need it.

import { rmSync } from "node:fs";
import { makeTemplate, postgresPrograms } from "./postgres.ts";

export default function makePostgresTemplate(): (() => void) | undefined {
  if (!postgresPrograms) return undefined;
  const folder = makeTemplate();
  process.env["SHREDWAY_TEST_POSTGRES_TEMPLATE"] = folder; // the workers inherit it
  return () => rmSync(folder, { recursive: true, force: true });
}
