// Screen of the sandbox: the chain, counters per source and destination, submitted transactions
// as they land, and commands to try.
//
// Used by sandbox.ts once a second. Pure: takes snapshots, returns lines.

import type { GatewaySnapshot } from "../../app/gateway-service.ts";
import { counted } from "../../core/counted.ts";
import { ratio } from "../../core/values.ts";
import {
  coverageOf,
  distinct,
  type RelayReport,
  refusedTotal,
} from "../../relay/data-plane/report.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import type { SubscriptionStatus } from "../../relay/shredstream/subscription-status.ts";
import { sandboxShredstream, sandboxSources, sandboxSubscriber } from "../../sandbox/plan.ts";
import type { ProbeRecord } from "../../sandbox/probe.ts";
import type { ChainView, ShredstreamView } from "../../sandbox/sandbox.ts";
import {
  formatClock,
  formatCount,
  formatNs,
  formatRate,
  formatShare,
  type Paint,
  table,
} from "../terminal/formatting.ts";
import { refusalTextOf } from "../terminal/relay-report.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface ReceiverView {
  readonly name: string;
  readonly tier: string;
  readonly address: string;
  readonly receivedPerSecond: number;
  /** Share of received shreds in the newest complete slot; null before the first one. */
  readonly coverage: number | null;
  readonly verified: bigint;
  readonly duplicates: bigint;
  readonly refused: bigint;
}

export interface SandboxView {
  readonly seconds: number;
  readonly relayAddress: string;
  readonly gatewayUrl: string;
  /** File of the API key, as a shell in the current folder names it. */
  readonly keyFile: string;
  readonly gateway: GatewaySnapshot;
  readonly userDestination: string | undefined;
  readonly chain: ChainView;
  readonly slotNs: bigint | null;
  readonly transactionsPerSecond: number;
  /** Newest first. */
  readonly landings: readonly ProbeRecord[];
  /** null: without ShredStream. */
  readonly shredstream: ShredstreamView | null;
  readonly relay: RelaySnapshot;
  readonly report: RelayReport;
  readonly receivers: readonly ReceiverView[];
}

const slotsToSettle = 2n; // shreds of older slots no longer arrive

