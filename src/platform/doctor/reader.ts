// Access to the machine through three small functions, and parsers for numbers and versions.
//
// system.ts has the real reader; tests use a fake one. Read-only.

import type { FileReader } from "../../relay/worker-cpu-facts.ts";

export interface SystemReader extends FileReader {
  /** Output of a command; null: missing or failed. */
  run(command: string, ...args: readonly string[]): string | null;
}

export function trimmed(text: string | null): string | null {
  return text === null ? null : text.trim();
}

export function numberIn(text: string | null): number | null {
  const match = text === null ? null : /^\s*(\d+)\s*$/.exec(text);
  return match ? Number(match[1]) : null;
}

/** Whether "6.1.0-18-amd64" is this version or a newer one; null: unknown format. */
export function isKernelSince(
  kernel: string | null,
  [major, minor]: readonly [number, number],
): boolean | null {
  const [ownMajor = 0, ownMinor = 0] = (kernel ?? "")
    .split(".")
    .map((part) => Number.parseInt(part, 10));
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return true;
  return ownMajor < major || (ownMajor === major && ownMinor < minor) ? false : null;
}
