// The machine on which the service is installed: its files, its users and its commands.
//
// Called by the plans and steps of `shredway service`. Every path is absolute and is looked up below
// `root`, which is "/" except in tests. Commands come from PATH.

import { execFile } from "node:child_process";
import { lstatSync, readFileSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { messageOf, ShredwayError } from "../../core/errors.ts";

/** Name of the system user and of its group. */
export const serviceUser = "shredway";

interface HostOptions {
  readonly root: string;
  /** User of this process. */
  readonly uid: number;
  /** The node program that runs the service. */
  readonly node: string;
  /** Folder of package.json. */
  readonly packageFolder: string;
}

interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface UserIds {
  readonly uid: number;
  readonly gid: number;
}

function isMissing(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    (error.code === "ENOENT" || error.code === "ENOTDIR")
  );
}

export class Host {
  readonly node: string;
  readonly packageFolder: string;
  readonly uid: number;
  readonly #root: string;

  constructor({ root, uid, node, packageFolder }: HostOptions) {
    this.#root = root;
    this.uid = uid;
    this.node = node;
    this.packageFolder = packageFolder;
  }

  get program(): string {
    return join(this.packageFolder, "dist/tools/shredway.js");
  }

  /** Whether systemd manages this machine, by the definition of sd_booted(3). */
  get hasSystemd(): boolean {
    return this.stat("/run/systemd/system") !== undefined;
  }

  /** Location of `path` in the file system of this process. */
  at(path: string): string {
    return join(this.#root, path);
  }

  /** Follows symbolic links. Undefined: `path` does not exist. */
  stat(path: string): Stats | undefined {
    return this.#examined(path, () => statSync(this.at(path)));
  }

  /** Does not follow a symbolic link. */
  linkStat(path: string): Stats | undefined {
    return this.#examined(path, () => lstatSync(this.at(path)));
  }

  read(path: string): string | undefined {
    return this.#examined(path, () => readFileSync(this.at(path), "utf8"));
  }

  /** Rejects only if the command cannot be started. */
  run(words: readonly string[]): Promise<CommandResult> {
    const [file = "", ...args] = words;
    return new Promise((resolve, reject) => {
      execFile(file, args, { encoding: "utf8" }, (error, stdout, stderr) => {
        const code = error === null ? 0 : error.code;
        if (typeof code === "number") resolve({ code, stdout, stderr });
        else if (code === undefined || code === null)
          resolve({ code: 1, stdout, stderr: `ended by ${error?.signal ?? "a signal"}` });
        else reject(new ShredwayError("system", `${file}: cannot be started: ${code}`));
      });
    });
  }

  /** Ids of the service's user and group; undefined: one of them does not exist yet. */
  async serviceIds(): Promise<UserIds | undefined> {
    const [user, group] = await Promise.all([
      this.run(["getent", "passwd", serviceUser]),
      this.run(["getent", "group", serviceUser]),
    ]);
    const uid = user.stdout.split(":")[2];
    const gid = group.stdout.split(":")[2];
    if (uid === undefined || gid === undefined) return undefined;
    return { uid: Number(uid), gid: Number(gid) };
  }

  #examined<T>(path: string, work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw new ShredwayError("system", `${path}: cannot be examined: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }
}

/** `path` and all folders above it, from "/" on. */
export function pathAndAncestors(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [...pathAndAncestors(parent), path];
}
