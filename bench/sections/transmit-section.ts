// The transmit modes of a relay compared: converts lines of the transmit scenario to tables and
// findings.

import { byRound, type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { perRound, type Rounds, type Summary, summarise } from "../report/statistics.ts";
import { micros, number, percent, type Table } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const modes = ["bare_sendmmsg", "socket", "clone", "packet_ring", "xdp"] as const;
type Mode = (typeof modes)[number];

const modeTexts: Readonly<Record<Mode, string>> = {
  bare_sendmmsg: "bare sendmmsg",
  socket: "socket",
  clone: "clone",
  packet_ring: "AF_PACKET ring",
  xdp: "AF_XDP",
};

interface Case {
  readonly device: string;
  readonly destinations: number;
  readonly burst: number;
  readonly segmentation: string;
  readonly lines: readonly Line[];
  /**
   * CPU nanoseconds per datagram by transmit mode, for slots in which every datagram was delivered.
   */
  readonly rounds: ReadonlyMap<string, Rounds>;
}

const lossTolerated = 0.005;
/**
 * With fewer destinations, the single cloned send is most of the cost, and not a reason to replace
 * sockets.
 */
const judgedDestinationsMin = 50;
const targets = { single: 0.25, segmentedByDevice: 0.05, segmentedByKernel: 0.16, last: 0.05 };
const targetRate = 10_000;

function groupBy(lines: readonly Line[], key: (line: Line) => string): Map<string, Line[]> {
  const groups = new Map<string, Line[]>();
  for (const line of lines) groups.set(key(line), [...(groups.get(key(line)) ?? []), line]);
  return groups;
}

/** Whether every datagram left the device, and the mode's own counters agree. */
function isComplete(line: Line): boolean {
  return (
    Math.abs(numberOf(line, "delivered") - 1) <= lossTolerated &&
    Math.abs(numberOf(line, "told") - 1) <= lossTolerated
  );
}

function readCases(lines: readonly Line[]): Case[] {
  const groups = groupBy(lines, (line) =>
    ["device", "destinations", "burst", "segmentation"].map((key) => line.get(key)).join(" "),
  );
  return [...groups.values()].flatMap((own) => {
    const [first] = own;
    if (!first) return [];
    return {
      device: textOf(first, "device"),
      destinations: numberOf(first, "destinations"),
      burst: numberOf(first, "burst"),
      segmentation: textOf(first, "segmentation"),
      lines: own,
      rounds: byRound(
        own.filter(isComplete),
        (line) => textOf(line, "way"),
        (line) =>
          numberOf(line, "cpu_ns") / numberOf(line, "shreds") / numberOf(line, "destinations"),
      ),
    };
  });
}

function perDatagram(which: Case, mode: Mode): Rounds {
  return which.rounds.get(mode) ?? new Map();
}

function summaryOf(which: Case, mode: Mode): Summary {
  return summarise([...perDatagram(which, mode).values()]);
}

function toBare(which: Case, mode: Mode): Summary {
  return summarise(
    perRound(
      [perDatagram(which, mode), perDatagram(which, "bare_sendmmsg")],
      ([own = 0, bare = 0]) => own / bare,
    ),
  );
}

function label(which: Case): string {
  const segments = which.burst === 1 ? "" : `, segments cut by the ${which.segmentation}`;
  return `${which.destinations} × burst of ${which.burst}${segments}`;
}

/** A mode that always lost datagrams has no cost: the loss is shown instead. */
function lossText(which: Case, mode: Mode): string {
  const own = which.lines.filter((line) => line.get("way") === mode);
  if (own.length === 0) return "–";
  const { median } = summarise(own.map((line) => 1 - numberOf(line, "delivered")));
  return `${percent(median)} lost`;
}

function ratioText(summary: Summary): string {
  if (summary.count === 0) return "–";
  return `${number(summary.median)} (${number(summary.low)}–${number(summary.high)})`;
}

function costTables(device: string, title: string, cases: readonly Case[]): Table[] {
  const own = cases.filter((which) => which.device === device);
  if (own.length === 0) return [];
  const others = modes.slice(1);
  return [
    {
      title: `${title}: CPU ns per delivered datagram`,
      columns: ["destinations × burst", ...modes.map((mode) => modeTexts[mode])],
      rows: own.map((which) => [
        label(which),
        ...modes.map((mode) => {
          const summary = summaryOf(which, mode);
          return summary.count === 0 ? lossText(which, mode) : number(summary.median);
        }),
      ]),
    },
    {
      title: `${title}: ÷ bare sendmmsg`,
      columns: ["destinations × burst", ...others.map((mode) => modeTexts[mode])],
      rows: own.map((which) => [
        label(which),
        ...others.map((mode) => ratioText(toBare(which, mode))),
      ]),
    },
  ];
}

function costFindings(cases: readonly Case[]): Finding[] {
  const judged = cases.filter(
    ({ device, destinations, burst }) =>
      device === "null" && destinations >= judgedDestinationsMin && burst <= 8,
  );
  return judged.map((which) => {
    const ofBursts =
      which.segmentation === "device" ? targets.segmentedByDevice : targets.segmentedByKernel;
    return finding(`clone ÷ bare sendmmsg, ${label(which)}`, toBare(which, "clone"), {
      target: which.burst === 1 ? targets.single : ofBursts,
      unit: "×",
      isRatio: true,
    });
  });
}

// ---- latency --------------------------------------------------------------------------------

const contestants: Readonly<Record<string, string>> = {
  bare_sendmmsg: "bare sendmmsg",
  socket: "socket",
  clone: "clone",
  packet_ring: "AF_PACKET ring",
  xdp: "AF_XDP",
  forwarder: "forwarder, whole",
  relay_socket: "relay by socket, whole",
  relay_clone: "relay by clone, whole",
};

const latencyCase = (line: Line) =>
  `${numberOf(line, "destinations")} × burst of ${numberOf(line, "burst")}`;

function p50Of(lines: readonly Line[], mode: string, key: string): Rounds {
  const own = lines.filter((line) => line.get("way") === mode && numberOf(line, "samples") > 0);
  return (
    byRound(
      own,
      () => mode,
      (line) => numberOf(line, key),
    ).get(mode) ?? new Map()
  );
}

function latencyTable(title: string, lines: readonly Line[]): Table {
  return {
    title,
    columns: ["way", "first p50", "last p50", "quartiles", "best last p99", "shreds", "lost"],
    rows: Object.entries(contestants)
      .filter(([mode]) => lines.some((line) => line.get("way") === mode))
      .map(([mode, text]) => {
        const own = lines.filter((line) => line.get("way") === mode);
        const last = summarise([...p50Of(lines, mode, "last_p50_ns").values()]);
        const first = summarise([...p50Of(lines, mode, "first_p50_ns").values()]);
        const sum = (key: string) => own.reduce((total, line) => total + numberOf(line, key), 0);
        return [
          text,
          micros(first.median),
          micros(last.median),
          `${micros(last.low)}–${micros(last.high)}`,
          micros(Math.min(...p50Of(lines, mode, "last_p99_ns").values())),
          String(sum("samples")),
          String(sum("lost")),
        ];
      }),
  };
}

function latencyFindings(lines: readonly Line[]): Finding[] {
  const pairs = [
    ["clone", "bare_sendmmsg", "clone ÷ bare sendmmsg"],
    ["relay_clone", "forwarder", "relay by clone ÷ forwarder"],
  ] as const;
  return [...groupBy(lines, latencyCase)].flatMap(([which, own]) =>
    pairs.map(([mode, other, text]) => {
      const reference = p50Of(own, other, "last_p50_ns");
      const ratio = summarise(
        perRound(
          [p50Of(own, mode, "last_p50_ns"), reference],
          ([ours = 0, theirs = 0]) => ours / theirs,
        ),
      );
      return finding(`p50 to the last destination, ${text}, ${which}`, ratio, {
        target: targets.last,
        unit: "×",
        isRatio: true,
      });
    }),
  );
}

// ---- rate -----------------------------------------------------------------------------------

const rateOf = (line: Line) => numberOf(line, "shreds_per_second");

function rateCase(line: Line): string {
  const segments =
    numberOf(line, "burst") === 1 ? "" : `, segments cut by the ${textOf(line, "segmentation")}`;
  return `${textOf(line, "device")}, ${latencyCase(line)}${segments}`;
}

function rateTable(lines: readonly Line[]): Table {
  return {
    title: "Whole relay, one worker on one core: distinct authentic shreds per second without loss",
    columns: ["device, destinations × burst", "way", "shreds/s", "datagrams/s", "fallbacks"],
    rows: lines.map((line) => [
      rateCase(line),
      textOf(line, "way"),
      (line.get("generator_limit") === true ? "at least " : "") + number(rateOf(line)),
      number(rateOf(line) * numberOf(line, "destinations")),
      String(numberOf(line, "fallbacks")),
    ]),
  };
}

function rateFindings(lines: readonly Line[]): Finding[] {
  return lines
    .filter((line) => line.get("way") === "clone")
    .map((line) =>
      finding(
        `relay by clone without loss, one core, ${rateCase(line)}`,
        summarise([rateOf(line)]),
        {
          target: targetRate,
          unit: "shreds/s",
          bound: "at least",
        },
      ),
    );
}

// ---- all of it ------------------------------------------------------------------------------

function notesOf(lines: readonly Line[]): string[] {
  const skipped = new Set(
    ofKind(lines, "transmit_skipped").map(
      (line) => `Skipped: ${textOf(line, "what")} (${textOf(line, "why")}).`,
    ),
  );
  const measured = ofKind(lines, "transmit");
  if (measured.length === 0) return [...skipped];
  const lossy = measured.filter((line) => !isComplete(line));
  const apart = ofKind(lines, "transmit_receiver").some((line) => line.get("other_cpu") === true);
  return [
    ...skipped,
    "socket is the relay's SendBatch (GSO for bursts), clone its CloneBatch, AF_XDP its XdpBatch (copy " +
      "mode). AF_PACKET ring (queue discipline bypassed) is in the bench alone. Both of these send " +
      "frame by frame, with checksums.",
    "On veth the receiver drops each frame at its first look, at the sender's expense.",
    `Slots in which the device's counters, or what the way itself counted, differ from what was ` +
      `asked for: ${lossy.length} of ${measured.length}, left out.`,
    "Latency: µs from before the send call (whole relays: the generator's) to the kernel receive " +
      "time at the other end of a veth pair. The receiver's work is done on " +
      `${apart ? "the other CPU" : "the sender's CPU, because the system does not allow a change"}.`,
  ];
}

export function transmitSection(lines: readonly Line[]): Section {
  const cases = readCases(ofKind(lines, "transmit"));
  const latencies = ofKind(lines, "transmit_latency");
  const rates = ofKind(lines, "transmit_rate");
  return {
    name: "transmit",
    title: "The ways out: socket, clone, AF_PACKET ring, AF_XDP",
    notes: notesOf(lines),
    tables: [
      ...costTables("null", "Null device", cases),
      ...costTables("veth", "Veth", cases),
      ...[...groupBy(latencies, latencyCase)].map(([which, own]) =>
        latencyTable(`Latency on veth, ${which}, µs`, own),
      ),
      ...(rates.length > 0 ? [rateTable(rates)] : []),
    ],
    findings: [...costFindings(cases), ...latencyFindings(latencies), ...rateFindings(rates)],
    values: Object.fromEntries([
      ...cases.flatMap((which) =>
        modes
          .filter((mode) => which.rounds.has(mode))
          .map((mode) => [
            `${mode}, ${which.device}, ${label(which)}, ns per datagram`,
            summaryOf(which, mode),
          ]),
      ),
      ...rates.map((line) => [
        `relay by ${textOf(line, "way")}, ${rateCase(line)}, shreds/s`,
        summarise([rateOf(line)]),
      ]),
    ]),
  };
}
