// A section of the report: what one scenario found, ready to be printed in any form.

import { judge, type Outcome, type Summary } from "./statistics.ts";
import { number, type Table } from "./table.ts";

/** One thing the project reaches for, and whether this run got there. */
export interface Finding {
  readonly what: string;
  readonly value: Summary;
  readonly unit: string;
  /** At most this. */
  readonly reach: number;
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
  limit: { reach: number; unit: string; reference?: Summary | undefined },
): Finding {
  const outcome = judge(value, limit.reach, limit.reference);
  return { what, value, unit: limit.unit, reach: limit.reach, outcome };
}

export function findingText({ what, value, unit, reach, outcome }: Finding): string {
  const range = value.count > 1 ? ` (${number(value.low)} to ${number(value.high)})` : "";
  return `${outcome.padEnd(10)}  ${what}: ${number(value.median)}${range} ${unit}, reach for ${number(reach)}`;
}
