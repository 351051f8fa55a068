// `shredway race`: compares two or more feeds, live or captured: which delivers each shred first,
// and by how much. With decoded streams, it compares transactions.
//
// Reads the options, runs the race (race-live.ts, race-streams.ts, race-captures.ts) and writes its report as
// screen, JSON, picture, page or table of shreds. Needs no gateway and no configuration.

import { writeFileSync } from "node:fs";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import {
  checkNames,
  type FeedOption,
  feedsMax,
  leaderOptions,
  openLeaders,
  readFeeds,
  splitName,
} from "../listen/feed-options.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type CaptureFeed, raceCaptures } from "./race-captures.ts";
import type { RaceResult } from "./race-display.ts";
import { raceLive } from "./race-live.ts";
import { racePage } from "./race-page.ts";
import { raceSvg } from "./race-picture.ts";
import { racePicture, raceReport } from "./race-report.ts";
import { raceSummary } from "./race-screen.ts";
import { raceStreams } from "./race-streams.ts";
import { ShredTable } from "./shred-table.ts";
import { readStreams, streamOptions } from "./stream-options.ts";
import { verdictOf } from "./verdict.ts";

const settleMsDefault = 2000;
const settleMsMax = 20_000;

export const race: Command = {
  name: "race",
  summary: "compare feeds shred by shred: first arrivals, arrival delay and completeness per feed",
  usage: [
    "race --feed NAME=[ADDRESS:]PORT[@SENDER] --feed NAME=GROUP[%INTERFACE]:PORT … [--leaders FILE | --rpc URL] [--verify] " +
      "[--shred-version N] [--prove] [--seconds S] [--settle MS] [--buffer-mb N] [--json] [--svg FILE] " +
      "[--html FILE] [--csv FILE]",
    "race --stream NAME=[DIALECT:]URL … [--stream-key NAME=FILE …] [--feed …] [the same options, but --csv]",
    "race --capture NAME=FILE --capture … [the same options]",
  ],
  description: `
Receives 2 to ${feedsMax} feeds of shreds concurrently and compares them shred by shred, by the kernel's receive
times. It shows which feed was first and by how much, the completeness of each feed, when each FEC set
could be recovered, and runs of losses. The local port, the sender's address (@ADDRESS or @ADDRESS/BITS),
or both identify a feed.

With --leaders or --rpc only shreds with a valid leader signature count, so forgeries do not help a feed.
Otherwise every screen says NOT VERIFIED. A shred is judged when its slot had no new shreds during
--settle, so that slower feeds are counted. Slots that a feed could only receive in part are omitted.
95 % intervals show whether a difference is significant.

With --stream, decoded streams take part, and the unit is the transaction: its first observation in each feed and
stream, by the time at which this program has it. Feeds of shreds are decoded, each by itself.

--capture compares recorded feeds by their own times (pcap, pcapng), exactly and repeatably. Ctrl-C
prints the summary. docs/race.md explains each number.`,
  options: {
    feed: {
      value: "FEED",
      repeated: true,
      help: "NAME=PORT, NAME=ADDRESS:PORT, each optionally with @SENDER, or NAME=GROUP%INTERFACE:PORT; twice or more",
    },
    capture: { value: "NAME=FILE", repeated: true, help: "a recorded feed; twice or more" },
    ...streamOptions,
    ...leaderOptions,
    "shred-version": { value: "N", help: "refuse other shred versions (default: accept any)" },
    prove: {
      help: "answer ownership challenges, to prove to a service that these addresses are yours",
    },
    seconds: { value: "S", help: "stop after this time (default: at Ctrl-C)" },
    settle: {
      value: "MS",
      help: `judge a slot after this time without new shreds (default ${settleMsDefault})`,
    },
    "buffer-mb": { value: "N", help: "requested receive buffer per port, in MB (default 64)" },
    json: { help: "one JSON object a second, and one with final: true at the end" },
    svg: { value: "FILE", help: "write a picture of the result" },
    html: { value: "FILE", help: "write a page: picture, tables, verdict" },
    csv: { value: "FILE", help: "write one line per judged shred: arrival delay per feed" },
  },
  examples: [
    "shredway race --feed fra-a=20001 --feed nyc-b=20002",
    "shredway race --feed ours=20001 --feed edge=233.84.178.1%doublezero1:7733",
    "shredway race --feed ours=20001 --feed theirs=20002 --rpc https://rpc.example --seconds 600",
    "shredway race --feed ours=20001 --feed theirs=20002 --prove",
    "shredway race --feed a=20001@192.0.2.1 --feed b=20001@198.51.100.0/24 --html race.html",
    "shredway race --feed ours=20001 --stream theirs=https://stream.example --stream-key theirs=key.txt",
    "shredway race --stream a=http://127.0.0.1:10000 --stream b=entries:http://127.0.0.1:9999",
    "shredway race --capture a=a.pcap --capture b=b.pcapng --leaders leaders.json --json",
  ],
  run,
};

