// Where the sources of the service are after they were compiled.

import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** Folder of the project. */
export const root = fileURLToPath(new URL("../../..", import.meta.url));
const sources = join(root, "src");

/** Whether the sources are compiled: build-program.ts sets this, and a run without it may have compiled nothing. */
export function isCompiled(): boolean {
  return process.env["SHREDWAY_TEST_PROGRAM"] !== undefined;
}

/** The compiled file of a source, by its path; null for a file that is not a source of the service. */
export function compiledSource(file: string): string | null {
  const name = relative(sources, file);
  if (name.startsWith(`..${sep}`)) return null;
  return join(root, "dist", name.replace(/\.ts$/, ".js"));
}
