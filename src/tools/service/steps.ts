// Steps of an installation: each one can be shown as a shell command, and be carried out.
//
// The plans decide which steps are necessary; `runSteps` carries them out in order. A file is
// replaced completely or not at all, and every step can be repeated, so an interrupted installation
// continues when the command is called again.

import {
  chmodSync,
  chownSync,
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { createFolders } from "../../core/files.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type Host, serviceUser, type UserIds } from "./host.ts";

export interface Step {
  /** The same step as a command of a POSIX shell. */
  readonly script: string;
  /** One line about the step: "write /etc/shredway/shredway.yaml". */
  readonly title: string;
  /** The reason why the step is unnecessary; undefined: it is necessary. */
  readonly unchanged?: string | undefined;
  /** Effect of a failure, with which the installation continues; undefined: it ends. */
  readonly warning?: string;
  run(): Promise<void>;
}

type Owner = "root" | typeof serviceUser;

interface Access {
  readonly mode: number;
  readonly user: Owner;
  readonly group: Owner;
}

/** Ends the text of a file in a shell script. */
const endMark = "SHREDWAY_END";

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

function accessWords({ mode, user, group }: Access): string {
  return `-m ${octal(mode)} -o ${user} -g ${group}`;
}

async function ownerOf(host: Host, { user, group }: Access): Promise<UserIds> {
  const root = { uid: 0, gid: 0 };
  if (user === "root" && group === "root") return root;
  const service = await host.serviceIds();
  if (service === undefined) {
    throw new ShredwayError(
      "system",
      `unknown user or group ${serviceUser}; expected it after systemd-sysusers (getent passwd ${serviceUser})`,
    );
  }
  return {
    uid: user === "root" ? 0 : service.uid,
    gid: group === "root" ? 0 : service.gid,
  };
}

/** Also on power failure, the file has its former or its new content. */
function replaceFile(path: string, { uid, gid }: UserIds, mode: number, text: string): void {
  createFolders(dirname(path), 0o755);
  const beside = join(dirname(path), `.${basename(path)}.new`);
  rmSync(beside, { force: true });
  const file = openSync(beside, "wx", 0o600);
  try {
    writeFileSync(file, text);
    fchownSync(file, uid, gid);
    fchmodSync(file, mode);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(beside, path);
  syncFolder(dirname(path));
}

function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

export function writeStep(
  host: Host,
  { path, text, access }: { readonly path: string; readonly text: string; readonly access: Access },
  unchanged?: string,
): Step {
  return {
    title: `write ${path} (${octal(access.mode)} ${access.user}:${access.group})`,
    script: `install -D ${accessWords(access)} /dev/stdin ${path} <<'${endMark}'\n${text}${endMark}`,
    unchanged,
    async run() {
      replaceFile(host.at(path), await ownerOf(host, access), access.mode, text);
    },
  };
}

/** Creates the folder, or corrects its mode and owner. */
export function folderStep(
  host: Host,
  path: string,
  access: Access,
  ids: UserIds | undefined,
): Step {
  const { mode, user, group } = access;
  const stats = host.stat(path);
  if (stats && !stats.isDirectory())
    throw new ShredwayError(
      "value_invalid",
      `${path} is not a folder; expected a folder or nothing`,
    );
  const hasOwner =
    ids !== undefined &&
    stats?.uid === (user === "root" ? 0 : ids.uid) &&
    stats.gid === (group === "root" ? 0 : ids.gid);
  const isRight = hasOwner && (stats.mode & 0o7777) === mode;
  return {
    title: `set up the folder ${path} (${octal(mode)} ${user}:${group})`,
    script: `install -d ${accessWords(access)} ${path}`,
    unchanged: isRight ? path : undefined,
    async run() {
      const owner = await ownerOf(host, access);
      createFolders(host.at(path), 0o755);
      chmodSync(host.at(path), mode);
      chownSync(host.at(path), owner.uid, owner.gid);
    },
  };
}

export function commandStep(
  host: Host,
  words: readonly string[],
  more: {
    readonly unchanged?: string | undefined;
    readonly hint?: string;
    readonly warning?: string;
  },
): Step {
  const script = words.join(" ");
  const { hint, ...rest } = more;
  return {
    title: `run ${script}`,
    script,
    ...rest,
    async run() {
      const { code, stdout, stderr } = await host.run(words);
      if (code === 0) return;
      const last = (stderr.trim() || stdout.trim() || "no output").split("\n").slice(-3).join(" ");
      const where = hint === undefined ? "" : ` (see: ${hint})`;
      throw new ShredwayError("system", `${script}: exit code ${code}: ${last}${where}`);
    },
  };
}

export function removeStep(host: Host, path: string): Step {
  return {
    title: `remove ${path}`,
    script: `rm ${path}`,
    async run() {
      await Promise.resolve(rmSync(host.at(path), { force: true }));
    },
  };
}

export function removeFolderStep(host: Host, path: string): Step {
  return {
    title: `remove the folder ${path}`,
    script: `rmdir ${path}`,
    async run() {
      await Promise.resolve(rmdirSync(host.at(path)));
    },
  };
}

/** Steps as a shell script with comments on the unnecessary ones. */
export function scriptOf(steps: readonly Step[]): string {
  return steps
    .map(({ script, unchanged }) =>
      unchanged === undefined ? script : `# unchanged: ${unchanged}`,
    )
    .join("\n");
}

/** Carries the steps out. Throws "system" at the first failure, with the way to continue. */
export async function runSteps(steps: readonly Step[], terminal: Terminal): Promise<void> {
  const umask = process.umask(0o022);
  try {
    for (const [done, step] of steps.entries()) {
      if (step.unchanged !== undefined) {
        terminal.line(`unchanged  ${step.unchanged}`);
        continue;
      }
      try {
        if (terminal.stopped.aborted) throw new Error("interrupted");
        await step.run();
        terminal.line(`done       ${step.title}`);
      } catch (cause) {
        if (step.warning !== undefined && !terminal.stopped.aborted) {
          terminal.note(`warning: ${messageOf(cause)}; ${step.warning}`);
          continue;
        }
        throw new ShredwayError(
          "system",
          `cannot ${step.title}: ${messageOf(cause)}\n${done} of ${steps.length} steps are finished. Run the same command again: it continues with this step`,
          { cause },
        );
      }
    }
  } finally {
    process.umask(umask);
  }
}
