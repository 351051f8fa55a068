// `shredway replay`: sends capture files to an address, at the captured times or at a rate.
//
// Reads one window at a time and waits while the send queue is full, so any capture needs little
// memory. With a seed, the packets, order, losses and alterations are the same every time.

import { statSync } from "node:fs";
import { classifyAddress } from "../../core/addresses/address-classes.ts";
import { formatEndpoint, parseAddress, parseEndpoint } from "../../core/addresses/addresses.ts";
import { systemClock } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { SeededRandom } from "../../core/seeded-random.ts";
import {
  type CapturedPacket,
  openCapture,
  type SkipCounts,
} from "../../relay/captures/read-capture.ts";
import { PacedSender } from "../../relay/data-plane/paced-sender.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import {
  formatClock,
  formatCount,
  formatNs,
  formatRate,
  formatShare,
  toJson,
} from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { defaultPacketsPerSecond, gapMaxNs, type Pace, Pacer } from "./pacer.ts";
import { type CopyOptions, makeCopies, type TimedPacket } from "./packet-copies.ts";
import { windowPacketsMax, windowsOf } from "./packet-windows.ts";

const copiesMax = 64;
const queuedMax = 32_768n; // about 40 MB
const queueCheckMs = 5;
const lastAnswersMs = 50; // for ICMP errors caused by the last packets
const progressMs = 500;
const gapMaxSeconds = gapMaxNs / 1_000_000_000n;

export const replay: Command = {
  name: "replay",
  summary: "send the packets of capture files (pcap, pcapng, lpb) to an address",
  usage: [
    "replay FILE… --to ADDRESS [--from ADDRESS] [--rate N | --speed X] [--copies N] [--shuffle SEED] " +
      "[--drop SHARE] [--corrupt SHARE] [--json]",
  ],
  description: `
Sends the UDP payloads of the files, one file after the other, at the times of the capture. Captures
without times (.lpb) go at ${defaultPacketsPerSecond} packets a second, or at --rate. Gaps of more than
${gapMaxSeconds} s in the capture are shortened to ${gapMaxSeconds} s; the summary counts them.

--copies sends every packet several times, as several sources would. --shuffle gives every copy its
own order within windows of ${windowPacketsMax} packets (at most 0.2 s). The same files, options and
seed give the same packets in the same order.`,
  options: {
    to: { value: "ADDRESS", help: "destination, for example 127.0.0.1:20000" },
    from: { value: "ADDRESS", help: "local address to send from (default: the kernel chooses)" },
    rate: { value: "N", help: "packets per second, including copies, evenly spaced" },
    speed: { value: "X", help: "times of the capture, X times as fast (default 1)" },
    copies: { value: "N", help: "send every packet N times (default 1)" },
    shuffle: {
      value: "SEED",
      help: "shuffle the packets; the seed also selects those of --drop and --corrupt",
    },
    drop: { value: "SHARE", help: "drop this share of the packets, 0 to 1" },
    corrupt: { value: "SHARE", help: "alter one byte of this share of the packets, 0 to 1" },
    json: { help: "print the summary as one JSON object" },
  },
  positional: "FILE",
  examples: [
    "shredway replay capture.pcap --to 127.0.0.1:20000",
    "shredway replay a.lpb b.lpb --to 127.0.0.1:20000 --rate 20000",
    "shredway replay capture.pcapng --to 192.0.2.10:9001 --copies 3 --shuffle 7 --drop 0.01",
  ],
  run,
};

interface Plan {
  readonly files: readonly string[];
  readonly to: string;
  readonly from: string | undefined;
  readonly pace: Pace;
  readonly copy: CopyOptions;
  readonly seed: number;
}

function readPlan(args: Arguments): Plan {
  if (args.positionals.length === 0)
    throw usageError("missing capture FILE; expected at least one");
  args.required("to", "127.0.0.1:20000");
  args.exclusive("rate", "speed");
  const rate = args.positive("rate", 10_000_000);
  const copies = args.integer("copies", { min: 1, max: copiesMax }) ?? 1;
  const shuffle = args.integer("shuffle", { min: 0, max: Number.MAX_SAFE_INTEGER });
  return {
    files: args.positionals,
    to: readTo(args),
    from: readFrom(args.text("from")),
    pace:
      rate === undefined
        ? { speed: args.positive("speed", 1e6) ?? 1 }
        : { packetsPerSecond: rate / copies },
    copy: {
      copies,
      shuffle: shuffle !== undefined,
      drop: args.share("drop") ?? 0,
      corrupt: args.share("corrupt") ?? 0,
    },
    seed: shuffle ?? 0,
  };
}

