// A section of the report: what one scenario found, ready to be printed in any form.

import { type Bound, judge, type Outcome, type Summary } from "./statistics.ts";
import { number, type Table } from "./table.ts";

/** One thing the project reaches for, and whether this run got there. */
export interface Finding {
  readonly what: string;
  readonly value: Summary;
  readonly unit: string;
  readonly reach: number;
  /** Whether `reach` is the most or the least that it should be. */
  readonly bound: Bound;
  readonly outcome: Outcome;
}

export interface Section {
  readonly name: string;
  readonly title: string;
  readonly notes: readonly string[];
  readonly tables: readonly Table[];
  readonly findings: readonly Finding[];
  /** Everything in the tables, as numbers, for --json. */
  readonly values: Readonly<Record<string, Summary>>;
}

export function finding(
  what: string,
  value: Summary,
  limit: { reach: number; unit: string; reference?: Summary | undefined; bound?: Bound },
): Finding {
  const { reach, unit, reference, bound = "at most" } = limit;
  return { what, value, unit, reach, bound, outcome: judge(value, reach, reference, bound) };
}

export function findingText({ what, value, unit, reach, bound, outcome }: Finding): string {
  const range = value.count > 1 ? ` (${number(value.low)} to ${number(value.high)})` : "";
  const wish = bound === "at most" ? "reach for" : "reach for at least";
  return `${outcome.padEnd(10)}  ${what}: ${number(value.median)}${range} ${unit}, ${wish} ${number(reach)}`;
}
