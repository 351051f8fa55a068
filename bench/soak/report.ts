// Report of a soak run: its tables, and the rules that it broke. Pure.

import { number, percent, type Table } from "../report/table.ts";
import type { KindCounts } from "./call-counts.ts";
import type { Ledger } from "./ledger.ts";
import {
  type FeedSample,
  longestSilence,
  type ProcessSample,
  type Trend,
  trendOf,
} from "./samples.ts";
import type { SocketCounts } from "./sockets.ts";

export interface FeedEnd {
  readonly name: string;
  /** Datagrams of the whole source since the destination was complete. */
  readonly sent: number;
  readonly received: number;
  readonly duplicates: number;
  /** Drops of the kernel at the service and at the destination. */
  readonly kernelDrops: number;
}

export interface SoakResult {
  readonly seconds: number;
  readonly processSamples: readonly ProcessSample[];
  readonly feedSamples: readonly FeedSample[];
  readonly feeds: readonly FeedEnd[];
  /** Packets of the relay by verdict. */
  readonly verdicts: ReadonlyMap<string, number>;
  readonly calls: ReadonlyMap<string, KindCounts>;
  readonly sockets: ReadonlyMap<string, SocketCounts>;
  readonly ledgers: ReadonlyMap<string, Ledger>;
  readonly faults: ReadonlyMap<string, number>;
  /** Faults that were not possible in this run, with the reason. */
  readonly leftOut: readonly string[];
  /** End of the service during the run; null: it ran on. */
  readonly unexpectedExit: number | string | null;
  readonly exit: number | string;
}

/** A shorter run shows the start of the process, not a trend. */
const judgedSecondsMin = 1200;
/** In a shorter run, a busy machine alone may cause a silence. */
const silenceJudgedSecondsMin = 60;
const silenceSecondsMax = 3;

interface Limit {
  readonly name: string;
  readonly value: (sample: ProcessSample) => number | null;
  /** Permitted rise over the last three quarters: the larger of a share of the mean and a number. */
  readonly share: number;
  readonly absolute: number;
  readonly unit: number;
  readonly unitName: string;
}

const messageMax = 200;
const mib = 1 << 20;
const whole = (value: number): string => value.toLocaleString("en-US");
const limits: readonly Limit[] = [
  {
    name: "resident memory",
    value: (s) => s.rssBytes,
    share: 0.1,
    absolute: 32 * mib,
    unit: mib,
    unitName: "MiB",
  },
  {
    name: "JavaScript heap",
    value: (s) => s.heapBytes,
    share: 0.2,
    absolute: 32 * mib,
    unit: mib,
    unitName: "MiB",
  },
  {
    name: "descriptors",
    value: (s) => s.descriptors,
    share: 0.05,
    absolute: 6,
    unit: 1,
    unitName: "",
  },
  { name: "threads", value: (s) => s.threads, share: 0, absolute: 1, unit: 1, unitName: "" },
];

interface JudgedTrend {
  readonly limit: Limit;
  readonly trend: Trend;
  readonly permitted: number;
  readonly isJudged: boolean;
}

function trends(result: SoakResult): JudgedTrend[] {
  const { processSamples } = result;
  return limits.map((limit) => {
    const points = processSamples.flatMap((sample) => {
      const value = limit.value(sample);
      return value === null ? [] : [{ seconds: sample.seconds, value }];
    });
    const trend = trendOf(points);
    const permitted = Math.max(limit.share * trend.mean, limit.absolute);
    return { limit, trend, permitted, isJudged: result.seconds >= judgedSecondsMin };
  });
}

const size = (value: number, { unit, unitName }: Limit): string =>
  unitName === "" ? number(value) : `${number(value / unit)} ${unitName}`;

/** Shreds that the source sent and the destination did not get, beyond what the kernel dropped. */
export function missing({ sent, received, kernelDrops }: FeedEnd): number {
  return Math.max(0, sent - received - kernelDrops);
}