function readTo(args: Arguments): string {
  const to = args.endpoint("to") ?? "";
  if (classifyAddress(parseEndpoint(to).bytes) === "broadcast")
    throw usageError(`--to: ${to} is a broadcast address; expected the address of one machine`);
  return to;
}

function readFrom(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return formatEndpoint({ bytes: parseAddress(text), port: 0 });
  } catch (error) {
    throw usageError(`--from: ${messageOf(error)}`);
  }
}

interface Summary {
  packets: number;
  dropped: number;
  corrupted: number;
  sent: bigint;
  /** Datagrams that the kernel refused. */
  failed: bigint;
  /** Received ICMP errors: port closed or address unreachable. */
  refused: bigint;
  lateMaxNs: bigint;
  /** Gaps of the capture longer than `gapMaxNs`. */
  shortenedGaps: number;
  seconds: number;
  interrupted: boolean;
  /** Error that ended reading early. Packets before it were sent. */
  error: string | null;
  skipped: Record<string, number>;
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const plan = readPlan(args);
  const sender = PacedSender.open({ to: plan.to, ...(plan.from && { from: plan.from }) });
  try {
    const summary = await play(plan, sender, terminal);
    terminal.clearProgress();
    if (summary.packets === 0) {
      const nothing = `no UDP packets in ${plan.files.join(", ")}; expected a capture of UDP packets`;
      const message = summary.error ?? nothing + skippedText(summary.skipped);
      throw new ShredwayError("capture_invalid", message);
    }
    if (args.flag("json")) terminal.line(toJson(jsonOf(summary)));
    else for (const line of summaryLines(summary, plan.to)) terminal.line(line);
    const { interrupted, failed, refused, error } = summary;
    const isComplete = !interrupted && failed === 0n && refused === 0n && error === null;
    return isComplete ? exitCodes.ok : exitCodes.failed;
  } finally {
    sender.close();
  }
}

async function play(plan: Plan, sender: PacedSender, terminal: Terminal): Promise<Summary> {
  const startedNs = systemClock.monotonicNs();
  const seconds = () => Number(systemClock.monotonicNs() - startedNs) / 1e9;
  const random = new SeededRandom(plan.seed);
  const counts = { dropped: 0, corrupted: 0 };
  const pacer = new Pacer(plan.pace);
  const reading = new Reading(plan.files, pacer);
  const progress = new Progress(terminal, reading, sender, seconds);
  let lastDueNs = 0;
  let error: string | null = null;
  try {
    for (const window of windowsOf(reading.packets())) {
      const copies = makeCopies(window, plan.copy, random, counts);
      enqueue(sender, copies, lastDueNs);
      lastDueNs = copies.at(-1)?.timeNs ?? lastDueNs;
      await drained(sender, queuedMax, progress, terminal);
      if (terminal.stopped.aborted) break;
    }
  } catch (thrown) {
    error = messageOf(thrown);
  } finally {
    reading.close();
  }
  await drained(sender, 0n, progress, terminal);
  const playedSeconds = seconds();
  await systemClock.sleep(lastAnswersMs, terminal.stopped);
  const { sent, failed, refused, lateMaxNs } = sender.counts();
  return {
    packets: reading.count,
    ...counts,
    sent,
    failed,
    refused,
    lateMaxNs,
    shortenedGaps: pacer.shortenedGaps,
    seconds: playedSeconds,
    interrupted: terminal.stopped.aborted,
    error,
    skipped: reading.skipped,
  };
}

// A list's clock starts when the previous list is sent, so its times are relative to that list's
// end.
function enqueue(sender: PacedSender, copies: readonly TimedPacket[], lastDueNs: number): void {
  if (copies.length === 0) return;
  sender.enqueue(
    copies.map(({ packet }) => packet),
    BigUint64Array.from(copies, ({ timeNs }) =>
      BigInt(Math.max(0, Math.round(timeNs - lastDueNs))),
    ),
  );
}

async function drained(
  sender: PacedSender,
  most: bigint,
  progress: Progress,
  { stopped }: Terminal,
): Promise<void> {
  while (sender.counts().queued > most && !stopped.aborted) {
    progress.show();
    await systemClock.sleep(queueCheckMs, stopped);
  }
}

