// What `doctor` says about one thing: what it found, why that matters, what exactly to do, and how to
// see that it helped.

import { measures } from "./measures.ts";

export const levels = ["ok", "warn", "fail"] as const;
export type Level = (typeof levels)[number];

/** As a check makes it. */
export interface Found {
  /** Stable word for programs, e.g. "receive-buffer". */
  readonly check: string;
  readonly level: Level;
  readonly finding: string;
  readonly why: string;
  /** A command or an edit, exactly; null when nothing has to be done. */
  readonly remedy: string | null;
}

export interface Finding extends Found {
  /** How to see that the remedy helped; null when nothing has to be done. */
  readonly measure: string | null;
}

export function withMeasure(found: Found): Finding {
  const measure = found.level === "ok" ? null : (measures[found.check] ?? null);
  return { ...found, measure };
}

/** Makes the findings of one check. */
interface FindingBuilder {
  readonly ok: (finding: string) => Found;
  readonly warn: (finding: string, remedy: string | null) => Found;
  readonly fail: (finding: string, remedy: string | null) => Found;
  /** For a level that is computed. */
  readonly withLevel: (level: Level, finding: string, remedy: string | null) => Found;
}

/** `check`: see Found. `why`: why what it looks at matters. */
export function about(check: string, why: string): FindingBuilder {
  const withLevel = (level: Level, finding: string, remedy: string | null): Found => ({
    check,
    level,
    finding,
    why,
    remedy,
  });
  return {
    ok: (finding) => withLevel("ok", finding, null),
    warn: (finding, remedy) => withLevel("warn", finding, remedy),
    fail: (finding, remedy) => withLevel("fail", finding, remedy),
    withLevel,
  };
}

export function countLevels(findings: readonly Found[]): Record<Level, number> {
  const counts: Record<Level, number> = { ok: 0, warn: 0, fail: 0 };
  for (const { level } of findings) counts[level]++;
  return counts;
}
