// Whole relays next to other programs that fan out UDP: converts lines of the peers scenario to tables,
// histograms and findings.

import { type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { type Summary, summarise } from "../report/statistics.ts";
import { micros, number, type Table } from "../report/table.ts";
import { type Finding, finding, type Histogram, type Section } from "./section.ts";

/** A p99.9 of fewer shreds is one of a few values. */
const tailSamplesMin = 100_000;
const names: Readonly<Record<string, string>> = {
  shredway: "Shredway",
  shredway_socket: "Shredway, sockets only",
  forwarder: "C forwarder, checks nothing",
  jito: "jito-shredstream-proxy",
  doublezero: "DoubleZero shred-proxy",
  gstreamer: "GStreamer multiudpsink",
};

const nameOf = (line: Line): string => {
  const contestant = textOf(line, "contestant");
  return names[contestant] ?? contestant;
};
const caseOf = (line: Line): string => {
  const [destinations, burst] = [numberOf(line, "destinations"), numberOf(line, "burst")];
  const arrival = burst === 1 ? "single shreds" : `bursts of ${burst}`;
  return `${destinations} ${destinations === 1 ? "destination" : "destinations"}, ${arrival}`;
};

/** "0:3 8:12" as pairs of the bucket's lower bound in nanoseconds and its count. */
function histogramOf(text: string): Histogram {
  const pairs = text === "" ? [] : text.split(" ");
  return pairs.map((pair) => {
    const [bucket = 0, count = 0] = pair.split(":").map(Number);
    return [Math.round(2 ** (bucket / 8)), count];
  });
}

class Rows {
  readonly rounds: readonly Line[];
  readonly totals: readonly Line[];
  readonly cases: readonly string[];

  constructor(lines: readonly Line[]) {
    this.rounds = ofKind(lines, "peers");
    this.totals = ofKind(lines, "peers_total");
    this.cases = [...new Set(this.totals.map(caseOf))];
  }

  totalsOf(which: string): readonly Line[] {
    return this.totals.filter((line) => caseOf(line) === which);
  }

  /** Values of the rounds that were not disturbed, by round. */
  values(which: string, contestant: string, of: (line: Line) => number): Map<number, number> {
    const own = this.rounds.filter(
      (line) =>
        caseOf(line) === which &&
        textOf(line, "contestant") === contestant &&
        line.get("disturbed") !== true,
    );
    return new Map(own.map((line) => [numberOf(line, "round"), of(line)]));
  }
}

/** Processor time per delivered datagram. */
const costOf = (line: Line): number => numberOf(line, "cpu_ns") / numberOf(line, "delivered");

function table(rows: Rows, which: string): Table {
  const totals = rows.totalsOf(which);
  const tail = (line: Line, key: string): string =>
    numberOf(line, "samples") < tailSamplesMin ? "–" : micros(numberOf(line, key));
  return {
    title: `${which}, ${number(numberOf(totals[0] ?? new Map(), "rate"))} shreds/s`,
    columns: [
      "relay",
      "CPU ns per datagram",
      "first p50",
      "first p99",
      "last p50",
      "last p99",
      "last p99.9",
      "shreds",
      "lost",
      "repeated",
      "rounds",
    ],
    rows: totals.map((line) => [
      nameOf(line),
      number(
        summarise([...rows.values(which, textOf(line, "contestant"), costOf).values()]).median,
      ),
      ...["first_p50_ns", "first_p99_ns", "last_p50_ns", "last_p99_ns"].map((key) =>
        numberOf(line, "samples") === 0 ? "–" : micros(numberOf(line, key)),
      ),
      tail(line, "last_p999_ns"),
      String(numberOf(line, "samples")),
      String(numberOf(line, "lost")),
      String(numberOf(line, "repeated")),
      `${numberOf(line, "rounds")} of ${numberOf(line, "rounds_all")}`,
    ]),
  };
}

const compared: readonly (readonly [what: string, of: (line: Line) => number])[] = [
  ["processor time per datagram", costOf],
  ["p50 to the last destination", (line) => numberOf(line, "last_p50_ns")],
  ["p99 to the last destination", (line) => numberOf(line, "last_p99_ns")],
];

/** Ratio of each round to the best other program of the same round that lost nothing. */
function ratioToBest(rows: Rows, which: string, of: (line: Line) => number): Summary {
  const others = rows
    .totalsOf(which)
    .filter((line) => numberOf(line, "lost") === 0 && numberOf(line, "rounds") > 0)
    .map((line) => textOf(line, "contestant"))
    .filter((contestant) => !contestant.startsWith("shredway") && contestant !== "forwarder");
  const best = others.map((contestant) => rows.values(which, contestant, of));
  const ratios = [...rows.values(which, "shredway", of)].flatMap(([round, own]) => {
    const values = best.flatMap((one) => one.get(round) ?? []);
    return values.length === 0 ? [] : [own / Math.min(...values)];
  });
  return summarise(ratios);
}

function findingsOf(rows: Rows): Finding[] {
  return rows.cases.flatMap((which) => {
    const lost = rows
      .totalsOf(which)
      .filter((line) => textOf(line, "contestant") === "shredway" && numberOf(line, "rounds") > 0);
    const wrong = lost.map((line) => numberOf(line, "lost") + numberOf(line, "repeated"));
    return [
      finding(`shredway, ${which}: lost and repeated`, summarise(wrong), {
        target: 0,
        unit: "datagrams",
      }),
      ...compared.map(([what, of]) =>
        finding(`${which}, ${what}: shredway ÷ best other`, ratioToBest(rows, which, of), {
          target: 1,
          unit: "×",
          isRatio: true,
        }),
      ),
    ];
  });
}

export function peersSection(lines: readonly Line[], missing: readonly string[]): Section {
  const rows = new Rows(lines);
  const skipped = ofKind(lines, "peers_skipped");
  const modes = ofKind(lines, "peers_mode").filter((line) => line.get("contestant") === "shredway");
  const apart = ofKind(lines, "peers_receiver")[0]?.get("other_cpu") === true;
  return {
    name: "peers",
    title: "The relay next to other programs that fan out UDP, µs from the schedule of the shred",
    notes: [
      "Over a veth pair between two network namespaces, kernel receive times. Each program has one CPU; the " +
        `generator, the sink${apart ? " and the receivers' part of the kernel" : ""} have another one.`,
      "Shredway, jito and doublezero get each shred from three sources and remove duplicates. Only Shredway " +
        "authenticates shreds. The other programs forward everything and get one copy. Shredway's row is its data " +
        "plane with all of its threads, without the control plane.",
      "Latency counts from the time at which the shred should have been sent, so a slow relay cannot hide later " +
        "shreds. Latencies are of all rounds together, the processor time is the median of the rounds. “–”: fewer than " +
        "100,000 shreds. A loss and a repetition of the same shred cancel each other.",
      "Rounds: those in which the generator kept its schedule (99 % within 1 ms) and the sink lost nothing. In the " +
        "others, further programs took the CPU of the generator; they are left out.",
      ...modes.map(
        (line) =>
          `Shredway chose for ${numberOf(line, "destinations")} destinations: ${numberOf(line, "cloned")} by clone` +
          `${textOf(line, "refusal") === "" ? "" : ` (${textOf(line, "refusal")})`}.`,
      ),
      ...[
        ...missing,
        ...skipped.map((line) => `${textOf(line, "what")}: ${textOf(line, "why")}`),
      ].map((text) => `Skipped ${text}.`),
    ],
    tables: rows.cases.map((which) => table(rows, which)),
    findings: findingsOf(rows),
    values: Object.fromEntries(
      rows.totals.flatMap((line) => {
        const key = `${textOf(line, "contestant")}, ${caseOf(line)}`;
        const contestant = textOf(line, "contestant");
        const cost = summarise([...rows.values(caseOf(line), contestant, costOf).values()]);
        const last = (part: string) => summarise([numberOf(line, `last_${part}_ns`)]);
        return [
          [`${key}, CPU ns per datagram`, cost],
          [`${key}, last p50 ns`, last("p50")],
          [`${key}, last p99 ns`, last("p99")],
        ];
      }),
    ),
    histograms: Object.fromEntries(
      rows.totals.flatMap((line) =>
        (["first", "last"] as const).map((end) => [
          `${textOf(line, "contestant")}, ${caseOf(line)}, ${end}`,
          histogramOf(textOf(line, `${end}_histogram`)),
        ]),
      ),
    ),
  };
}