/** Reads the files as one stream of timed packets. */
class Reading {
  count = 0;
  readonly skipped: Record<string, number> = {};
  readonly #files: readonly string[];
  readonly #pacer: Pacer;
  readonly #bytesTotal: number;
  #bytesBefore = 0;
  #open: ReturnType<typeof openCapture> | undefined;

  constructor(files: readonly string[], pacer: Pacer) {
    this.#files = files;
    this.#pacer = pacer;
    this.#bytesTotal = files.reduce((total, file) => total + sizeOf(file), 0);
  }

  /** Share of all files' bytes that has been read. */
  get share(): number {
    const read = this.#bytesBefore + (this.#open?.offset ?? 0);
    return this.#bytesTotal === 0 ? 0 : read / this.#bytesTotal;
  }

  *packets(): Generator<TimedPacket> {
    for (const file of this.#files) {
      this.#open = openCapture(file);
      this.#pacer.nextFile();
      for (const captured of this.#open.packets) yield this.#timed(captured);
      this.#noteSkipped(this.#open.skipped);
      this.#bytesBefore += this.#open.offset;
      this.close();
    }
  }

  close(): void {
    this.#open?.close();
    this.#open = undefined;
  }

  #timed({ packet, timestampNs }: CapturedPacket): TimedPacket {
    this.count++;
    return { packet, timeNs: this.#pacer.next(timestampNs) };
  }

  #noteSkipped(skipped: Readonly<SkipCounts>): void {
    for (const [reason, count] of Object.entries(skipped))
      if (count > 0) this.skipped[reason] = (this.skipped[reason] ?? 0) + count;
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0; // opening it reports the error
}

class Progress {
  readonly #terminal: Terminal;
  readonly #reading: Reading;
  readonly #sender: PacedSender;
  readonly #seconds: () => number;
  #nextAt = progressMs / 1000;

  constructor(terminal: Terminal, reading: Reading, sender: PacedSender, seconds: () => number) {
    this.#terminal = terminal;
    this.#reading = reading;
    this.#sender = sender;
    this.#seconds = seconds;
  }

  show(): void {
    const seconds = this.#seconds();
    if (seconds < this.#nextAt) return;
    this.#nextAt = seconds + progressMs / 1000;
    const { sent, queued } = this.#sender.counts();
    this.#terminal.progress(
      `${formatClock(seconds)}  sent ${formatCount(sent)}  ${formatRate(Number(sent) / seconds)}  read ${formatShare(this.#reading.share)}  queued ${formatCount(queued)}`,
    );
  }
}

function skippedText(skipped: Record<string, number>): string {
  const parts = Object.entries(skipped).map(([reason, count]) => `${reason} ${formatCount(count)}`);
  return parts.length === 0 ? "" : ` (skipped: ${parts.join(", ")})`;
}

function summaryLines(summary: Summary, to: string): string[] {
  const { packets, dropped, corrupted, sent, failed, refused, lateMaxNs, seconds } = summary;
  const rate = formatRate(Number(sent) / Math.max(seconds, 1e-9));
  return [
    `${summary.interrupted ? "interrupted: " : ""}sent ${formatCount(sent)} packets in ${seconds.toFixed(2)} s (${rate}), at most ${formatNs(lateMaxNs)} late`,
    `from ${formatCount(packets)} of the capture${skippedText(summary.skipped)}; dropped ${formatCount(dropped)}, altered ${formatCount(corrupted)}`,
    ...(summary.shortenedGaps > 0
      ? [
          `shortened ${formatCount(summary.shortenedGaps)} gaps of the capture to ${gapMaxSeconds} s`,
        ]
      : []),
    ...(summary.error === null ? [] : [`FAILED: ${summary.error}`]),
    ...(failed > 0n ? [`FAILED: the kernel refused ${formatCount(failed)} packets`] : []),
    ...(refused > 0n
      ? [
          `FAILED: ${to} is unreachable or has no listener: received ${formatCount(refused)} ICMP errors`,
        ]
      : []),
  ];
}

function jsonOf(summary: Summary): Record<string, unknown> {
  return {
    ...summary,
    seconds: Math.round(summary.seconds * 1e6) / 1e6,
    packetsPerSecond: Math.round(Number(summary.sent) / Math.max(summary.seconds, 1e-9)),
  };
}
