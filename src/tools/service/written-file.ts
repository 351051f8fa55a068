// Files that `shredway service install` writes and owns: their texts and their states on the machine.
//
// The texts are those of examples/production. The first line of a written file has the checksum of
// the rest, so that a change by the operator is found and never overwritten silently.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Host } from "./host.ts";

export interface WrittenFile {
  readonly path: string;
  readonly text: string;
  /** How an operator changes the settings without editing the file. */
  readonly remedy: string;
}

/** "foreign": another program or the operator wrote or changed it; the text says how. */
type FileState =
  | { readonly kind: "new" | "outdated" | "unchanged" }
  | { readonly kind: "foreign"; readonly reason: string };

const firstLine = /^# Written by shredway service install, checksum ([0-9a-f]{16})\. .*\n/;

function checksumOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** The file as it is written. `text` ends with a line break. */
export function writtenFile(path: string, text: string, remedy: string): WrittenFile {
  const line = `# Written by shredway service install, checksum ${checksumOf(text)}. Do not edit it: ${remedy}.\n`;
  return { path, text: line + text, remedy };
}

/** A file of examples/production, which is part of the package. */
export function templateText(name: string): string {
  return readFileSync(new URL(`../../../examples/production/${name}`, import.meta.url), "utf8");
}

/** Whether the text has the first line of a written file and no later change. */
function isUnedited(text: string): boolean {
  const found = firstLine.exec(text);
  return found !== null && found[1] === checksumOf(text.slice(found[0].length));
}

function settingsOf(text: string): string {
  return text
    .split("\n")
    .filter((line) => !/^\s*(#|;|$)/.test(line))
    .join("\n");
}

/** The present state of `file`. A copy with the same settings, made by hand, counts as ours. */
export function stateOf(host: Host, file: Pick<WrittenFile, "path" | "text">): FileState {
  const stats = host.linkStat(file.path);
  if (stats === undefined) return { kind: "new" };
  if (stats.isSymbolicLink())
    return { kind: "foreign", reason: "is a symbolic link (a masked unit?); expected a file" };
  if (!stats.isFile()) return { kind: "foreign", reason: "is not a regular file" };
  const present = host.read(file.path) ?? "";
  const hasMode = (stats.mode & 0o7777) === 0o644;
  if (present === file.text) return { kind: hasMode ? "unchanged" : "outdated" };
  if (isUnedited(present) || settingsOf(present) === settingsOf(file.text))
    return { kind: "outdated" };
  return {
    kind: "foreign",
    reason: firstLine.test(present)
      ? "was edited after shredway service install wrote it"
      : "was not written by shredway service install",
  };
}
