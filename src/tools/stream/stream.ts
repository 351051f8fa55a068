// `shredway stream`: prints a decoded stream of transactions live, with its rate and its delay.
//
// A client like any other: it speaks the gRPC dialects, and continues after a loss of the connection.

import { systemClock } from "../../core/clock.ts";
import type { GrpcEnd } from "../../core/grpc/grpc-stream-call.ts";
import { keyVariable } from "../send/target.ts";
import { type Arguments, type Command, exitCodes } from "../terminal/command.ts";
import { endOf, every, type Terminal } from "../terminal/terminal.ts";
import { StreamReport } from "./stream-report.ts";
import { endText, StreamSession } from "./stream-session.ts";
import {
  readStreamTarget,
  type StreamTarget,
  streamDialects,
  streamUrlDefault,
  streamUrlVariable,
} from "./stream-target.ts";

const refreshMs = 1000;

export const stream: Command = {
  name: "stream",
  summary: "print a decoded stream of transactions live, with its rate and delay",
  usage: [
    "stream [--url URL] [--api-key-file FILE | --api-key KEY] [--ca FILE] [--dialect DIALECT] [--from-slot SLOT] [--include ACCOUNT …] " +
      "[--exclude ACCOUNT …] [--required ACCOUNT …] [--vote | --no-vote] [--count N] [--seconds S] [--json]",
  ],
  description: `
Subscribes to transactions before they are executed, over gRPC, and prints one line for each: slot, signature and
delay. A second line with rate, delay, slot and gaps is updated once a second on stderr.

The dialect deshred (Yellowstone's SubscribeDeshred) has filters, and its messages contain the time at which the
server received the last needed shred. The delay is the time from then until this program has the message; on two
machines it contains the difference of their clocks. The dialects preprocessed (Helius's SubscribePreprocessed) and
transactions (Shreder's SubscribeTransactions) have filters and the time, but no messages about slots. The dialect
entries (Jito's SubscribeEntries) has neither.

Without --url, the sandbox on this machine is used, with the key that the sandbox stored in ./data. After a loss of
the connection the program reports it, connects again, and asks the server to continue where it was. It ends with exit code 1 if the server refuses the key
or the filter, and if the stream ends as lagged or lost.`,
  options: {
    url: {
      value: "URL",
      help: `http:// or, with TLS, https:// (default: ${streamUrlVariable}, or ${streamUrlDefault})`,
    },
    "api-key-file": { value: "FILE", help: "file with the API key" },
    "api-key": { value: "KEY", help: `API key (default: the one in the URL, or ${keyVariable})` },
    ca: { value: "FILE", help: "trust these certificates (PEM) instead of those of Node.js" },
    dialect: {
      value: "DIALECT",
      choices: streamDialects,
      help: `${streamDialects.join(", ")} (default ${streamDialects[0]})`,
    },
    "from-slot": {
      value: "SLOT",
      help: "begin with the transactions of this slot, at most two minutes ago (default: live)",
    },
    include: {
      value: "ACCOUNT",
      repeated: true,
      help: "only transactions with at least one of these accounts",
    },
    exclude: { value: "ACCOUNT", repeated: true, help: "no transactions with these accounts" },
    required: {
      value: "ACCOUNT",
      repeated: true,
      help: "only transactions with all of these accounts",
    },
    vote: { help: "only votes" },
    "no-vote": { help: "no votes" },
    count: { value: "N", help: "stop after this number of transactions" },
    seconds: { value: "S", help: "stop after this time (default: at Ctrl-C)" },
    json: { help: "print one JSON object for each transaction" },
  },
  examples: [
    "shredway stream",
    "shredway stream --no-vote --include 675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8",
    "shredway stream --url https://gateway.example:10000 --api-key-file key.txt --json",
    "shredway stream --from-slot 427286518",
    "shredway stream --url http://127.0.0.1:9999 --dialect entries --seconds 60",
  ],
  run,
};

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const target = readStreamTarget(args, terminal.environment);
  const count = args.integer("count", { min: 1, max: 1_000_000_000 }) ?? Number.POSITIVE_INFINITY;
  const seconds = args.positive("seconds", 2_000_000);
  const json = args.flag("json");
  const startedNs = systemClock.monotonicNs();
  const report = new StreamReport({ dialect: target.dialect, json, terminal, startedNs });
  const over = new AbortController();
  const stop = (): void => over.abort();
  terminal.stopped.addEventListener("abort", stop);
  endOf(over.signal, seconds).addEventListener("abort", stop);
  let failure: GrpcEnd | undefined;
  const session = new StreamSession({
    target,
    clock: systemClock,
    random: Math.random,
    onEvent: (event) => {
      if (over.signal.aborted) return;
      report.add(event, systemClock.nowNs());
      if (report.count >= count) stop();
    },
    onNote: (text) => terminal.note(`shredway stream: ${text}`),
    onEnd: (end) => {
      failure = end;
      stop();
    },
  });
  if (terminal.stopped.aborted) stop();
  await every(refreshMs, over.signal, () => {
    report.tick(systemClock.monotonicNs(), session);
    return true;
  });
  session.close();
  terminal.clearProgress();
  if (report.count > 0 || !failure) report.finish(systemClock.monotonicNs(), session);
  if (!failure) return exitCodes.ok;
  terminal.note(`shredway stream: ${endText(failure)}${remedyFor(failure, target)}`);
  return exitCodes.failed;
}

function remedyFor({ status, detail, isFromServer }: GrpcEnd, target: StreamTarget): string {
  const { url, apiKey } = target;
  if (isFromServer && status === "UNAUTHENTICATED" && apiKey === null) {
    return ` (--api-key-file FILE, --api-key KEY or ${keyVariable})`;
  }
  if (isFromServer) return "";
  if (/certificate/.test(detail)) return "; --ca FILE names its authority";
  const isDefault = new URL(url).origin === streamUrlDefault;
  if (isDefault && /ECONNREFUSED/.test(detail)) {
    return "; start the sandbox (shredway start), or give --url URL";
  }
  return "";
}
