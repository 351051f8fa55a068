// The cost of deshredding for the packets: the hand-over in the worker, and the latency.

import { byRound, type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { perRound, type Rounds, type Summary, spread, summarise } from "../report/statistics.ts";
import { micros, number } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const latencyTarget = 1.05;
const steadySpreadMax = 0.05;
const none: Rounds = new Map();

// ---- hand-over ------------------------------------------------------------------------------

interface HandOverCost {
  readonly batch: number;
  readonly without: Summary;
  readonly with: Summary;
  /** Nanoseconds for each new shred: with minus without, round by round. */
  readonly cost: Summary;
  /** Share of the new shreds that the deshred thread received. */
  readonly handedPackets: number;
}

function handOvers(lines: readonly Line[]): HandOverCost[] {
  return [...new Set(lines.map((line) => numberOf(line, "batch")))].map((batch) => {
    const own = lines.filter((line) => numberOf(line, "batch") === batch);
    const costs = byRound(
      own,
      (line) => textOf(line, "driver"),
      (line) => numberOf(line, "cpu_ns") / numberOf(line, "first"),
    );
    const inputs = [costs.get("with") ?? none, costs.get("without") ?? none];
    const reading = own.filter((line) => textOf(line, "driver") === "with");
    const sum = (key: string) => reading.reduce((total, line) => total + numberOf(line, key), 0);
    return {
      batch,
      without: summarise([...(costs.get("without") ?? none).values()]),
      with: summarise([...(costs.get("with") ?? none).values()]),
      cost: summarise(perRound(inputs, ([all = 0, bare = 0]) => all - bare)),
      handedPackets: 1 - sum("lost") / sum("first"),
    };
  });
}

function allocationFindings(lines: readonly Line[]): Finding[] {
  // OpenSSL allocates internally, the worker never does: only the numbers with libsodium count.
  const counted = lines.filter(
    (line) => line.get("counted") === true && line.get("library") === "libsodium",
  );
  if (counted.length === 0) return [];
  const sum = (key: string) => counted.reduce((total, line) => total + numberOf(line, key), 0);
  return [
    finding(
      "allocations in the worker, hand-over included, with libsodium",
      summarise([sum("allocations")]),
      { target: 0, unit: `in ${sum("packets")} packets` },
    ),
  ];
}

export function handOverSection(lines: readonly Line[]): Section {
  const measured = ofKind(lines, "hand_over");
  const results = handOvers(measured);
  return {
    name: "hand-over",
    title: "What the hand-over to the deshred thread costs the worker",
    notes: [
      "A real worker, fed from memory, sending to nobody, all shreds new; the deshred thread reads " +
        "on another CPU meanwhile. The copy is made after the shreds were sent.",
    ],
    tables: [
      {
        title: "CPU ns of the worker per new shred",
        columns: ["packets per batch", "without", "with", "hand-over", "quartiles", "handed over"],
        rows: results.map((result) => [
          String(result.batch),
          number(result.without.median),
          number(result.with.median),
          number(result.cost.median),
          `${number(result.cost.low)}–${number(result.cost.high)}`,
          `${(100 * result.handedPackets).toFixed(0)} %`,
        ]),
      },
    ],
    findings: allocationFindings(measured),
    values: Object.fromEntries(
      results.flatMap((result) => [
        [`hand-over, batches of ${result.batch}, ns per new shred`, result.cost],
        [`without hand-over, batches of ${result.batch}, ns per new shred`, result.without],
      ]),
    ),
  };
}

// ---- latency --------------------------------------------------------------------------------

const caseOf = (line: Line) =>
  `${numberOf(line, "destinations")} × burst of ${numberOf(line, "burst")}`;

interface BesideBaseline {
  readonly which: string;
  readonly p50: { readonly without: Rounds; readonly with: Rounds };
  readonly p99: { readonly without: Rounds; readonly with: Rounds };
  readonly lost: number;
  readonly samples: number;
  readonly recovered: number;
}

function besideBaselines(lines: readonly Line[]): BesideBaseline[] {
  return [...new Set(lines.map(caseOf))].map((which) => {
    const own = lines.filter((line) => caseOf(line) === which);
    const rounds = (field: string) => {
      const groups = byRound(
        own.filter((line) => numberOf(line, "samples") > 0),
        (line) => textOf(line, "driver"),
        (line) => numberOf(line, field),
      );
      return { without: groups.get("without") ?? none, with: groups.get("with") ?? none };
    };
    const sum = (key: string) => own.reduce((total, line) => total + numberOf(line, key), 0);
    return {
      which,
      p50: rounds("p50_ns"),
      p99: rounds("p99_ns"),
      lost: sum("lost"),
      samples: sum("samples"),
      recovered: sum("recovered"),
    };
  });
}

const ratioOf = ({ with: on, without: off }: BesideBaseline["p50"]) =>
  summarise(perRound([on, off], ([ours = 0, reference = 0]) => ours / reference));

/**
 * The smallest of all rounds: the tail of the run with the least disturbance by other processes.
 */
const best = (rounds: Rounds) => Math.min(...rounds.values());

function besideFindings(beside: BesideBaseline): Finding[] {
  const tail = beside.p99;
  const ratio = summarise([best(tail.with) / best(tail.without)]);
  const what = `deshredding ÷ none, ${beside.which}`;
  const tails = { target: latencyTarget, unit: "×", isRatio: true };
  const found = finding(`best p99 with ${what}`, { ...ratio, count: tail.with.size }, tails);
  // A ratio of two best rounds has no interval: it meets its target only if the rounds agree.
  const isSteady = spread(summarise([...tail.without.values()])) <= steadySpreadMax;
  const verdict = found.verdict === "met" && !isSteady ? "inconclusive" : found.verdict;
  return [
    finding(`p50 with ${what}`, ratioOf(beside.p50), {
      target: latencyTarget,
      unit: "×",
      isRatio: true,
    }),
    { ...found, value: ratio, verdict },
  ];
}

export function besideSection(lines: readonly Line[]): Section {
  const results = besideBaselines(ofKind(lines, "beside"));
  const median = (rounds: Rounds) => micros(summarise([...rounds.values()]).median);
  return {
    name: "beside",
    title: "Latency with and without deshredding, µs from the generator's send call",
    notes: [
      "To the last destination, over loopback. Shreds contain entries and arrive in random order within " +
        "their FEC set, so the deshred thread recovers every set. The system places the thread. p99 is " +
        "that of the best round, because on a shared machine the others show the neighbours.",
    ],
    tables: [
      {
        title: "Latency, p50 and best p99",
        columns: [
          "destinations × burst",
          "p50 without",
          "p50 with",
          "ratio",
          "quartiles",
          "p99 without",
          "p99 with",
          "shreds",
          "lost",
          "sets recovered",
        ],
        rows: results.map((result) => {
          const ratio = ratioOf(result.p50);
          return [
            result.which,
            median(result.p50.without),
            median(result.p50.with),
            number(ratio.median),
            `${number(ratio.low)}–${number(ratio.high)}`,
            micros(best(result.p99.without)),
            micros(best(result.p99.with)),
            String(result.samples),
            String(result.lost),
            String(result.recovered),
          ];
        }),
      },
    ],
    findings: results.flatMap(besideFindings),
    values: Object.fromEntries(
      results.flatMap((result) => [
        [`${result.which}, p50 ratio`, ratioOf(result.p50)],
        [`${result.which}, p50 without, ns`, summarise([...result.p50.without.values()])],
        [`${result.which}, p50 with, ns`, summarise([...result.p50.with.values()])],
      ]),
    ),
  };
}
