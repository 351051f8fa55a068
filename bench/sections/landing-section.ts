// From the last needed shred to the report of a watched transaction: tables and findings.
//
// The native scenario measures on the deshred thread, landings-in-javascript.ts from the other side
// of the addon.

import {
  type JavaScriptLandings,
  landingsInJavaScript,
} from "../baselines/landings-in-javascript.ts";
import { type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { quantile, type Summary, summarise } from "../report/statistics.ts";
import { micros } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const targetUs = 1000;

interface Landings {
  readonly which: string;
  readonly p50: Summary;
  readonly p99: Summary;
  readonly p99Best: number;
  readonly watched: number;
  readonly reported: number;
}

interface Round {
  readonly p50Ns: number;
  readonly p99Ns: number;
  readonly watched: number;
  readonly reported: number;
}

function landingsOf(which: string, rounds: readonly Round[]): Landings {
  const tails = rounds.map(({ p99Ns }) => p99Ns);
  return {
    which,
    p50: summarise(rounds.map(({ p50Ns }) => p50Ns)),
    p99: summarise(tails),
    p99Best: Math.min(...tails),
    watched: rounds.reduce((sum, { watched }) => sum + watched, 0),
    reported: rounds.reduce((sum, { reported }) => sum + reported, 0),
  };
}

function nativeLandings(lines: readonly Line[]): Landings[] {
  return [...new Set(lines.map((line) => textOf(line, "case")))].map((which) =>
    landingsOf(
      which,
      lines
        .filter((line) => textOf(line, "case") === which)
        .map((line) => ({
          p50Ns: numberOf(line, "p50_ns"),
          p99Ns: numberOf(line, "p99_ns"),
          watched: numberOf(line, "watched"),
          reported: numberOf(line, "reported"),
        })),
    ),
  );
}

function javaScriptLandings(runs: readonly JavaScriptLandings[]): Landings {
  return landingsOf(
    "one by one, nothing lost, in JavaScript",
    runs.map(({ delaysNs, watched }) => ({
      p50Ns: quantile(delaysNs, 0.5),
      p99Ns: quantile(delaysNs, 0.99),
      watched,
      reported: delaysNs.length,
    })),
  );
}

/** A report that never arrived does not count as in time. */
function landingFinding({ which, p99Best, watched, reported }: Landings): Finding {
  const what = `best p99 from the last needed shred to the report, ${which}`;
  const limit = { target: targetUs, unit: "µs" };
  const found = finding(what, summarise([p99Best / 1000]), limit);
  if (reported === watched) return found;
  return { ...found, what: `${what} (${watched - reported} not reported)`, verdict: "missed" };
}

export function landingSection(
  lines: readonly Line[],
  runs: readonly JavaScriptLandings[],
): Section {
  const reports = nativeLandings(ofKind(lines, "landings"));
  const all = [...reports, javaScriptLandings(runs)];
  return {
    name: "landings",
    title: "Report of a watched transaction, µs after its last needed shred came",
    notes: [
      "10,000 shreds/s over loopback, watched transactions in every batch, wall time from the " +
        "kernel's receive time to the report on the deshred thread (buckets of 6 %, upper end). The " +
        "thread looks every 200 µs. p99 is that of the best round, with the median of the rounds.",
      "In JavaScript: the same until `drainLandings` returned it, in another process, with an idle " +
        `event loop, ${runs.length} runs.`,
    ],
    tables: [
      {
        title: "Wall time in µs",
        columns: ["shreds come", "p50", "best p99", "median p99", "watched", "reported"],
        rows: all.map(({ which, p50, p99, p99Best, watched, reported }) => [
          which,
          micros(p50.median),
          micros(p99Best),
          micros(p99.median),
          String(watched),
          String(reported),
        ]),
      },
    ],
    findings: reports.map(landingFinding),
    values: Object.fromEntries(
      all.flatMap(({ which, p50, p99 }) => [
        [`${which}, p50 ns`, p50],
        [`${which}, p99 ns`, p99],
      ]),
    ),
  };
}

export async function landingsSection(lines: readonly Line[], small: boolean): Promise<Section> {
  const runs: JavaScriptLandings[] = [];
  for (let i = 0; i < (small ? 1 : 7); i++)
    runs.push(await landingsInJavaScript(small ? 200 : 600));
  return landingSection(lines, runs);
}
