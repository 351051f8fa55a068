// The summary in docs/performance.md: its rows, and the cells of the stored report that each row
// shows.
//
// A row appears if every section that it reads was measured. A missing cell in a measured section
// is an error: the section changed, and the row must follow.

import { type Finding, targetText, verdictsText } from "../sections/section.ts";
import type { StoredReport, StoredRun } from "./stored-report.ts";
import { number } from "./table.ts";

/** Reads numbers in their printed form, without quartiles. */
export class Cells {
  readonly #report: StoredReport;

  constructor(stored: StoredReport) {
    this.#report = stored;
  }

  #section(name: string) {
    const section = this.#report.sections.find((one) => one.name === name);
    if (!section) throw new Error(`expected a section ${name}`);
    return section;
  }

  /** Whether the section was measured: otherwise it has only notes. */
  has(name: string): boolean {
    return this.#report.sections.some((one) => one.name === name && one.tables.length > 0);
  }

  /** `row`: its first cells. The table is the section's first one with such a row and column. */
  at(section: string, row: readonly string[], column: string): string {
    for (const table of this.#section(section).tables) {
      const place = table.columns.indexOf(column);
      const cells = table.rows.find((own) => row.every((cell, i) => own[i] === cell));
      const cell = place < 0 ? undefined : cells?.[place];
      if (cell !== undefined) return cell.split(" ")[0] ?? cell;
    }
    throw new Error(`${section}: expected a cell ${row.join(", ")} / ${column}`);
  }

  finding(section: string, what: string): Finding {
    const found = this.#section(section).findings.find((one) => one.what === what);
    if (!found) throw new Error(`${section}: expected a finding ${what}`);
    return found;
  }

  /** The median of a finding. */
  median(section: string, what: string): string {
    return number(this.finding(section, what).value.median);
  }

  /** "target: ≥ 0.8, missed" */
  verdict(section: string, what: string): string {
    const found = this.finding(section, what);
    return `target: ${targetText(found)}, ${found.verdict}`;
  }

  /** The first group of `pattern` in the notes. */
  note(section: string, pattern: RegExp): string {
    const value = pattern.exec(this.#section(section).notes.join("\n"))?.[1];
    if (value === undefined) throw new Error(`${section}: expected a note with ${pattern}`);
    return value;
  }
}

interface Row {
  readonly what: string;
  readonly section: string;
  readonly value: (cells: Cells) => string;
}

const fanOut = (cells: Cells, row: string) => cells.at("cost", [row], "fan-out ÷ bare sendmmsg");
const dgram = (cells: Cells, row: string) => cells.at("cost", [row], "shredway ÷ dgram");

const relayRows: readonly Row[] = [
  {
    what: "fan-out of single shreds to 200 destinations, against a bare `sendmmsg` loop",
    section: "cost",
    value: (cells) => `${fanOut(cells, "200 × burst of 1")} × its processor time per datagram`,
  },
  ...["device", "kernel"].map((who) => ({
    what:
      who === "device"
        ? "the same in bursts of 8 / 32, when the device cuts the segments (UDP GSO)"
        : "the same, when the kernel must cut them",
    section: "cost",
    value: (cells: Cells) =>
      [8, 32]
        .map((burst) => `200 × burst of ${burst}, segments cut by the ${who}`)
        .map((row) => `${fanOut(cells, row)} ×`)
        .join(" / "),
  })),
  {
    what: "the whole relay against a plain Node `dgram` relay, 50 destinations, single shreds / bursts of 32",
    section: "cost",
    value: (cells) =>
      `${dgram(cells, "50 × burst of 1")} × / ` +
      `${dgram(cells, "50 × burst of 32, segments cut by the device")} ×`,
  },
  {
    what: "what a duplicate costs beyond receiving it",
    section: "worker",
    value: (cells) => `${cells.at("worker", ["all duplicates"], "median")} ns`,
  },
  {
    what: "authentication, per shred over full FEC sets: libsodium / OpenSSL",
    section: "steps",
    value: (cells) =>
      ["libsodium", "openssl"]
        .map((name) => `authentication per shred, full FEC sets, ${name}`)
        .map((row) => `${cells.at("steps", [row], "median")} ns`)
        .join(" / "),
  },
  {
    what: "allocations in the worker with libsodium (OpenSSL makes its own)",
    section: "worker",
    value: (cells) =>
      `${cells.at("worker", ["libsodium"], "allocations")} in ` +
      `${cells.at("worker", ["libsodium"], "packets")} packets`,
  },
  {
    what: "distinct, authenticated shreds a second to 200 destinations, one core, without loss: with segmenting device / without",
    section: "rate",
    value: (cells) =>
      ["shredway", "shredway_kernel_segments"]
        .map((relay) => cells.at("rate", ["200 × burst of 1", relay], "shreds/s"))
        .join(" / "),
  },
  {
    what: "p50 to the last of 200 destinations against a forwarder that checks nothing, bursts of 32",
    section: "latency",
    value: (cells) =>
      `${cells.median("latency", "p50 to the last destination ÷ forwarder, 200 × burst of 32")} ×`,
  },
  {
    what: "processor time per datagram, bursts of 32 to 200 destinations: bare `sendmmsg` / by socket / cloned in the kernel",
    section: "transmit",
    value: (cells) => {
      const row = ["200 × burst of 32, segments cut by the device"];
      const modes = ["bare sendmmsg", "socket", "clone"];
      return `${modes.map((mode) => cells.at("transmit", row, mode)).join(" / ")} ns`;
    },
  },
];

