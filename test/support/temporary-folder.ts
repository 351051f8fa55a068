// A temporary folder for one test, removed afterwards.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closing } from "./closing.ts";

/** Call this before its users are opened: resources are closed in reverse order. */
export function temporaryFolder(): string {
  const path = mkdtempSync(join(tmpdir(), "shredway-"));
  closing({ close: () => rmSync(path, { recursive: true, force: true }) });
  return path;
}
