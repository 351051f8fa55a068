// Creates the files of one empty stand-in before all tests. Each process loads them in a third of the time that
// creating them takes.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase, templateVariable } from "./engine.ts";

export default async function makeStandInTemplate(): Promise<() => void> {
  const database = await createDatabase();
  const folder = mkdtempSync(join(tmpdir(), "shredway-stand-in-"));
  const path = join(folder, "data.tar");
  const files = await database.dumpDataDir("none");
  writeFileSync(path, new Uint8Array(await files.arrayBuffer()));
  await database.close();
  process.env[templateVariable] = path; // the workers inherit it
  return () => rmSync(folder, { recursive: true, force: true });
}
