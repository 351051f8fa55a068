// A section of the report: the result of one scenario, ready to be printed in any form.

import {
  type Bound,
  judge,
  type Summary,
  type Target,
  type Verdict,
} from "../report/statistics.ts";
import { number, type Table } from "../report/table.ts";

/** One target of the project, and whether this run met it. */
export interface Finding {
  readonly what: string;
  readonly value: Summary;
  readonly unit: string;
  readonly target: number;
  /** Whether `target` is the maximum or the minimum of the value. */
  readonly bound: Bound;
  readonly verdict: Verdict;
}

/** Pairs of a bucket's lower bound in nanoseconds and its count. */
export type Histogram = readonly (readonly [fromNs: number, count: number])[];

export interface Section {
  readonly name: string;
  readonly title: string;
  readonly notes: readonly string[];
  readonly tables: readonly Table[];
  readonly findings: readonly Finding[];
  /** Everything in the tables, as numbers, for --json. */
  readonly values: Readonly<Record<string, Summary>>;
  /** Distributions of latencies, which the stored report keeps. */
  readonly histograms?: Readonly<Record<string, Histogram>>;
}

export function finding(
  what: string,
  value: Summary,
  limit: Target & { readonly unit: string },
): Finding {
  const { target, unit, bound = "at most" } = limit;
  return { what, value, unit, target, bound, verdict: judge(value, limit) };
}

/** "0.230 (0.226 to 0.234) ×": median, and quartiles where there are several rounds. */
export function measuredText({ value, unit }: Finding): string {
  const range = value.count > 1 ? ` (${number(value.low)} to ${number(value.high)})` : "";
  return `${number(value.median)}${range} ${unit}`;
}

/** "≥ 0.8" */
export function targetText({ target, bound }: Finding): string {
  return `${bound === "at most" ? "≤" : "≥"} ${target.toLocaleString("en-US")}`;
}

export function findingText(found: Finding): string {
  const { verdict, what } = found;
  return `${verdict.padEnd(12)}  ${what}: ${measuredText(found)}, target: ${targetText(found)}`;
}

/** "3 targets: 1 met, 2 missed, 0 inconclusive" */
export function verdictsText(findings: readonly Finding[]): string {
  const count = (one: Verdict) => findings.filter(({ verdict }) => verdict === one).length;
  const counts = (["met", "missed", "inconclusive"] as const).map((one) => `${count(one)} ${one}`);
  return `${findings.length} targets: ${counts.join(", ")}`;
}