/** Broken rules, each as a sentence. An empty list is a success. */
export function violations(result: SoakResult): string[] {
  const found: string[] = [];
  for (const { limit, trend, permitted, isJudged } of trends(result)) {
    if (!isJudged || trend.rise <= permitted) continue;
    found.push(
      `${limit.name} is not flat: it rises by ${size(trend.rise, limit)} over the last three ` +
        `quarters; at most ${size(permitted, limit)} is permitted`,
    );
  }
  for (const feed of result.feeds) {
    const { name, sent, received, duplicates } = feed;
    if (sent === 0 || received === 0) found.push(`destination ${name} received nothing`);
    if (missing(feed) > 0)
      found.push(`destination ${name} misses ${missing(feed)} of ${sent} shreds`);
    if (received > sent)
      found.push(`destination ${name} got ${received - sent} shreds that no source sent`);
    if (duplicates > 0) found.push(`destination ${name} got ${duplicates} shreds twice`);
    const silence = longestSilence(result.feedSamples, name);
    if (silence.seconds > silenceSecondsMax && result.seconds >= silenceJudgedSecondsMin) {
      found.push(
        `the feed of ${name} was interrupted for ${number(silence.seconds)} s (fault: ${silence.fault})`,
      );
    }
  }
  for (const [name, ledger] of result.ledgers) {
    if (ledger.acknowledged === 0) found.push(`no ${name} was acknowledged`);
    if (ledger.unknown.length > 0) {
      found.push(
        `${ledger.unknown.length} acknowledged ${name} are unknown: ${ledger.unknown[0]} …`,
      );
    }
    if (ledger.open > 0) {
      const [first = ""] = ledger.openSignatures();
      found.push(`${ledger.open} acknowledged ${name} have no end: ${first} …`);
    }
  }
  const { unexpectedExit, exit } = result;
  if (unexpectedExit !== null)
    found.push(`the service ended during the run with ${unexpectedExit}`);
  else if (exit !== 0) found.push(`the service ended with ${exit} after SIGTERM; expected 0`);
  return found;
}

function processTable(result: SoakResult): Table {
  return {
    title: "Process of the service",
    columns: ["number", "first", "last", "largest", "rise", "permitted", "flat"],
    rows: trends(result).map(({ limit, trend, permitted, isJudged }) => [
      limit.name,
      size(trend.first, limit),
      size(trend.last, limit),
      size(trend.max, limit),
      size(trend.rise, limit),
      size(permitted, limit),
      isJudged ? (trend.rise <= permitted ? "yes" : "NO") : "run too short",
    ]),
  };
}

function feedTable(result: SoakResult): Table {
  return {
    title: "Feed at the destinations",
    columns: [
      "destination",
      "sent",
      "received",
      "missing",
      "dropped by the kernel",
      "twice",
      "longest silence",
    ],
    rows: result.feeds.map((feed) => {
      const silence = longestSilence(result.feedSamples, feed.name);
      return [
        feed.name,
        whole(feed.sent),
        whole(feed.received),
        whole(missing(feed)),
        whole(feed.kernelDrops),
        whole(feed.duplicates),
        `${number(silence.seconds)} s`,
      ];
    }),
  };
}

function callTable({ calls }: SoakResult): Table {
  const ms = (ns: number | null) => (ns === null ? "–" : `${number(ns / 1e6)} ms`);
  return {
    title: "Calls",
    columns: ["call", "calls", "ok", "no answer", "p50", "p99", "reasons"],
    rows: [...calls]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { calls: count, ok, unanswered, durations, rejected }]) => [
        name,
        whole(count),
        percent(ok / count),
        whole(unanswered),
        ms(durations.percentile(50)),
        ms(durations.percentile(99)),
        [...rejected].map(([reason, times]) => `${reason} ${times}`).join(", "),
      ]),
  };
}

function messageTable({ calls }: SoakResult): Table {
  return {
    title: "Last message of each reason",
    columns: ["call", "reason", "message"],
    rows: [...calls]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([name, { messages }]) =>
        [...messages].map(([reason, message]) => [name, reason, message.slice(0, messageMax)]),
      ),
  };
}

export function soakTables(result: SoakResult): Table[] {
  return [
    processTable(result),
    feedTable(result),
    {
      title: "Packets of the relay by verdict",
      columns: ["verdict", "packets"],
      rows: [...result.verdicts].map(([verdict, count]) => [verdict, whole(count)]),
    },
    callTable(result),
    messageTable(result),
    {
      title: "Acknowledged, and its end",
      columns: ["kind", "acknowledged", "without end", "unknown", "ends"],
      rows: [...result.ledgers].map(([name, ledger]) => [
        name,
        whole(ledger.acknowledged),
        whole(ledger.open),
        whole(ledger.unknown.length),
        [...ledger.ends].map(([state, times]) => `${state} ${times}`).join(", "),
      ]),
    },
    {
      title: "WebSockets",
      columns: ["path", "opened", "not opened", "closed by the service", "messages"],
      rows: [...result.sockets].map(([name, { opened, failed, closed, messages }]) => [
        name,
        ...[opened, failed, closed, messages].map(whole),
      ]),
    },
    {
      title: "Faults",
      columns: ["fault", "times"],
      rows: [...result.faults].map(([name, times]) => [name, whole(times)]),
    },
  ];
}
