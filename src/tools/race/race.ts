// `shredway race`: two or more feeds, live or from captures: which brings each shred first, by how much.
//
// Reads the options, runs the race (race-live.ts, race-captures.ts) and hands its report to whoever
// wants to see it: screen, JSON, picture, page, table of shreds. Needs no gateway and no configuration.

import { writeFileSync } from "node:fs";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import {
  checkNames,
  feedsMax,
  leaderOptions,
  openLeaders,
  readFeeds,
  splitName,
} from "../listen/feed-options.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { toJson } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { racePage } from "./page.ts";
import { raceSvg } from "./picture.ts";
import { type CaptureFeed, raceCaptures } from "./race-captures.ts";
import { raceLive } from "./race-live.ts";
import { raceSummary } from "./race-screen.ts";
import type { Raced } from "./race-show.ts";
import { ShredTable } from "./race-table.ts";
import { racePicture, raceReport } from "./report.ts";
import { verdictOf } from "./verdict.ts";

const settleMsDefault = 2000;
const settleMsMax = 20_000;

export const race: Command = {
  name: "race",
  summary: "compare feeds shred by shred: who is first, by how much, how whole each one is",
  usage: [
    "race --feed NAME=[ADDRESS:]PORT[@SENDER] --feed … [--leaders FILE | --rpc URL]",
    "[--verify] [--shred-version N] [--seconds S] [--settle MS]",
    "[--json] [--svg FILE] [--html FILE] [--csv FILE]",
    "race --capture NAME=FILE --capture … [the same options]",
  ],
  description: `
Receives 2 to ${feedsMax} feeds of shreds at the same time and compares them shred by shred, by the kernel's
receive times: who was first and by how much, which share of all shreds each feed brought, when each
FEC set could be recovered, what was lost in a row. Feeds are told apart by the own port that they come
in on, by the sender's address (@ADDRESS or @ADDRESS/BITS), or by both.

With --leaders or --rpc only shreds with their leader's signature count, so that no feed wins with
forgeries; without, every screen says NOT VERIFIED. A shred is judged when nothing new came for its
slot during --settle, so that a slower feed has its chance; slots that not every feed could see whole
are left out. Whether a difference is more than chance is said with 95 % intervals.

With --capture recorded feeds are raced (pcap, pcapng; by their own times), exactly and repeatably.
Ctrl-C ends a race with its summary. docs/race.md says what each number means.`,
  options: {
    feed: {
      value: "FEED",
      repeated: true,
      help: "NAME=PORT, NAME=ADDRESS:PORT, each with @SENDER if you like; twice or more",
    },
    capture: { value: "NAME=FILE", repeated: true, help: "a recorded feed; twice or more" },
    ...leaderOptions,
    "shred-version": { value: "N", help: "refuse other shred versions (default: take any)" },
    seconds: { value: "S", help: "end after so many seconds (default: until Ctrl-C)" },
    settle: {
      value: "MS",
      help: `judge a slot when nothing new came for so long (default ${settleMsDefault})`,
    },
    "buffer-mb": { value: "N", help: "receive buffer to ask for, each port (default 64)" },
    json: { help: "one JSON object a second, and one with final: true at the end" },
    svg: { value: "FILE", help: "write a picture of the result" },
    html: { value: "FILE", help: "write a page: picture, tables, verdict" },
    csv: { value: "FILE", help: "write one line for each judged shred: who was how late" },
  },
  examples: [
    "shredway race --feed fra-a=20001 --feed nyc-b=20002",
    "shredway race --feed ours=20001 --feed theirs=20002 --rpc https://rpc.example --seconds 600",
    "shredway race --feed a=20001@192.0.2.1 --feed b=20001@198.51.100.0/24 --html race.html",
    "shredway race --capture a=a.pcap --capture b=b.pcapng --leaders leaders.json --json",
  ],
  run,
};

function readCaptures(args: Arguments): CaptureFeed[] {
  const captures = args.texts("capture").map((text) => {
    const [name, file] = splitName("capture", text, "FILE");
    if (file === "") throw usageError(`--capture ${name}: expected a file, got none`);
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
  if (args.given("capture")) args.exclusive("capture", "seconds");
  if (args.given("capture")) args.exclusive("capture", "buffer-mb");
  const captures = args.given("capture") ? readCaptures(args) : [];
  const feeds = args.given("capture") ? [] : readFeeds(args);
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
    const raced =
      captures.length > 0
        ? await raceCaptures(captures, { plan, leaders, terminal })
        : await raceLive(feeds, { plan, leaders, terminal, bufferBytes: bufferMb * 2 ** 20 });
    table?.close();
    return end(raced, { files, json, terminal });
  } finally {
    leaders.stop();
    table?.close();
  }
}

interface OutputFiles {
  readonly svg: string | undefined;
  readonly html: string | undefined;
}

/** Opened before the race: a path that cannot be written must not cost an hour of racing. */
function outputs(args: Arguments): OutputFiles {
  const files = { svg: args.text("svg"), html: args.text("html") };
  for (const file of [files.svg, files.html]) if (file !== undefined) write(file, "");
  return files;
}

function write(file: string, content: string): void {
  try {
    writeFileSync(file, content);
  } catch (cause) {
    throw new ShredwayError("system", `${file}: cannot be written: ${messageOf(cause)}`, { cause });
  }
}

function end(
  { session, facts }: Raced,
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
