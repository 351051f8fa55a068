// The API key of a sandbox on this machine, for commands that call its gateway without another key.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sandboxKeyFile } from "../../sandbox/sandbox-key.ts";

export const sandboxFolder = "./data";

/** null: the folder contains none. */
export function readSandboxKey(folder = sandboxFolder): string | null {
  const path = join(folder, sandboxKeyFile);
  const text = existsSync(path) ? readFileSync(path, "utf8").trim() : "";
  return text === "" ? null : text;
}
