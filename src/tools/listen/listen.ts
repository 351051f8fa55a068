// `shredway listen`: receives a feed and reports its rate, duplicates, losses, jitter, coverage
// and verification.
//
// Uses a relay without destinations (feed-recorder.ts), so the counters follow the same rules as
// the relay. Reports clearly if nothing was verified. Needs no gateway and no configuration.

import { writeFileSync } from "node:fs";
import { formatEndpoint, parseAddress } from "../../core/addresses/addresses.ts";
import { systemClock } from "../../core/clock.ts";
import { defaultGroupInterface } from "../../core/configuration/relay-sources.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { reportBetween } from "../../relay/data-plane/report.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import { TraceDelays } from "../../relay/shredstream/trace-delays.ts";
import { feedSvg } from "../race/feed-picture.ts";
import { FeedRecorder } from "../race/feed-recorder.ts";
import { FeedTiming } from "../race/feed-timing.ts";
import { SlotCollector } from "../race/slot-collector.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { toJson } from "../terminal/formatting.ts";
import { endOf, every, type Terminal } from "../terminal/terminal.ts";
import {
  anyAddresses,
  type LeaderSource,
  leaderOptions,
  openLeaders,
  parseGroupOnInterface,
} from "./feed-options.ts";
import {
  type ListenView,
  listenJson,
  listenLine,
  listenLines,
  listenSummary,
} from "./listen-screen.ts";
import { PacketRecord } from "./packet-record.ts";
import { SlotLedger } from "./slot-ledger.ts";

const refreshMs = 1000;
const drainMs = 20;
/** A slot is measured after this time without new shreds. */
const settleNs = 2e9;
const recordMbDefault = 1024;

export const listen: Command = {
  name: "listen",
  summary: "receive a feed: rate, losses, jitter, coverage of each slot, signatures",
  usage: [
    "listen --port PORT [--bind ADDRESS | --group GROUP[%INTERFACE] …] [--leaders FILE | --rpc URL] [--verify] [--shred-version N] " +
      "[--prove] [--seconds S] [--record FILE [--record-mb N]] [--svg FILE] [--json]",
  ],
  description: `
Receives shreds from any sender on a UDP port. With --leaders or --rpc it verifies every shred as the
relay does. Otherwise every well-formed shred counts, and every line says so. It prints numbers once a
second, and a summary at the end (Ctrl-C, or after --seconds).

Losses are gaps: each FEC set with at least one received shred has 64 shreds. What was sent before the
first received shred is not a loss. Times are receive times of the kernel: from the first shred of a FEC set to the 32nd (enough for recovery) and to the last one,
between two shreds, and between the first shreds of two slots. They cover slots without new shreds for
2 s. To compare two feeds, use shredway race.

--record writes the datagrams to a file, with the kernel's times (pcap) or without (.lpb).

--prove answers the ownership challenges of a service that is to send shreds here. It returns each
challenge unchanged to its sender, at most 16 a second.

A slot is complete when all its shreds have arrived. Its size is known once its last data shred has
arrived; until then "?" is shown.`,
  options: {
    port: { value: "PORT", help: "UDP port; 0: the kernel chooses" },
    bind: { value: "ADDRESS", help: "local address (default: all, IPv4 and IPv6)" },
    group: {
      value: "GROUP[%INTERFACE]",
      repeated: true,
      help: `join a multicast group instead (default interface: ${defaultGroupInterface})`,
    },
    ...leaderOptions,
    "shred-version": { value: "N", help: "refuse other shred versions (default: accept any)" },
    prove: {
      help: "answer ownership challenges, to prove to a service that this address is yours",
    },
    seconds: { value: "S", help: "stop after this time (default: at Ctrl-C)" },
    record: {
      value: "FILE",
      help: "write the received packets to a pcap file, or an .lpb file by its extension",
    },
    "record-mb": {
      value: "N",
      help: `maximum size of the recording in megabytes (default ${recordMbDefault})`,
    },
    svg: { value: "FILE", help: "write a picture at the end: times of FEC sets, coverage" },
    json: { help: "one JSON object a second, and one with final: true at the end" },
  },
  examples: [
    "shredway listen --port 20001",
    "shredway listen --port 20001 --leaders leaders.json --shred-version 50093",
    "shredway listen --port 20001 --rpc https://rpc.example --verify",
    "shredway listen --port 7733 --group 233.84.178.1 --group 233.84.178.12",
    "shredway listen --port 20001 --prove",
    "shredway listen --port 20001 --seconds 60 --record feed.pcap --svg feed.svg",
    "shredway listen --port 20001 --seconds 60 --json",
  ],
  run,
};

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  args.required("port", "20001");
  const port = args.integer("port", { min: 0, max: 65_535 }) ?? 0;
  const seconds = args.positive("seconds", 2_000_000);
  const shredVersion = args.integer("shred-version", { min: 0, max: 65_535 }) ?? 0;
  args.exclusive("bind", "group");
  const groups = args.texts("group").map(readGroup);
  if (groups.length > 0 && port === 0) throw usageError("--group requires a --port other than 0");
  const addresses = groups.length > 0 ? [] : listenAddresses(args.text("bind"), port);
  const recordMb = args.integer("record-mb", { min: 1, max: 1_000_000 });
  const recordFile = args.text("record");
  if (recordMb !== undefined && recordFile === undefined)
    throw usageError("--record-mb requires --record FILE");
  const leaders = await openLeaders(args, terminal);
  let recorder: FeedRecorder | undefined;
  let record: PacketRecord | undefined;
  try {
    const svg = args.text("svg");
    if (svg !== undefined) writePicture(svg, "");
    const proves = args.flag("prove");
    const opened = FeedRecorder.open({
      feeds:
        groups.length > 0
          ? groups.map((group) => ({ name: group.address, port, group }))
          : [{ name: "any", port: 0 }],
      onNote: (text) => terminal.note(text),
      listen: addresses,
      shredVersion,
      answerChallenges: proves,
      recordPackets: recordFile !== undefined,
      ...(leaders.schedule && { schedule: leaders.schedule }),
    });
    recorder = opened;
    if (recordFile !== undefined)
      record = new PacketRecord(recordFile, (recordMb ?? recordMbDefault) * 1e6);
    leaders.follow((schedule) => opened.publishLeaders(schedule));
    const timing = await watch({
      recorder: opened,
      leaders,
      proves,
      seconds,
      json: args.flag("json"),
      terminal,
      record,
    });
    const title = opened.addresses.join(", ");
    if (svg !== undefined)
      writePicture(svg, feedSvg(timing, title, leaders.schedule !== undefined));
    record?.close();
    if (record?.failure) throw record.failure;
    return exitCodes.ok;
  } finally {
    leaders.stop();
    recorder?.close();
    record?.close();
  }
}

