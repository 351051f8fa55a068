// Cost per delivered datagram: converts lines of the cost scenario to tables and findings.

import { byRound, type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { perRound, type Rounds, type Summary, summarise } from "../report/statistics.ts";
import { number, percent, type Table } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const drivers = [
  "bare_sendmmsg",
  "bare_gso",
  "bare_paced",
  "send_batch",
  "receive",
  "shredway_to_nobody",
  "shredway_duplicates",
  "shredway",
  "forwarder",
  "dgram",
  "samplicator",
] as const;
type Driver = (typeof drivers)[number];

interface Case {
  readonly destinations: number;
  readonly burst: number;
  readonly segmentation: string;
  readonly rounds: ReadonlyMap<string, Rounds>;
  readonly batch: number;
}

const lossTolerated = 0.005;
/**
 * With fewer destinations, the paced loop mostly measures its own wake-ups, which the relay's
 * receiving includes.
 */
const pacedDestinationsMin = 50;

/** Lines with lost datagrams are ignored: they say nothing about cost. */
function isComplete(line: Line): boolean {
  return Math.abs(numberOf(line, "delivered") - 1) <= lossTolerated;
}

function readCases(lines: readonly Line[]): Case[] {
  const keyOf = (line: Line) =>
    `${numberOf(line, "destinations")} ${numberOf(line, "burst")} ${textOf(line, "segmentation")}`;
  return [...new Set(lines.map(keyOf))].map((key) => {
    const own = lines.filter((line) => keyOf(line) === key);
    const [destinations = "", burst = "", segmentation = ""] = key.split(" ");
    const batches = own
      .filter((line) => line.get("driver") === "shredway" && line.has("batch"))
      .map((line) => numberOf(line, "batch"));
    return {
      destinations: Number(destinations),
      burst: Number(burst),
      segmentation,
      rounds: byRound(
        own.filter(isComplete),
        (line) => textOf(line, "driver"),
        (line) => numberOf(line, "cpu_ns") / numberOf(line, "shreds"),
      ),
      batch: summarise(batches).median,
    };
  });
}

function perShred(which: Case, driver: Driver): Rounds {
  return which.rounds.get(driver) ?? new Map();
}

function summaryOf(which: Case, driver: Driver, divisor = 1): Summary {
  return summarise([...perShred(which, driver).values()].map((value) => value / divisor));
}

/** Cost of `driver` above `without`, as a multiple of the cost of `reference`. */
function ratio(which: Case, driver: Driver, without: Driver | null, reference: Driver): Summary {
  const inputs = [perShred(which, driver), perShred(which, reference)];
  if (without) inputs.push(perShred(which, without));
  return summarise(
    perRound(inputs, ([own = 0, bare = 0, subtracted = 0]) => (own - subtracted) / bare),
  );
}

function countText(which: Case): string {
  return `${which.destinations} destination${which.destinations === 1 ? "" : "s"}`;
}

function label(which: Case): string {
  const segments = which.burst === 1 ? "" : `, segments cut by the ${which.segmentation}`;
  return `${which.destinations} × burst of ${which.burst}${segments}`;
}

function ratioText(summary: Summary): string {
  if (summary.count === 0) return "–";
  return `${number(summary.median)} (${number(summary.low)}–${number(summary.high)})`;
}

function sendingTable(cases: readonly Case[]): Table {
  return {
    title: "Sending alone: CPU ns per datagram",
    columns: [
      "destinations × burst",
      "bare sendmmsg",
      "bare GSO",
      "SendBatch",
      "bare, paced ²",
      "fan-out ¹",
      "fan-out ÷ bare sendmmsg",
      "fan-out ÷ bare GSO",
      "fan-out ÷ bare, paced",
    ],
    rows: cases.map((which) => {
      const fanOut = summarise(
        perRound(
          [perShred(which, "shredway"), perShred(which, "shredway_to_nobody")],
          ([all = 0, nobody = 0]) => (all - nobody) / which.destinations,
        ),
      );
      return [
        label(which),
        number(summaryOf(which, "bare_sendmmsg", which.destinations).median),
        number(summaryOf(which, "bare_gso", which.destinations).median),
        number(summaryOf(which, "send_batch", which.destinations).median),
        number(summaryOf(which, "bare_paced", which.destinations).median),
        number(fanOut.median),
        ratioText(ratio(which, "shredway", "shredway_to_nobody", "bare_sendmmsg")),
        ratioText(ratio(which, "shredway", "shredway_to_nobody", "bare_gso")),
        ratioText(ratio(which, "shredway", "shredway_to_nobody", "bare_paced")),
      ];
    }),
  };
}

function relayTable(cases: readonly Case[]): Table {
  const whole = ["shredway", "forwarder", "dgram", "samplicator"] as const;
  const present = whole.filter((driver) => cases.some((which) => which.rounds.has(driver)));
  return {
    title: "Whole relays, receiving included: CPU ns per delivered datagram",
    columns: [
      "destinations × burst",
      ...present,
      "shredway ÷ forwarder",
      "shredway ÷ dgram",
      "(shredway − receive) ÷ bare sendmmsg",
      "batch ³",
    ],
    rows: cases.map((which) => [
      label(which),
      ...present.map((driver) => number(summaryOf(which, driver, which.destinations).median)),
      ratioText(ratio(which, "shredway", null, "forwarder")),
      ratioText(ratio(which, "shredway", null, "dgram")),
      ratioText(ratio(which, "shredway", "receive", "bare_sendmmsg")),
      number(which.batch),
    ]),
  };
}

function receivingTable(cases: readonly Case[]): Table {
  return {
    title: "Receiving: CPU ns per packet, with sockets",
    columns: ["destinations × burst", "receive", "all duplicates", "all new, to nobody"],
    rows: cases.map((which) => [
      label(which),
      number(summaryOf(which, "receive").median),
      number(summaryOf(which, "shredway_duplicates").median),
      number(summaryOf(which, "shredway_to_nobody").median),
    ]),
  };
}

function findings(cases: readonly Case[]): Finding[] {
  return cases.flatMap((which) => {
    const fanOut = ratio(which, "shredway", "shredway_to_nobody", "bare_sendmmsg");
    if (which.burst === 1) {
      const what = `fan-out ÷ bare sendmmsg, single shreds, ${countText(which)}`;
      return [finding(what, fanOut, { target: 1.1, unit: "×", isRatio: true })];
    }
    const samePath = ratio(which, "shredway", "shredway_to_nobody", "bare_paced");
    const where = `${countText(which)}, bursts of ${which.burst}, segments cut by the ${which.segmentation}`;
    const found = [
      finding(`fan-out ÷ bare sendmmsg, ${where}`, fanOut, {
        target: 0.5,
        unit: "×",
        isRatio: true,
      }),
    ];
    if (which.destinations >= pacedDestinationsMin) {
      found.push(
        finding(`fan-out ÷ bare GSO in the same rhythm, ${where}`, samePath, {
          target: 1.1,
          unit: "×",
          isRatio: true,
        }),
      );
    }
    return found;
  });
}

export function costSection(lines: readonly Line[]): Section {
  const measured = ofKind(lines, "cost");
  const lossy = measured.filter((line) => !isComplete(line));
  const cases = readCases(measured);
  const values = cases.flatMap((which) =>
    drivers
      .filter((driver) => which.rounds.has(driver))
      .map((driver) => {
        const key = `${driver}, ${label(which)}, ns per shred`;
        return [key, summaryOf(which, driver)] as const;
      }),
  );
  return {
    name: "cost",
    title: "Cost per delivered datagram",
    notes: [
      "¹ The relay sending to all, minus the same relay with the same packets and no destination.",
      "² One sendmmsg (with GSO for bursts) in the relay's rhythm, its caches as cold as the relay's.",
      "³ Packets per receive call that the relay counted itself: proof that bursts stayed bursts.",
      `Slots in which not all datagrams left: ${lossy.length} of ${measured.length} ` +
        `(${percent(lossy.length / Math.max(1, measured.length))}), left out.`,
      "“segments cut by the device”: what a NIC with UDP segmentation costs; “by the kernel”: one without.",
    ],
    tables: [sendingTable(cases), relayTable(cases), receivingTable(cases)],
    findings: findings(cases),
    values: Object.fromEntries(values),
  };
}
