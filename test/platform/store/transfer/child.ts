// The process that kill.test.ts kills: imports a file into a database, and prints its start and end.
// `child.ts PLACE FILE`

import { writeSync } from "node:fs";
import { systemClock } from "../../../../src/core/clock.ts";
import { openDatabase } from "../../../../src/platform/store/transfer/database-location.ts";
import { checkExport, importDatabase } from "../../../../src/platform/store/transfer/import.ts";
import { silent } from "../files.ts";

export function placeOf(text: string): { directory: string; postgres?: string } {
  return text.startsWith("postgres:")
    ? { directory: "/nowhere", postgres: text }
    : { directory: text };
}

const notify = (line: string): void => void writeSync(1, `${line}\n`);

async function doImport(location: string, path: string): Promise<void> {
  const options = { clock: systemClock, log: silent, isAlone: false };
  const { driver, blobType } = await openDatabase(placeOf(location), options);
  const checked = await checkExport(path);
  notify("begins");
  await importDatabase({ path, checked, driver, blobType });
  notify("ended");
}

const [, program, location = "", path = ""] = process.argv;
if (program?.includes("/transfer/child.")) {
  await doImport(location, path);
  // The pipe and the files may still be open, so the parent waits for this line.
  setInterval(() => {}, 1000);
}
