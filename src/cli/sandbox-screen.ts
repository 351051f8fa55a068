// The live picture of the default start: what runs, numbers per source and destination, what to try.
//
// Called by demo.ts once a second. Pure: snapshots in, lines out.

import type { RelaySnapshot } from "../data-plane/snapshot.ts";
import { demoSources } from "../sandbox/demo.ts";
import {
  formatClock,
  formatCount,
  formatNs,
  formatRate,
  formatShare,
  type Paint,
  ratio,
  table,
} from "./output.ts";
import { coverageOf, distinct, type RelayReport, refusedTotal } from "./relay-report.ts";

export interface ReceiverView {
  readonly name: string;
  readonly tier: string;
  readonly address: string;
  readonly receivedPerSecond: number;
  /** Share of the shreds of the newest complete slot that came; null until there is one. */
  readonly coverage: number | null;
  readonly verified: bigint;
  readonly duplicates: bigint;
  readonly refused: bigint;
}

export interface DemoView {
  readonly seconds: number;
  readonly relayAddress: string;
  readonly openSeat: string | undefined;
  readonly relay: RelaySnapshot;
  readonly report: RelayReport;
  readonly receivers: readonly ReceiverView[];
}

const slotsToSettle = 2n; // shreds of older slots do not come any more

/** Coverage of the newest slot that is over, as this receiver saw it. */
export function settledCoverage(seen: RelaySnapshot): number | null {
  const newest = seen.slots.at(-1)?.slot ?? 0n;
  const settled = seen.slots.findLast(({ slot }) => slot + slotsToSettle <= newest);
  return settled ? coverageOf(settled).share : null;
}

export function receiverView(
  receiver: { name: string; tier: string; address: string },
  before: RelaySnapshot,
  seen: RelaySnapshot,
): ReceiverView {
  const seconds = Number(seen.takenAtNs - before.takenAtNs) / 1e9;
  return {
    name: receiver.name,
    tier: receiver.tier,
    address: receiver.address,
    receivedPerSecond: Number(seen.received - before.received) / seconds,
    coverage: settledCoverage(seen),
    verified: distinct(seen.verdicts),
    duplicates: seen.verdicts.duplicate,
    refused: refusedTotal(seen.verdicts),
  };
}

/** The three things to try next, each with what it shows. */
export function suggestions(
  self: string,
  openSeat: string | undefined,
): { command: string; shows: string }[] {
  const port = openSeat?.split(":").at(-1) ?? "20001";
  return [
    {
      command: `${self} listen --port ${port}`,
      shows: openSeat ? "this feed, as a destination sees it" : "a feed, as a destination sees it",
    },
    {
      command: `${self} replay CAPTURE.pcap --to 127.0.0.1:${port} --copies 3 --shuffle 7`,
      shows: "a capture of yours into that listener",
    },
    { command: `${self} doctor`, shows: "what this machine needs for production" },
  ];
}

export function introduction(view: { relayAddress: string; workers: number }): string[] {
  const sources = demoSources.map(({ name, address }) => `${name} ${address}`).join(", ");
  return [
    "Shredway demonstration: shreds made and signed on the spot, relayed on loopback",
    `  leaders       4, made up, 31 FEC sets a slot, about 4,960 shreds/s`,
    `  sources       ${sources}`,
    `  relay         udp ${view.relayAddress}, ${view.workers} worker${view.workers === 1 ? "" : "s"}, authentication: leader-schedule`,
  ];
}

export function demoLines(view: DemoView, self: string, paint: Paint): string[] {
  return [
    relayLine(view, paint),
    latencyLine(view, paint),
    "",
    ...sourceTable(view, paint),
    "",
    ...destinationTable(view, paint),
    "",
    paint.bold("Try next, in another terminal:"),
    ...suggestions(self, view.openSeat).flatMap(({ command, shows }) => [
      `  ${shows}`,
      paint.note(`    ${command}`),
    ]),
    paint.dim(`Up ${formatClock(view.seconds)}. Ctrl-C ends it.`),
  ];
}

function relayLine({ relay, report }: DemoView, paint: Paint): string {
  const drops = formatCount(relay.receiveDrops);
  return [
    `${paint.bold("relay")}  received ${formatRate(report.receivedPerSecond)}`,
    `distinct ${formatRate(report.distinctPerSecond)}`,
    `sent ${formatRate(report.sentPerSecond)}`,
    `refused ${formatRate(report.refusedPerSecond)}`,
    `dropped by the kernel ${relay.receiveDrops > 0n ? paint.bad(drops) : drops}`,
  ].join("   ");
}

