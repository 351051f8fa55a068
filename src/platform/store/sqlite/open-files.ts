// The files of an open database: whether they are still in their folder.
//
// SQLite and the journal write to open files even after these were removed, so everything that they store would
// be lost at the end of the process. database.ts checks before each commit.

import { statSync } from "node:fs";
import { removedCode } from "./failure.ts";

/** Identity of a file; null: none has this name. */
function identityOf(path: string): string | null {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found ? `${found.dev}:${found.ino}` : null;
}

export class OpenFiles {
  readonly #known = new Map<string, string | null>();

  /** The database at `path` is open. */
  constructor(path: string) {
    // The log exists from the first commit on.
    for (const each of [path, `${path}-wal`]) this.#known.set(each, identityOf(each));
  }

  /** Throws an error with the code of failure.ts. */
  check(): void {
    for (const [path, known] of this.#known) {
      const found = identityOf(path);
      if (found === known) continue;
      if (known === null) {
        this.#known.set(path, found);
        continue;
      }
      const problem = found === null ? "was removed" : "was replaced by another file";
      const message = `${path} ${problem}: stop the service, and put the file or a backup back`;
      throw Object.assign(new Error(message), { code: removedCode });
    }
  }
}