/** The receiver's coverage of the newest finished slot. */
function settledCoverage(seen: RelaySnapshot): number | null {
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

/** URL of the gateway for a shell, with the key from its file. It fits in a narrow terminal. */
function shellUrlOf({ gatewayUrl, keyFile }: { gatewayUrl: string; keyFile: string }): string {
  return gatewayUrl.replace(/api-key=.*$/, `api-key=$(cat ${keyFile})`);
}

/** The three commands to try next, each as display lines with a description. */
export function suggestions(
  self: string,
  view: { userDestination: string | undefined; gatewayUrl: string; keyFile: string },
): { command: readonly string[]; shows: string }[] {
  const port = view.userDestination?.split(":").at(-1) ?? "20001";
  const question = `'{"jsonrpc":"2.0","id":1,"method":"getTipAccounts"}'`;
  return [
    { command: [`curl -s "${shellUrlOf(view)}"`, `-d ${question}`], shows: "call the gateway" },
    { command: [`${self} listen --port ${port}`], shows: "receive this feed" },
    { command: [`${self} doctor`], shows: "check this machine" },
  ];
}

/** URL of the portal, without the API key that the gateway's URL contains. */
function portalUrlOf(gatewayUrl: string): string {
  return new URL("/portal/", gatewayUrl).href;
}

function quicLines(
  [plain, protectedAddress]: readonly string[],
  fingerprint: string | undefined,
): string[] {
  if (plain === undefined) return [];
  const second = protectedAddress === undefined ? "" : `, protected ${protectedAddress}`;
  return [
    `  quic          udp ${plain}${second}; the common name of the certificate is the key`,
    ...(fingerprint === undefined
      ? []
      : [`                certificate SHA-256 ${fingerprint.replaceAll(":", "").toLowerCase()}`]),
  ];
}

function streamLines(address: string): string[] {
  if (address === "") return [];
  return [`  streams       grpc http://${address}; the key is the x-token (docs/streams.md)`];
}

interface ShredstreamLines {
  /** Block engine of the source. */
  readonly engineUrl: string;
  /** The relay's block engine for subscribers. */
  readonly subscribersUrl: string;
  /** Key file that it accepts. */
  readonly keyFile: string;
}

function shredstreamLines(view: ShredstreamLines | undefined): string[] {
  if (!view) return [];
  const { engineUrl, subscribersUrl, keyFile } = view;
  return [
    `  shredstream   source ${sandboxShredstream.name} at ${engineUrl}`,
    `  subscribers   ${subscribersUrl} with ${keyFile}; one runs here: ${sandboxSubscriber.name}`,
  ];
}

export function introduction(view: {
  relayAddress: string;
  rpcUrl: string;
  gatewayUrl: string;
  quicAddresses: readonly string[];
  /** SHA-256 of the QUIC ingress's certificate. */
  quicFingerprint?: string;
  streamsAddress: string;
  workers: number;
  shredstream?: ShredstreamLines;
}): string[] {
  const sources = sandboxSources.map(({ name, address }) => `${name} ${address}`).join(", ");
  return [
    "Shredway sandbox: a real chain in this process, its blocks as shreds through the real relay, its",
    "transactions through the real gateway",
    `  gateway       ${view.gatewayUrl}`,
    `  portal        ${portalUrlOf(view.gatewayUrl)}; sign in with the key above`,
    ...quicLines(view.quicAddresses, view.quicFingerprint),
    ...streamLines(view.streamsAddress),
    `  chain         Solana RPC ${view.rpcUrl}, WebSocket on the same port and the next one`,
    `  sources       ${sources}`,
    ...shredstreamLines(view.shredstream),
    `  relay         udp ${view.relayAddress}, ${view.workers} worker${view.workers === 1 ? "" : "s"}, authentication: leader-schedule`,
  ];
}

/** Part of the screen, with the order in which parts are omitted on a small terminal. */
interface ScreenPart {
  /** Name of an omitted part, for the last line. */
  readonly name: string;
  readonly lines: readonly string[];
  /** The lowest rank is omitted first; Infinity is always shown. */
  readonly rank: number;
}

export function sandboxLines(
  view: SandboxView,
  { self, paint, rows, columns }: Pick<Terminal, "self" | "paint" | "rows" | "columns">,
): string[] {
  const always = Number.POSITIVE_INFINITY;
  const isNarrow = `gateway ${view.gatewayUrl}`.length > columns;
  const parts: ScreenPart[] = [
    {
      name: "",
      lines: [
        `${paint.bold("gateway")} ${isNarrow ? shellUrlOf(view) : view.gatewayUrl}`,
        `${paint.bold("portal")}  ${portalUrlOf(view.gatewayUrl)}`,
        chainLine(view, paint),
        relayLine(view, paint),
        latencyLine(view, paint),
        ...shredsLines(view, paint),
        ...shredstreamCountLines(view, paint),
      ],
      rank: always,
    },
    { name: "", lines: ["", ...nextLines(view, self, paint)], rank: always },
    { name: "submissions", lines: ["", ...landingTable(view, paint)], rank: 5 },
    { name: "deshredder", lines: [deshredLine(view, paint)], rank: 1 },
    { name: "sources", lines: ["", ...sourceTable(view, paint)], rank: 4 },
    { name: "destinations", lines: ["", ...destinationTable(view, paint)], rank: 3 },
    { name: "routes", lines: ["", ...routeTable(view, paint)], rank: 2 },
  ];
  const lineCount = linesOf(parts).length + 1;
  const shown = fitting(parts, rows - 1);
  const omitted = parts.filter((part) => !shown.includes(part));
  const names = omitted.toSorted((a, b) => b.rank - a.rank).map(({ name }) => name);
  // The terminal has one row more than the lines that it can redraw.
  const hint = ` Hidden below ${lineCount + 1} rows: ${names.join(", ")}`;
  const last = `Up ${formatClock(view.seconds)}. Ctrl-C to stop.`;
  return [...linesOf(shown), `${paint.dim(last)}${names.length > 0 ? paint.note(hint) : ""}`];
}

function linesOf(parts: readonly ScreenPart[]): string[] {
  return parts.flatMap(({ lines }) => lines);
}

function fitting(parts: readonly ScreenPart[], rows: number): readonly ScreenPart[] {
  const lowest = Math.min(...parts.map(({ rank }) => rank));
  if (linesOf(parts).length <= rows || lowest === Number.POSITIVE_INFINITY) return parts;
  return fitting(
    parts.filter(({ rank }) => rank !== lowest),
    rows,
  );
}

function nextLines(view: SandboxView, self: string, paint: Paint): string[] {
  return [
    `${paint.bold("Try next")}, in another terminal; docs/first-hour.md continues from there:`,
    ...suggestions(self, view).flatMap(({ command, shows }) =>
      command.map((line, i) => {
        const isLast = i === command.length - 1;
        const end = isLast ? paint.dim(`   # ${shows}`) : " \\";
        return `${paint.note(`  ${i > 0 ? "  " : ""}${line}`)}${end}`;
      }),
    ),
  ];
}

function altPartnerText({ isAltPartner, slotsToAltPartner }: ChainView): string {
  if (isAltPartner) return "an alternative partner";
  return slotsToAltPartner === null
    ? ""
    : `next alternative partner in ${counted(slotsToAltPartner, "slot")}`;
}

function chainLine({ chain, slotNs, transactionsPerSecond }: SandboxView, paint: Paint): string {
  return [
    `${paint.bold("chain")}   slot ${chain.slot}`,
    slotNs === null ? "slot length not measured yet" : `${formatNs(slotNs)} each`,
    `height ${formatCount(chain.blockHeight)}`,
    `transactions ${formatRate(transactionsPerSecond)}`,
    `leader ${chain.leader}, ${altPartnerText(chain)}`,
  ].join("   ");
}

/** Landed tips, registered tips and destinations with a tier (docs/shreds.md). */
function shredsLines({ gateway: { shreds, landedTips } }: SandboxView, paint: Paint): string[] {
  if (!shreds) return [];
  const { active, served, pending } = shreds;
  return [
    [
      `${paint.bold("tips")}    landed in 15 minutes ${formatCount(landedTips)}`,
      `registered and pending ${formatCount(pending)}`,
      `destinations of accounts ${formatCount(active)} verified, ${formatCount(served)} with a tier`,
    ].join("   "),
  ];
}

/** Shreds from the block engine of the source, and those that the subscriber verified. */
function shredstreamCounts({ relay, receivers }: SandboxView): { from: bigint; to: bigint } {
  const source = relay.sources.find(({ name }) => name === sandboxShredstream.name);
  const subscriber = receivers.find(({ name }) => name === sandboxSubscriber.name);
  return { from: source?.received ?? 0n, to: subscriber?.verified ?? 0n };
}

function shredstreamCountLines(view: SandboxView, paint: Paint): string[] {
  const { shredstream } = view;
  if (!shredstream) return [];
  const stateOf = (status: SubscriptionStatus | undefined): string => {
    const state = status?.state ?? "starting";
    if (state === "starting") return paint.dim(state);
    return state === "subscribed" ? paint.good(state) : paint.bad(state);
  };
  const { from, to } = shredstreamCounts(view);
  return [
    [
      `${paint.bold("jito")}    source ${sandboxShredstream.name} ${stateOf(shredstream.source)}, received ${formatCount(from)}`,
      `subscriber ${sandboxSubscriber.name} ${stateOf(shredstream.subscriber)}, verified ${formatCount(to)}`,
    ].join("   "),
  ];
}

function healthText({ health }: SandboxView["gateway"]["routes"][number], paint: Paint): string {
  if (health === "unknown") return paint.dim(health);
  return health === "up" ? paint.good(health) : paint.bad(health);
}

/** Routes of submissions, with the responses of their targets. */
function routeTable({ gateway }: SandboxView, paint: Paint): string[] {
  const rows = gateway.routes.map((route) => [
    route.name,
    route.kind,
    healthText(route, paint),
    formatCount(route.sent),
    formatCount(route.acknowledged),
    formatCount(route.refused + route.failed + route.dropped),
    route.sendP50Us === null ? "-" : formatNs(route.sendP50Us * 1000),
    paint.dim(route.lastFailure),
  ]);
  const lines = table(
    [
      { title: "ROUTE", width: 13 },
      { title: "KIND", width: 13 },
      { title: "STATE", width: 7 },
      { title: "SENT", right: true, width: 6 },
      { title: "ACKED", right: true, width: 6 },
      { title: "NOT ACKED", right: true },
      { title: "SEND DELAY p50", right: true },
      { title: "LAST FAILURE" },
    ],
    rows,
  );
  return withBoldTitle(lines, paint);
}

const landingsShown = 3;

/** Submitted transactions: sent over HTTP, executed by a leader, observed in the relay's shreds. */
function landingTable({ landings }: SandboxView, paint: Paint): string[] {
  const rows = landings.slice(0, landingsShown).map(({ signature, state, landed }) => [
    `${signature.slice(0, 12)}…`,
    state ?? "open", // the gateway has accepted it, and was not asked since
    landed ? String(landed.slot) : "",
    landed ? String(landed.batchIndex) : "",
    landed ? String(landed.ordinal) : "",
    landed ? paint.good(`${formatNs(landed.afterNs)} after sending`) : paint.dim("not yet"),
  ]);
  const lines = table(
    [
      { title: "SUBMITTED", width: 13 },
      { title: "STATE", width: 6 },
      { title: "SLOT", width: 9 },
      { title: "SHRED", right: true, width: 5 },
      { title: "TX IN BATCH", right: true },
      { title: "OBSERVED IN THE SHREDS", width: 22 },
    ],
    rows,
  );
  return withBoldTitle(lines, paint);
}

function deshredLine({ relay: { deshred } }: SandboxView, paint: Paint): string {
  const sets = deshred.sets_whole + deshred.sets_recovered;
  return paint.dim(
    `read ${formatCount(deshred.transactions)} transactions, ${formatCount(deshred.entries)} ` +
      `entries; ${formatShare(ratio(deshred.sets_recovered, sets))} of the FEC sets by recovery`,
  );
}

function relayLine({ relay, report }: SandboxView, paint: Paint): string {
  const drops = formatCount(relay.receiveDrops);
  return [
    `${paint.bold("relay")}   received ${formatRate(report.receivedPerSecond)}`,
    `distinct ${formatRate(report.distinctPerSecond)}`,
    `sent ${formatRate(report.sentPerSecond)}`,
    `refused ${formatRate(report.refusedPerSecond)}`,
    `dropped by the kernel ${relay.receiveDrops > 0n ? paint.bad(drops) : drops}`,
  ].join("   ");
}

function latencyLine({ relay, report }: SandboxView, paint: Paint): string {
  const loads = report.workerLoads.map((load, i) => `worker ${i} ${formatShare(load)}`);
  return [
    `${paint.bold("        ")}receive to send p50 ${formatNs(relay.latency.percentile(50))}`,
    `p99 ${formatNs(relay.latency.percentile(99))}`,
    `CPU ${loads.join(", ")}`,
  ].join("   ");
}

function sourceTable({ report }: SandboxView, paint: Paint): string[] {
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
      paint.dim(refusalTextOf(source.refusals)),
    ]),
  );
  return withBoldTitle(lines, paint);
}

function destinationTable(
  { receivers, report, userDestination }: SandboxView,
  paint: Paint,
): string[] {
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
  const userEntry = report.destinations.find(({ address }) => address === userDestination);
  if (userEntry) {
    const state =
      userEntry.icmpPerSecond > 0 ? paint.dim("free") : formatRate(userEntry.sentPerSecond);
    rows.push([userEntry.name, userEntry.tier, userEntry.address, state]);
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

function shredstreamText(view: SandboxView): string[] {
  if (!view.shredstream) return [];
  const { from, to } = shredstreamCounts(view);
  return [`shredstream received ${formatCount(from)} verified by subscriber ${formatCount(to)}`];
}

/** One line for output that cannot be redrawn. */
export function sandboxLine(view: SandboxView): string {
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
    ...shredstreamText(view),
    `latency p50 ${formatNs(relay.latency.percentile(50))} p99 ${formatNs(relay.latency.percentile(99))}`,
    `slot ${view.chain.slot}`,
    `landed ${view.landings.filter(({ landed }) => landed).length} of ${view.landings.length} own transactions`,
    `workers ${loads}`,
  ].join("  ");
}

/** Lines after the end of the traffic. */
export function sandboxSummary(view: SandboxView): string[] {
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