function latencyLine({ relay, report }: DemoView, paint: Paint): string {
  const loads = report.workerLoads.map((load, i) => `worker ${i} ${formatShare(load)}`);
  return [
    `${paint.bold("       ")}receive to send p50 ${formatNs(relay.latency.percentile(50))}`,
    `p99 ${formatNs(relay.latency.percentile(99))}`,
    `CPU ${loads.join(", ")}`,
  ].join("   ");
}

function sourceTable({ report }: DemoView, paint: Paint): string[] {
  const lines = table(
    [
      { title: "SOURCE", width: 8 },
      { title: "TIER", width: 6 },
      { title: "RECEIVED", right: true, width: 9 },
      { title: "FIRST", right: true, width: 7 },
      { title: "DUPLICATE", right: true },
      { title: "LEAD p50", right: true, width: 8 },
      { title: "REFUSED", right: true, width: 8 },
      { title: "REASONS" },
    ],
    report.sources.map((source) => [
      source.name,
      source.tier,
      formatRate(source.receivedPerSecond),
      formatShare(source.firstShare),
      formatShare(source.duplicateShare),
      formatNs(source.leadTimeP50Ns),
      formatCount(source.refused),
      paint.dim(source.reasons),
    ]),
  );
  return withBoldTitle(lines, paint);
}

function destinationTable({ receivers, report, openSeat }: DemoView, paint: Paint): string[] {
  const rows = receivers.map((receiver) => [
    receiver.name,
    receiver.tier,
    receiver.address,
    formatRate(receiver.receivedPerSecond),
    receiver.coverage === null ? "-" : formatShare(receiver.coverage),
    formatCount(receiver.verified),
    receiver.duplicates === 0n ? paint.good("0") : paint.bad(formatCount(receiver.duplicates)),
    receiver.refused === 0n ? "0" : paint.bad(formatCount(receiver.refused)),
  ]);
  const seat = report.destinations.find(({ address }) => address === openSeat);
  if (seat) {
    const state = seat.icmpPerSecond > 0 ? paint.dim("free") : formatRate(seat.sentPerSecond);
    rows.push([seat.name, seat.tier, seat.address, state]);
  }
  const lines = table(
    [
      { title: "DESTINATION", width: 8 },
      { title: "TIER", width: 6 },
      { title: "ADDRESS", width: 15 },
      { title: "RECEIVED", right: true, width: 9 },
      { title: "LAST SLOT", right: true },
      { title: "VERIFIED", right: true, width: 9 },
      { title: "DUPLICATES", right: true },
      { title: "REFUSED", right: true },
    ],
    rows,
  );
  return withBoldTitle(lines, paint);
}

function withBoldTitle([title = "", ...rows]: readonly string[], paint: Paint): string[] {
  return [paint.bold(title), ...rows];
}

/** One line for where nothing can be redrawn. */
export function demoLine(view: DemoView): string {
  const { report, relay, receivers } = view;
  const duplicates = receivers.reduce((total, receiver) => total + receiver.duplicates, 0n);
  const verified = receivers.reduce((total, receiver) => total + receiver.verified, 0n);
  const loads = report.workerLoads.map((load) => formatShare(load)).join(" ");
  return [
    formatClock(view.seconds),
    `received ${formatRate(report.receivedPerSecond)}`,
    `distinct ${formatRate(report.distinctPerSecond)}`,
    `sent ${formatRate(report.sentPerSecond)}`,
    `refused ${formatRate(report.refusedPerSecond)}`,
    `verified by destinations ${formatCount(verified)}`,
    `duplicates ${formatCount(duplicates)}`,
    `latency p50 ${formatNs(relay.latency.percentile(50))} p99 ${formatNs(relay.latency.percentile(99))}`,
    `workers ${loads}`,
  ].join("  ");
}

/** What is said at the end. */
export function demoSummary(view: DemoView): string[] {
  const { relay, receivers, seconds } = view;
  const duplicates = receivers.reduce((total, receiver) => total + receiver.duplicates, 0n);
  const sent = relay.destinations.reduce((total, destination) => total + destination.sent, 0n);
  return [
    `Ended after ${formatClock(seconds)}: ${formatCount(relay.received)} packets received, ${formatCount(distinct(relay.verdicts))} distinct shreds, ${formatCount(refusedTotal(relay.verdicts))} refused, ${formatCount(sent)} sent.`,
    ...receivers.map(
      ({ name, tier, verified }) =>
        `  ${name} (${tier}) verified ${formatCount(verified)} shreds, ${formatShare(ratio(verified, distinct(relay.verdicts)))} of all`,
    ),
    `Duplicates at the destinations: ${formatCount(duplicates)}.`,
  ];
}
