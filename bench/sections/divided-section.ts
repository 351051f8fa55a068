// A worker alone, compared with a worker and its sender threads: converts lines of the divided scenario
// to tables and findings.

import { byRound, type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { perRound, type Rounds, summarise } from "../report/statistics.ts";
import { micros, number, percent, type Table } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const wayTexts: Readonly<Record<string, string>> = {
  worker: "worker alone",
  "1_sleeping": "and one thread that sleeps",
  "1_polling": "and one thread that polls",
  "2_sleeping": "and two threads that sleep",
};
const judgedDestinations = 200;
const lastTargetNs = 120_000;

const destinationsOf = (line: Line) => numberOf(line, "destinations");

function rounds(lines: readonly Line[], way: string, key: string): Rounds {
  const complete = lines.filter((line) => line.get("way") === way && numberOf(line, "p50_ns") > 0);
  return (
    byRound(
      complete,
      () => way,
      (line) => numberOf(line, key),
    ).get(way) ?? new Map()
  );
}

function toWorker(lines: readonly Line[], way: string, key: string) {
  return summarise(
    perRound(
      [rounds(lines, way, key), rounds(lines, "worker", key)],
      ([own = 0, alone = 0]) => own / alone,
    ),
  );
}

function sumOf(lines: readonly Line[], key: string): number {
  return lines.reduce((sum, line) => sum + numberOf(line, key), 0);
}

function table(title: string, lines: readonly Line[], sendsKey: string): Table {
  const counts = [...new Set(lines.map(destinationsOf))];
  return {
    title,
    columns: ["destinations", "sent by", "p50", "p99", "p50 ÷ alone", "p99 ÷ alone", "late"],
    rows: counts.flatMap((count) => {
      const here = lines.filter((line) => destinationsOf(line) === count);
      const ways = Object.keys(wayTexts).filter((way) =>
        here.some((line) => line.get("way") === way),
      );
      return ways.map((way) => {
        const own = here.filter((line) => line.get("way") === way);
        const ratio = toWorker(here, way, "p50_ns");
        const threads = Number.parseInt(way, 10);
        return [
          String(count),
          wayTexts[way] ?? way,
          micros(summarise([...rounds(here, way, "p50_ns").values()]).median),
          micros(summarise([...rounds(here, way, "p99_ns").values()]).median),
          `${number(ratio.median)} (${number(ratio.low)}–${number(ratio.high)})`,
          number(toWorker(here, way, "p99_ns").median),
          way === "worker" ? "" : percent(sumOf(own, "late") / sumOf(own, sendsKey) / threads),
        ];
      });
    }),
  };
}

function findings(what: string, lines: readonly Line[]): Finding[] {
  const judged = lines.filter((line) => destinationsOf(line) === judgedDestinations);
  const way = ["2_sleeping", "1_sleeping"].find((one) =>
    judged.some((line) => line.get("way") === one),
  );
  if (way === undefined) return [];
  const values = [...rounds(judged, way, "p50_ns").values()].map((ns) => ns / 1000);
  return [
    finding(`${what}, last of 200 destinations, worker ${wayTexts[way]}, p50`, summarise(values), {
      target: lastTargetNs / 1000,
      unit: "µs",
    }),
  ];
}

export function dividedSection(lines: readonly Line[]): Section {
  const sends = ofKind(lines, "divided_send");
  const relays = ofKind(lines, "divided_relay");
  const skipped = ofKind(lines, "transmit_skipped").map(
    (line) => `Skipped: ${textOf(line, "what")} (${textOf(line, "why")}).`,
  );
  const failed = sumOf(sends, "failed");
  const lost = sumOf(relays, "lost");
  return {
    name: "divided",
    title: "Sender threads: single shreds by socket",
    notes: [
      ...skipped,
      "Sends alone: µs from the call until the kernel has the datagram of the last destination, to a " +
        "device that drops them, with a pause of 400 µs between two sends. Late: share of the threads " +
        "that had not begun when everything was sent; another program had their CPU.",
      "Whole relays: µs from the generator's send call to the kernel's receive time at the last " +
        "destination, on veth, where each CPU also does the receiver's work for what it sends. The " +
        "generator shares its CPU with the sender thread if there are only two.",
      `Refused datagrams: ${failed}. Shreds that some destination did not get, left out: ${lost}.`,
    ],
    tables: [
      ...(sends.length > 0 ? [table("Sends alone, µs", sends, "sends")] : []),
      ...(relays.length > 0 ? [table("Whole relays on veth, µs", relays, "samples")] : []),
    ],
    findings: [...findings("sends alone", sends), ...findings("whole relay", relays)],
    values: Object.fromEntries(
      [...new Set(sends.map(destinationsOf))].flatMap((count) =>
        Object.keys(wayTexts)
          .filter((way) => sends.some((line) => line.get("way") === way))
          .map((way) => [
            `${way}, ${count} destinations, p50 ÷ alone`,
            toWorker(
              sends.filter((line) => destinationsOf(line) === count),
              way,
              "p50_ns",
            ),
          ]),
      ),
    ),
  };
}
