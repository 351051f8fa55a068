// Latency and highest rate: converts lines of these scenarios to tables and findings.

import { byRound, type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { perRound, summarise } from "../report/statistics.ts";
import { micros, number, type Table } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const caseOf = (line: Line) =>
  `${numberOf(line, "destinations")} × burst of ${numberOf(line, "burst")}`;

function latencyTable(title: string, lines: readonly Line[]): Table {
  return {
    title,
    columns: [
      "relay",
      "first p50",
      "first p99",
      "first p99.9",
      "last p50",
      "last p99",
      "last p99.9",
      "shreds",
      "lost",
    ],
    rows: lines.map((line) => [
      textOf(line, "driver"),
      ...["first_p50_ns", "first_p99_ns", "first_p999_ns"].map((key) =>
        micros(numberOf(line, key)),
      ),
      ...["last_p50_ns", "last_p99_ns", "last_p999_ns"].map((key) => micros(numberOf(line, key))),
      String(numberOf(line, "samples")),
      String(numberOf(line, "lost")),
    ]),
  };
}

const waitModes = [
  ["shredway", "block"],
  ["shredway_spin", "spin"],
  ["shredway_busy", "busy"],
] as const;
/** Destinations from which on sending outweighs the wake-up. */
const wakeUpDestinationsMax = 50;
const wakeUpTargets = [
  ["p50", 1.1],
  ["p99", 1.25],
] as const;

/** Ratio of each round to the forwarder of the same round, to the last destination. */
function latencyFindings(rounds: readonly Line[]): Finding[] {
  const judged = rounds.filter(
    (line) =>
      numberOf(line, "samples") > 0 && numberOf(line, "destinations") <= wakeUpDestinationsMax,
  );
  return [...new Set(judged.map(caseOf))].flatMap((which) => {
    const own = judged.filter((line) => caseOf(line) === which);
    return waitModes.flatMap(([driver, wait]) =>
      wakeUpTargets.map(([part, target]) => {
        const values = byRound(
          own,
          (line) => textOf(line, "driver"),
          (line) => numberOf(line, `last_${part}_ns`),
        );
        const ratio = summarise(
          perRound(
            [values.get(driver) ?? new Map(), values.get("forwarder") ?? new Map()],
            ([ours = 0, reference = 0]) => ours / reference,
          ),
        );
        const what = `${part} to the last destination ÷ forwarder, wait: ${wait}, ${which}`;
        return finding(what, ratio, { target, unit: "×", isRatio: true });
      }),
    );
  });
}

export function latencySection(lines: readonly Line[]): Section {
  const rounds = ofKind(lines, "latency");
  const totals = ofKind(lines, "latency_total");
  const cases = [...new Set(totals.map(caseOf))];
  const values = rounds.map((line) => `${textOf(line, "driver")}, ${caseOf(line)}`);
  const p50 = (key: string, field: string) =>
    summarise(
      rounds
        .filter((line) => `${textOf(line, "driver")}, ${caseOf(line)}` === key)
        .map((line) => numberOf(line, field)),
    );
  return {
    name: "latency",
    title: "Latency at moderate load, µs from the generator's send call",
    notes: [
      "Over loopback, kernel receive times at the destinations; the sender also pays for the " +
        "receivers, so a real network is faster to the last destination.",
      "p99 and beyond are of all rounds together; on a shared machine they show the neighbours.",
      "shredway sleeps between packets (wait: block), shredway_spin looks for 150 µs first, shredway_busy never " +
        "sleeps and runs only in its own slots.",
    ],
    tables: cases.map((which) =>
      latencyTable(
        `Latency, ${which}`,
        totals.filter((line) => caseOf(line) === which),
      ),
    ),
    findings: latencyFindings(rounds),
    values: Object.fromEntries(
      [...new Set(values)].flatMap((key) => [
        [`${key}, first p50 ns`, p50(key, "first_p50_ns")],
        [`${key}, last p50 ns`, p50(key, "last_p50_ns")],
      ]),
    ),
  };
}

export function rateSection(lines: readonly Line[]): Section {
  const measured = ofKind(lines, "rate");
  const rateOf = (line: Line) => numberOf(line, "shreds_per_second");
  return {
    name: "rate",
    title: "Highest rate without loss, one core",
    notes: [
      "A rate passes if every datagram was sent 10 ms after the last shred arrived. Trials take 150 ms (small " +
        "form: 60 ms); one bisection each, so only two digits are significant.",
      "“kernel_segments”: the device takes no GSO messages whole. “at least” marks the generator's end.",
    ],
    tables: [
      {
        title: "Distinct shreds per second, and datagrams per second",
        columns: ["destinations × burst", "relay", "shreds/s", "datagrams/s"],
        rows: measured.map((line) => {
          const atLeast = line.get("generator_limit") === true ? "at least " : "";
          const datagrams = rateOf(line) * numberOf(line, "destinations");
          return [
            caseOf(line),
            textOf(line, "driver"),
            atLeast + number(rateOf(line)),
            atLeast + number(datagrams),
          ];
        }),
      },
    ],
    findings: [],
    values: Object.fromEntries(
      measured.map((line) => [
        `${textOf(line, "driver")}, ${caseOf(line)}, shreds per second`,
        summarise([rateOf(line)]),
      ]),
    ),
  };
}
