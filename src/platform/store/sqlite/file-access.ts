// File access: why this process cannot use the files of a database, and the repair.
//
// Called by failure.ts after SQLite refused a file. SQLite's own text names neither the file nor the reason: a
// log that belongs to another user is reported as a database that cannot be opened.

import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf } from "../../../core/errors.ts";

const { R_OK, W_OK, X_OK } = constants;
const suffixes = ["", "-wal", "-shm", "-commits"] as const;
/** As in data-folder.ts. */
const lockFileName = "service.lock";

/** The file itself, if `path` is a link to it; `path`, if nobody can say. */
function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function ownerText(path: string): string {
  try {
    const { uid, mode } = statSync(path);
    return `${path} belongs to uid ${uid} (mode 0${(mode & 0o777).toString(8)})`;
  } catch {
    return `${path} is not accessible`;
  }
}

function problemOf(path: string, code: string): string | null {
  if (code === "EROFS") {
    return (
      `the file system of ${path} is read-only; expected one that this process can write: mount it read-write, ` +
      "or choose another data.directory"
    );
  }
  if (code !== "EACCES" && code !== "EPERM") return null;
  return (
    `${ownerText(path)}, and this process has uid ${process.getuid?.()}; expected one that it can read and ` +
    "write: run it as the user of the service, or give everything in the folder to that user (chown -R)"
  );
}

/** Null: this process may read and write the database at `path` and the files beside it. */
export function accessProblem(path: string): string | null {
  const file = targetOf(path);
  const folder = dirname(file);
  const files = [
    ...suffixes.map((suffix) => `${file}${suffix}`),
    join(dirname(path), lockFileName),
  ];
  for (const one of [folder, ...files]) {
    try {
      accessSync(one, R_OK | W_OK | (one === folder ? X_OK : 0));
    } catch (error) {
      const problem = problemOf(one, codeOf(error));
      if (problem !== null) return problem;
    }
  }
  return null;
}
