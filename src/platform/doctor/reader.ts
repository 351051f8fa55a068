// Access to the machine through three small functions, and parsers for numbers and lists.
//
// system.ts has the real reader; tests use a fake one. Read-only.

export interface SystemReader {
  /** Content of a file; null: unreadable. */
  readText(path: string): string | null;
  /** Names in a folder; empty: unreadable. */
  list(path: string): readonly string[];
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

/** "0-2,7" -> [0, 1, 2, 7]; empty text: none. */
export function expandCpuList(text: string): number[] {
  return text
    .split(",")
    .filter((part) => part !== "")
    .flatMap((part) => {
      const [first = 0, last = first] = part.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, i) => first + i);
    });
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
