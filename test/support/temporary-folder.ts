// A folder of its own for one test, removed afterwards.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closing } from "./closing.ts";

/** Call before what uses it is opened: what is opened later is closed earlier. */
export function temporaryFolder(): string {
  const path = mkdtempSync(join(tmpdir(), "shredway-"));
  closing({ close: () => rmSync(path, { recursive: true, force: true }) });
  return path;
}
