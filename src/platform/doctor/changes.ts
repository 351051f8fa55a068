// Changes of `doctor --apply`: kernel settings that remedies name, and how to undo them.
//
// Called by src/tools/commands/doctor.ts. A remedy is a shell command for people; this file recognises the
// commands in it that only set a value below /proc/sys or /sys/class/net. Values hold until the machine
// starts again, and so does the record of the previous ones, which --revert reads.

import { messageOf } from "../../core/errors.ts";

/** A file of the kernel and its value. */
interface Setting {
  readonly path: string;
  readonly value: string;
}

interface Change {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/** The machine, so that tests can use another one. */
export interface SettingFiles {
  /** Undefined: missing or not readable. */
  read(path: string): string | undefined;
  /** Throws if the kernel refuses. */
  write(path: string, value: string): void;
  /** Writes the whole file or leaves it as it is, also in a crash. */
  replace(path: string, text: string): void;
}

/** Where the changes since the start of the machine are recorded. */
export const changesPath = "/run/shredway-doctor.json";

const patterns: readonly (readonly [RegExp, (match: readonly string[]) => Setting])[] = [
  [
    /^sysctl -w ([\w.-]+)=(\d+)$/,
    ([, key = "", value = ""]) => ({ path: `/proc/sys/${key.replaceAll(".", "/")}`, value }),
  ],
  [
    /^ip link set dev ([\w.-]+) txqueuelen (\d+)$/,
    ([, name = "", value = ""]) => ({ path: `/sys/class/net/${name}/tx_queue_len`, value }),
  ],
  [
    /^echo (\d+) > (\/sys\/class\/net\/[\w.-]+\/(?:napi_defer_hard_irqs|gro_flush_timeout))$/,
    ([, value = "", path = ""]) => ({ path, value }),
  ],
];

/** The settings that a remedy names, in its order. */
export function settingsIn(remedy: string): Setting[] {
  return remedy.split(/ && |; /).flatMap((command) =>
    patterns.flatMap(([pattern, settingOf]) => {
      const match = pattern.exec(command.trim());
      return match ? [settingOf(match)] : [];
    }),
  );
}

function recorded(files: SettingFiles): readonly Change[] {
  try {
    return JSON.parse(files.read(changesPath) ?? "[]");
  } catch {
    return []; // cut off by a crash
  }
}

function record(files: SettingFiles, changes: readonly Change[]): void {
  files.replace(changesPath, `${JSON.stringify(changes)}\n`);
}

/** Applies the settings; returns one line for each. The previous value is recorded before a change. */
export function applySettings(files: SettingFiles, settings: readonly Setting[]): string[] {
  return settings.map(({ path, value }) => {
    const before = files.read(path)?.trim();
    if (before === undefined) return `not changed  ${path}: it cannot be read`;
    if (before === value) return `unchanged  ${path} is ${value}`;
    const others = recorded(files);
    try {
      record(files, [...others, { path, before, after: value }]);
      files.write(path, value);
      return `changed  ${path}: ${before} → ${value}`;
    } catch (error) {
      return `not changed  ${path}: ${messageOf(error)}`;
    }
  });
}

/**
 * Restores the values before all changes, the last change first. A value that somebody else changed
 * since then stays. Returns one line for each.
 */
export function revertChanges(files: SettingFiles): string[] {
  const changes = recorded(files).toReversed();
  const lines = changes.map(({ path, before, after }) => {
    const now = files.read(path)?.trim();
    if (now !== after) return `not reverted  ${path}: expected ${after}, got ${now ?? "nothing"}`;
    try {
      files.write(path, before);
      return `reverted  ${path}: ${after} → ${before}`;
    } catch (error) {
      return `not reverted  ${path}: ${messageOf(error)}`;
    }
  });
  if (changes.length > 0) record(files, []);
  return lines;
}
