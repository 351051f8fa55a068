// Cost of recovering FEC sets, and the deshredding rate of one core: tables and findings.

import { byRound, type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { type Rounds, type Summary, summarise } from "../report/statistics.ts";
import { micros, number } from "../report/table.ts";
import { finding, type Section } from "./section.ts";
import { fecSetBits, throughputTarget } from "./steps-section.ts";

const recoveryTargetUs = 60;

const of = (rounds: Rounds, value: (each: number) => number): Summary =>
  summarise([...rounds.values()].map(value));

export function recoverySection(lines: readonly Line[]): Section {
  const measured = ofKind(lines, "recovery");
  const groups = byRound(
    measured,
    (line) => [textOf(line, "what"), textOf(line, "path")].filter(Boolean).join(", "),
    (line) => numberOf(line, "ns"),
  );
  const steps = [...groups].map(([name, rounds]) => [name, of(rounds, (ns) => ns / 1000)] as const);
  const losses = steps.filter(([name]) => / lost(, all others there| at random)?$/.test(name));
  return {
    name: "recovery",
    title: "Recovery of a FEC set",
    notes: [
      "Everything: Reed-Solomon, the Merkle tree over all 64 shreds, its root against the signed " +
        "one, headers and proofs of the recovered packets, their rules. The relay recovers a set as " +
        "soon as 32 of its shreds are there, so that 32 are missing whichever these are.",
    ],
    tables: [
      {
        title: "CPU µs per FEC set",
        columns: ["part", "median", "quartiles"],
        rows: steps.map(([name, { median, low, high }]) => [
          name,
          number(median),
          `${number(low)}–${number(high)}`,
        ]),
      },
    ],
    findings: losses.map(([name, summary]) =>
      finding(`recovery of a FEC set, ${name}`, summary, {
        target: recoveryTargetUs,
        unit: "µs",
      }),
    ),
    values: Object.fromEntries(steps.map(([name, summary]) => [`${name}, µs`, summary])),
  };
}

interface Throughput {
  readonly arrival: string;
  /** Nanoseconds of CPU time for each FEC set. */
  readonly perSetNs: Summary;
  readonly gbitPerSecond: Summary;
  readonly transactionsPerSecond: Summary;
}

function throughputs(lines: readonly Line[]): Throughput[] {
  const measured = ofKind(lines, "deshred");
  const arrivals = [...new Set(measured.map((line) => textOf(line, "arrival")))];
  return arrivals.map((arrival) => {
    const own = measured.filter((line) => textOf(line, "arrival") === arrival);
    const perSet = own.map((line) => numberOf(line, "cpu_ns") / numberOf(line, "sets"));
    return {
      arrival,
      perSetNs: summarise(perSet),
      gbitPerSecond: summarise(perSet.map((ns) => fecSetBits / ns)),
      transactionsPerSecond: summarise(
        own.map((line) => (1e9 * numberOf(line, "transactions")) / numberOf(line, "cpu_ns")),
      ),
    };
  });
}

export function deshredSection(lines: readonly Line[]): Section {
  const measured = throughputs(lines);
  const entries = ofKind(lines, "entries");
  const perTransaction = summarise(
    entries.map((line) => numberOf(line, "cpu_ns") / numberOf(line, "transactions")),
  );
  const megabytes = summarise(
    entries.map((line) => (1000 * numberOf(line, "bytes")) / numberOf(line, "cpu_ns")),
  );
  return {
    name: "deshred",
    title: "Deshredding, one core",
    notes: [
      "The whole work of the deshred thread but the ring: rules, FEC sets, entries, transactions, " +
        "watch-list, memory of landings. Batches of two FEC sets with entries of 1 to 16 " +
        "transactions of 215 to 355 bytes, half of them votes; every transaction came out. Gbit/s " +
        "count all 64 shreds of a set, lost ones included.",
    ],
    tables: [
      {
        title: "CPU µs per FEC set, and what follows",
        columns: ["shreds come", "median", "quartiles", "Gbit/s", "transactions/s"],
        rows: measured.map(({ arrival, perSetNs, gbitPerSecond, transactionsPerSecond }) => [
          arrival,
          micros(perSetNs.median),
          `${micros(perSetNs.low)}–${micros(perSetNs.high)}`,
          number(gbitPerSecond.median),
          number(transactionsPerSecond.median),
        ]),
      },
      {
        title: "Entries and transactions alone, in the pieces that data shreds carry",
        columns: ["", "median", "quartiles"],
        rows: [row("CPU ns per transaction", perTransaction), row("MB/s", megabytes)],
      },
    ],
    findings: measured.map(({ arrival, gbitPerSecond }) =>
      finding(`deshredding, one core, ${arrival}`, gbitPerSecond, {
        target: throughputTarget,
        unit: "Gbit/s",
        bound: "at least",
      }),
    ),
    values: {
      ...Object.fromEntries(
        measured.flatMap(({ arrival, perSetNs, gbitPerSecond }) => [
          [`${arrival}, ns per FEC set`, perSetNs],
          [`${arrival}, Gbit/s`, gbitPerSecond],
        ]),
      ),
      "entries, ns per transaction": perTransaction,
      "entries, MB/s": megabytes,
    },
  };
}

function row(name: string, { median, low, high }: Summary): string[] {
  return [name, number(median), `${number(low)}–${number(high)}`];
}
