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

export function ok(check: string, finding: string, why: string): Found {
  return { check, level: "ok", finding, why, remedy: null };
}

export function countLevels(findings: readonly Found[]): Record<Level, number> {
  const counts: Record<Level, number> = { ok: 0, warn: 0, fail: 0 };
  for (const { level } of findings) counts[level]++;
  return counts;
}
