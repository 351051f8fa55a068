// What `doctor` says about one thing: what it found, why that matters, what exactly to do.

export const levels = ["ok", "warn", "fail"] as const;
export type Level = (typeof levels)[number];

export interface Finding {
  /** Stable word for programs, e.g. "receive-buffer". */
  readonly check: string;
  readonly level: Level;
  readonly finding: string;
  readonly why: string;
  /** A command or an edit, exactly; null when nothing has to be done. */
  readonly remedy: string | null;
}

export function countLevels(findings: readonly Finding[]): Record<Level, number> {
  const counts: Record<Level, number> = { ok: 0, warn: 0, fail: 0 };
  for (const { level } of findings) counts[level]++;
  return counts;
}