function writePicture(file: string, content: string): void {
  try {
    writeFileSync(file, content);
  } catch (cause) {
    throw new ShredwayError("system", `cannot write ${file}: ${messageOf(cause)}`, { cause });
  }
}

function readGroup(text: string): { readonly address: string; readonly interface: string } {
  try {
    return parseGroupOnInterface(text);
  } catch (error) {
    throw usageError(`--group: ${messageOf(error)}`);
  }
}

function listenAddresses(bind: string | undefined, port: number): string[] {
  if (bind === undefined) return anyAddresses(port);
  try {
    return [formatEndpoint({ bytes: parseAddress(bind), port })];
  } catch (error) {
    throw usageError(`--bind: ${messageOf(error)}`);
  }
}

/**
 * Excludes packets of unknown senders: they arrived between opening the socket and publishing the
 * source that accepts every sender, and belong to no session.
 */
function sinceReady(snapshot: RelaySnapshot): RelaySnapshot {
  const { received, verdicts } = snapshot;
  return {
    ...snapshot,
    received: received - verdicts.unknown_source,
    verdicts: { ...verdicts, unknown_source: 0n },
  };
}

interface ListenOptions {
  readonly recorder: FeedRecorder;
  readonly leaders: LeaderSource;
  readonly proves: boolean;
  readonly seconds: number | undefined;
  readonly json: boolean;
  readonly terminal: Terminal;
  readonly record: PacketRecord | undefined;
}

/** Drains the recorder: measures shreds, and writes datagrams with --record. */
class ListenSession {
  readonly timing = new FeedTiming();
  readonly collector = new SlotCollector({
    feeds: 1,
    settleNs,
    onSettled: (slot) => this.timing.add(slot),
  });
  readonly #watched: ListenOptions;

  constructor(watched: ListenOptions) {
    this.#watched = watched;
  }

  drain(): void {
    const { recorder, record } = this.#watched;
    const now = Number(systemClock.nowNs() - recorder.baseNs);
    recorder.drain((arrival) => {
      arrival.feed = 0; // all groups are one feed
      this.collector.note(arrival);
    });
    if (record) recorder.drainPackets((packet) => record.add(packet));
    this.collector.settle(now);
  }
}

async function watch(watched: ListenOptions): Promise<FeedTiming> {
  const { recorder, seconds, json, terminal } = watched;
  const ledger = new SlotLedger();
  const session = new ListenSession(watched);
  const startedNs = systemClock.monotonicNs();
  let before = sinceReady(recorder.snapshot());
  const first = before;
  const traces = new TraceDelays(() => recorder.drainTraces(), systemClock);
  const nextView = (since = before): ListenView => {
    session.drain();
    traces.update();
    const now = sinceReady(recorder.snapshot());
    ledger.note(now.slots);
    before = now;
    return {
      seconds: Number(systemClock.monotonicNs() - startedNs) / 1e9,
      addresses: recorder.addresses,
      verifies: watched.leaders.schedule !== undefined,
      proves: watched.proves,
      now,
      report: reportBetween(since, now),
      totals: ledger.totals(),
      timing: session.timing,
      late: session.collector.counts[0]?.late ?? 0,
      traces: traces.delays(),
      lost: recorder.losses(),
      record: watched.record,
    };
  };

  announce(watched);
  const timer = systemClock.every(drainMs, () => session.drain());
  const ended = endOf(terminal.stopped, seconds);
  await every(refreshMs, ended, () => {
    const view = nextView();
    if (json) terminal.line(toJson(listenJson(view, false)));
    else if (terminal.isLive) terminal.redraw(listenLines(view, terminal.paint));
    else terminal.line(listenLine(view));
    return true;
  });
  timer.cancel();
  traces.close();
  terminal.endBlock();
  const last = nextView(first); // the last object reports the rate of the whole session
  if (json) terminal.line(toJson(listenJson(last, true)));
  else for (const line of listenSummary(last)) terminal.line(line);
  return session.timing;
}

function announce({ recorder, leaders, proves, json, terminal }: ListenOptions): void {
  const print = json
    ? (text: string) => terminal.note(text)
    : (text: string) => terminal.line(text);
  print(`listening on ${recorder.addresses.join(", ")}`);
  if (!leaders.schedule)
    print(
      terminal.paint.note(
        "NOT VERIFIED: no leader schedule; forged shreds count as well (--leaders FILE, --rpc URL)",
      ),
    );
  if (proves) print("answering ownership challenges");
}