function readCaptures(args: Arguments): CaptureFeed[] {
  const captures = args.texts("capture").map((text) => {
    const [name, file] = splitName("capture", text, "FILE");
    if (file === "") throw usageError(`--capture ${name}: missing file; expected NAME=FILE`);
    return { name, file };
  });
  checkNames(
    captures.map(({ name }) => name),
    "capture",
  );
  return captures;
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  args.exclusive("feed", "capture");
  args.exclusive("stream", "capture");
  args.exclusive("stream", "csv");
  if (args.given("capture")) args.exclusive("capture", "seconds");
  if (args.given("capture")) args.exclusive("capture", "buffer-mb");
  if (args.given("capture")) args.exclusive("capture", "prove");
  const captures = args.given("capture") ? readCaptures(args) : [];
  const streams = readStreams(args);
  const streamNames = streams.map(({ name }) => name);
  const feeds = args.given("capture") ? [] : readFeeds(args, streamNames);
  if (streams.length > 0) checkPorts(feeds);
  const shredVersion = args.integer("shred-version", { min: 0, max: 65_535 }) ?? 0;
  const settleMs = args.positive("settle", settleMsMax) ?? settleMsDefault;
  const seconds = args.positive("seconds", 2_000_000);
  const bufferMb = args.integer("buffer-mb", { min: 1, max: 1024 }) ?? 64;
  const files = outputs(args);
  const csv = args.text("csv");
  const names = [...captures, ...feeds].map(({ name }) => name);
  const leaders = await openLeaders(args, terminal);
  const table = csv === undefined ? undefined : new ShredTable(csv, names);
  const json = args.flag("json");
  const plan = { settleNs: settleMs * 1e6, seconds, shredVersion, json, table };
  try {
    const options = {
      plan,
      leaders,
      terminal,
      bufferBytes: bufferMb * 2 ** 20,
      proves: args.flag("prove"),
    };
    const raced =
      captures.length > 0
        ? await raceCaptures(captures, { plan, leaders, terminal })
        : streams.length > 0
          ? await raceStreams(feeds, streams, options)
          : await raceLive(feeds, options);
    table?.close();
    const code = end(raced, { files, json, terminal });
    if (table?.failure) throw table.failure;
    return code;
  } finally {
    leaders.stop();
    table?.close();
  }
}

/** Each feed of shreds has a relay of its own, and two relays cannot share a port. */
function checkPorts(feeds: readonly FeedOption[]): void {
  for (const [i, { name, port }] of feeds.entries()) {
    const other = feeds.slice(0, i).find((one) => one.port === port);
    if (!other) continue;
    throw usageError(
      `--feed ${name}: port ${port} is also the port of ${other.name}; with --stream, expected a port for each feed`,
    );
  }
}

interface OutputFiles {
  readonly svg: string | undefined;
  readonly html: string | undefined;
}

/** Opens all output files before the race, so that a wrong path fails immediately. */
function outputs(args: Arguments): OutputFiles {
  const files = { svg: args.text("svg"), html: args.text("html") };
  for (const file of [files.svg, files.html]) if (file !== undefined) write(file, "");
  return files;
}

function write(file: string, content: string): void {
  try {
    writeFileSync(file, content);
  } catch (cause) {
    throw new ShredwayError("system", `cannot write ${file}: ${messageOf(cause)}`, { cause });
  }
}

function end(
  { session, facts }: RaceResult,
  { files, json, terminal }: { files: OutputFiles; json: boolean; terminal: Terminal },
): number {
  const report = raceReport(session, facts, true);
  const verdict = verdictOf(report);
  const picture = racePicture(session);
  if (json) terminal.line(toJson({ final: true, verdict, ...report }));
  else for (const line of raceSummary(report, verdict, terminal.paint)) terminal.line(line);
  if (files.svg !== undefined) write(files.svg, raceSvg(report, picture));
  if (files.html !== undefined) write(files.html, racePage(report, picture, verdict));
  return report.shreds.distinct > 0 ? exitCodes.ok : exitCodes.failed;
}