const chainRows: readonly Row[] = [
  {
    what: "recovery of a FEC set that lost 32 of its 64 shreds, root checked",
    section: "recovery",
    value: (cells) => `${cells.at("recovery", ["32 data shreds lost"], "median")} µs`,
  },
  {
    what: "deshredding on one core: in order / half of the shreds lost",
    section: "deshred",
    value: (cells) =>
      ["in order, nothing lost", "32 of each set's 64 lost at random"]
        .map((row) => cells.at("deshred", [row], "Gbit/s"))
        .join(" / ")
        .concat(" Gbit/s"),
  },
  {
    what: "receive-to-send p50 with deshredding against without, 50 destinations, single shreds / bursts of 32",
    section: "beside",
    value: (cells) =>
      [1, 32]
        .map((burst) => `${cells.at("beside", [`50 × burst of ${burst}`], "ratio")} ×`)
        .join(" / "),
  },
  {
    what: "from the last needed shred to the report of a watched transaction, 10,000 shreds/s: p50 / best p99",
    section: "landings",
    value: (cells) =>
      ["p50", "best p99"]
        .map((column) => cells.at("landings", ["one by one, nothing lost"], column))
        .join(" / ")
        .concat(" µs"),
  },
];

const acceptedToChecks = "submissions accepted ÷ signatures checked by a bare loop, per second";
const trustedToFixed =
  "submissions with signatures taken on trust ÷ fixed answers of the same HTTP server, per second";
const toPlain =
  "submissions ÷ those of the plain node:http and @solana/web3.js gateway, per second";
const firstByte = "from the written request to the first byte on a route, p50 at 500/s";

/** "0.230 × (target: ≥ 0.8, missed)" */
const ratioWithVerdict = (cells: Cells, what: string) =>
  `${cells.median("gateway", what)} × (${cells.verdict("gateway", what)})`;

const gatewayRows: readonly Row[] = [
  {
    what: "submissions accepted per second by the gateway, callers and partner on the same CPUs; against a bare loop of signature checks",
    section: "gateway",
    value: (cells) =>
      `${cells.at("gateway", ["gateway"], "answers/s")}; ${ratioWithVerdict(cells, acceptedToChecks)}`,
  },
  {
    what: "the same with signatures taken on trust; against the HTTP server alone with a fixed answer",
    section: "gateway",
    value: (cells) =>
      `${cells.at("gateway", ["gateway, signatures taken on trust"], "answers/s")}; ` +
      ratioWithVerdict(cells, trustedToFixed),
  },
  {
    what: "the gateway against a plain node:http and @solana/web3.js gateway, submissions per second",
    section: "gateway",
    value: (cells) => `${cells.median("gateway", toPlain)} ×`,
  },
  {
    what: "from a submission's request to its first byte on a route, p50 at 500/s",
    section: "gateway",
    value: (cells) =>
      `${cells.median("gateway", firstByte)} µs (${cells.verdict("gateway", firstByte)})`,
  },
  {
    what: "durable tip registrations a second, in requests of 25, the customer on the same CPUs",
    section: "shreds",
    value: (cells) => cells.median("shreds", "durable registrations per second"),
  },
  {
    what: "from the acknowledgement of a tip to the first shred of the tier it buys: p50 / p99",
    section: "shreds",
    value: (cells) =>
      ["p50", "p99"]
        .map((column) =>
          cells.at("shreds", ["acknowledgement to the first shred at the new tier"], column),
        )
        .join(" / ")
        .concat(" ms"),
  },
  {
    what: "start with 100,000 accounts and 5 million tips in 24 hours; memory of the process",
    section: "shreds",
    value: (cells) =>
      `${cells.median("shreds", "start with 100,000 accounts and 5,000,000 tips")} s; ` +
      `${cells.note("shreds", /process has ([\d,]+) MB of memory/)} MB`,
  },
  {
    what: "transactions a second to leaders over QUIC, acknowledged, by one connection / by 32; on the wire when the leader is connected: p50 / p99",
    section: "tpu",
    value: (cells) =>
      ["1", "32"].map((count) => cells.at("tpu", [count], "transactions/s")).join(" / ") +
      `; ${["p50", "p99"]
        .map((column) => cells.at("tpu", ["the wire, warm connection"], column))
        .join(" / ")} µs`,
  },
];

/** The generated part of docs/performance.md: the machine and the table. */
export function summaryPart(stored: StoredReport, main: StoredRun): string {
  const cells = new Cells(stored);
  const machine = main.facts[0]?.replace(/^Machine: /, "").replace(/, load before.*/, "");
  const rows = [...relayRows, ...chainRows, ...gatewayRows]
    .filter(({ section }) => cells.has(section))
    .map(({ what, value }) => `| ${what} | ${value(cells)} |`);
  const findings = stored.sections.flatMap((section) => section.findings);
  return [
    `On ${machine}; medians of ${main.rounds} rounds, where the report does not say otherwise:`,
    "",
    "| | |",
    "|---|---|",
    ...rows,
    "",
    `${verdictsText(findings)}. Each one: [Targets](benchmarks.md#targets).`,
  ].join("\n");
}
