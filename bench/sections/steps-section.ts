// Cost of each step, of the worker by kind of packet, and its allocations: tables and findings.

import { byRound, type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { perRound, type Rounds, type Summary, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const shredderStep = "shredder, one FEC set of 64 shreds";

function summaries(groups: ReadonlyMap<string, Rounds>): [string, Summary][] {
  return [...groups].map(([name, rounds]) => [name, summarise([...rounds.values()])]);
}

/** Bits of all 64 shreds of a FEC set, as sent. */
export const fecSetBits = (32 * 1203 + 32 * 1228) * 8;

/** At least this many Gbit/s of shreds on one core, made or read. */
export const throughputTarget = 2;

function shredderFindings(rounds: Rounds | undefined): Finding[] {
  if (!rounds) return [];
  const rate = summarise([...rounds.values()].map((ns) => fecSetBits / ns));
  return [
    finding("shredding, one core", rate, {
      target: throughputTarget,
      unit: "Gbit/s",
      bound: "at least",
    }),
  ];
}

/** Targets in CPU ns per operation, by the first words of the step. */
const targetsNs = new Map([
  ["authentication per shred", 2500],
  ["signature check with a prepared key", 30_000],
]);

export function stepsSection(lines: readonly Line[]): Section {
  const groups = byRound(
    ofKind(lines, "step"),
    (line) => textOf(line, "step"),
    (line) => numberOf(line, "ns"),
  );
  const steps = summaries(groups);
  const shredder = steps.find(([name]) => name === shredderStep)?.[1];
  const targets = steps.flatMap(([name, summary]) => {
    const target = [...targetsNs].find(([prefix]) => name.startsWith(prefix))?.[1];
    return target === undefined ? [] : [finding(name, summary, { target, unit: "ns" })];
  });
  return {
    name: "steps",
    title: "Cost of each step",
    notes: shredder
      ? [
          `The shredder makes ${number(64e9 / shredder.median)} authentic shreds/s on one core, ` +
            `${number(fecSetBits / shredder.median)} Gbit/s.`,
        ]
      : [],
    tables: [
      {
        title: "Steps: CPU ns per operation",
        columns: ["step", "median", "quartiles"],
        rows: steps.map(([name, { median, low, high }]) => [
          name,
          number(median),
          `${number(low)}–${number(high)}`,
        ]),
      },
    ],
    findings: [...targets, ...shredderFindings(groups.get(shredderStep))],
    values: Object.fromEntries(steps.map(([name, summary]) => [`${name}, ns`, summary])),
  };
}

function workerFindings(beyond: ReadonlyMap<string, Summary>, lines: readonly Line[]): Finding[] {
  const duplicate = beyond.get("all duplicates");
  const sodium = lines.find((line) => line.get("library") === "libsodium");
  return [
    ...(duplicate
      ? [
          finding("parse, checks and memory of a duplicate, beyond receiving", duplicate, {
            target: 150,
            unit: "ns",
          }),
        ]
      : []),
    ...(sodium?.get("counted") === true
      ? [
          finding(
            "allocations in the worker, with libsodium",
            summarise([numberOf(sodium, "allocations")]),
            { target: 0, unit: `in ${numberOf(sodium, "packets")} packets` },
          ),
        ]
      : []),
  ];
}

export function workerSection(lines: readonly Line[]): Section {
  const measured = ofKind(lines, "worker");
  const allocations = ofKind(lines, "allocations");
  const cost = (line: Line) => numberOf(line, "cpu_ns") / numberOf(line, "packets");
  const ofDriver = (driver: string) =>
    byRound(
      measured.filter((line) => line.get("driver") === driver),
      (line) => textOf(line, "mix"),
      cost,
    );
  const receive = ofDriver("receive");
  const relay = ofDriver("shredway");
  const beyond = new Map<string, Summary>();
  for (const [mix, rounds] of relay) {
    const inputs = [rounds, receive.get(mix) ?? new Map<number, number>()];
    beyond.set(mix, summarise(perRound(inputs, ([all = 0, bare = 0]) => all - bare)));
  }
  const mixLine = (mix: string) =>
    measured.find((line) => line.get("mix") === mix && line.has("first"));
  return {
    name: "worker",
    title: "The worker's own work, by what comes in",
    notes: [
      "A real worker, fed from memory instead of a socket, sending to nobody. Copies come from a " +
        "second source, forged packets from a third, whose budget of failed checks is either " +
        "unlimited or used up. Without the deshred thread, which is measured apart.",
      "With OpenSSL each signature check allocates inside the library; the worker itself never does.",
    ],
    tables: [
      {
        title: "CPU ns per received packet, beyond receiving",
        columns: ["traffic", "median", "quartiles", "first", "duplicate", "refused"],
        rows: [...beyond].map(([mix, { median, low, high }]) => {
          const line = mixLine(mix);
          const share = (key: string) =>
            line
              ? `${((100 * numberOf(line, key)) / numberOf(line, "packets")).toFixed(0)} %`
              : "–";
          return [
            mix,
            number(median),
            `${number(low)}–${number(high)}`,
            share("first"),
            share("duplicate"),
            share("refused"),
          ];
        }),
      },
      {
        title:
          "Allocations in the worker's thread (new, duplicate and forged packets, 10 destinations)",
        columns: ["signature library", "packets", "allocations"],
        rows: allocations.map((line) => [
          textOf(line, "library"),
          String(numberOf(line, "packets")),
          line.get("counted") === true ? String(numberOf(line, "allocations")) : "not counted",
        ]),
      },
    ],
    findings: workerFindings(beyond, allocations),
    values: Object.fromEntries(
      [...beyond].map(([mix, summary]) => [`${mix}, ns per packet`, summary]),
    ),
  };
}
