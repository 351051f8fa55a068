// Lines that the native half prints: JSON objects with a kind, read with checks.

export type Line = ReadonlyMap<string, string | number | boolean>;

/** Throws if the text is not an object of plain values with a kind. */
export function parseLine(text: string): Line {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null)
    throw new Error(`bench line: expected an object, got ${text}`);
  const line = new Map<string, string | number | boolean>();
  for (const [key, field] of Object.entries(value)) {
    if (typeof field !== "string" && typeof field !== "number" && typeof field !== "boolean") {
      throw new Error(`expected plain values, got ${key} in ${text}`);
    }
    line.set(key, field);
  }
  if (typeof line.get("kind") !== "string")
    throw new Error(`bench line: expected a kind, got ${text}`);
  return line;
}

export function textOf(line: Line, key: string): string {
  const value = line.get(key);
  if (typeof value !== "string") throw new Error(`expected text as ${key}, got ${String(value)}`);
  return value;
}

export function numberOf(line: Line, key: string): number {
  const value = line.get(key);
  if (typeof value !== "number")
    throw new Error(`expected a number as ${key}, got ${String(value)}`);
  return value;
}

export function ofKind(lines: readonly Line[], kind: string): Line[] {
  return lines.filter((line) => line.get("kind") === kind);
}

/** Values by round of the lines that `key` maps to the same text. */
export function byRound(
  lines: readonly Line[],
  key: (line: Line) => string,
  value: (line: Line) => number,
): Map<string, Map<number, number>> {
  const groups = new Map<string, Map<number, number>>();
  for (const line of lines) {
    const name = key(line);
    const rounds = groups.get(name) ?? new Map<number, number>();
    groups.set(name, rounds);
    rounds.set(numberOf(line, "round"), value(line));
  }
  return groups;
}
