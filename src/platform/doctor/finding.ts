// A finding of `doctor`: the value found, why it matters, the exact remedy, and how to verify the
// remedy.

import { measures } from "./measures.ts";

export const levels = ["ok", "warn", "fail"] as const;
export type Level = (typeof levels)[number];

/** A finding as returned by a check. */
export interface Found {
  /** Stable identifier for programs, for example "receive-buffer". */
  readonly check: string;
  readonly level: Level;
  readonly finding: string;
  readonly why: string;
  /** An exact command or edit; null: no action needed. */
  readonly remedy: string | null;
}

export interface Finding extends Found {
  /** How to verify the remedy; null: no action needed. */
  readonly measure: string | null;
}

export function withMeasure(found: Found): Finding {
  const measure = found.level === "ok" ? null : (measures[found.check] ?? null);
  return { ...found, measure };
}

/** Builds the findings of one check. */
interface FindingBuilder {
  readonly ok: (finding: string) => Found;
  readonly warn: (finding: string, remedy: string | null) => Found;
  readonly fail: (finding: string, remedy: string | null) => Found;
  /** For a computed level. */
  readonly withLevel: (level: Level, finding: string, remedy: string | null) => Found;
}

/** `check`: see Found. `why`: the reason for the check. */
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
