// `shredway listen`: receives a feed and says what came: rate, duplicates, coverage, verification.
//
// A relay without destinations, so a listener counts by the same rules as the relay itself. Tells
// loudly when nothing was verified.

import { existsSync, readFileSync } from "node:fs";
import { formatEndpoint, parseAddress, parseEndpoint } from "../core/addresses.ts";
import { systemClock } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import { Relay } from "../data-plane/relay.ts";
import type { RelaySnapshot } from "../data-plane/snapshot.ts";
import { type LeaderSchedule, loadLeaderSchedule } from "../leaders/schedule.ts";
import { type Arguments, type Command, exitCodes, usageError } from "./command.ts";
import {
  type ListenView,
  listenJson,
  listenLine,
  listenLines,
  listenSummary,
} from "./listen-screen.ts";
import { toJson } from "./output.ts";
import { reportBetween } from "./relay-report.ts";
import { SlotLedger } from "./slot-ledger.ts";
import { every, type Terminal } from "./terminal.ts";

const refreshMs = 1000;
const tier = "all";

export const listen: Command = {
  name: "listen",
  summary: "receive a feed: rate, duplicates, coverage of each slot, signatures",
  usage: [
    "listen --port PORT [--bind ADDRESS] [--leaders FILE] [--shred-version N]",
    "[--prove] [--seconds S] [--json]",
  ],
  description: `
Receives shreds from anybody on a UDP port. With --leaders every shred is verified as the relay
does it; without, whatever is formally a shred counts, and every line says so. Numbers come once a
second, a summary at the end (Ctrl-C, or after --seconds).

With --prove it answers the ownership challenges of a service that is to send shreds here: each goes
back unchanged to where it came from, at most 16 a second.

A slot is complete when all its shreds came; how many there are is known once its last data shred
came, until then a "?" stands there.`,
  options: {
    port: { value: "PORT", help: "UDP port; 0: the kernel chooses" },
    bind: { value: "ADDRESS", help: "own address (default: all, IPv4 and IPv6)" },
    leaders: { value: "FILE", help: "leader schedule (leaders.json): verify signatures" },
    "shred-version": { value: "N", help: "refuse other shred versions (default: take any)" },
    prove: { help: "answer ownership challenges: proves to a service that this address is yours" },
    seconds: { value: "S", help: "end after so many seconds (default: until Ctrl-C)" },
    json: { help: "one JSON object a second, and one with final: true at the end" },
  },
  examples: [
    "shredway listen --port 20001",
    "shredway listen --port 20001 --leaders leaders.json --shred-version 50093",
    "shredway listen --port 20001 --prove",
    "shredway listen --port 20001 --seconds 60 --json",
  ],
  run,
};

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  args.required("port", "20001");
  const port = args.integer("port", { min: 0, max: 65_535 }) ?? 0;
  const seconds = args.positive("seconds", 2_000_000);
  const shredVersion = args.integer("shred-version", { min: 0, max: 65_535 }) ?? 0;
  const addresses = listenAddresses(args.text("bind"), port);
  const leadersFile = args.text("leaders");
  const schedule = leadersFile === undefined ? undefined : loadLeaderSchedule(leadersFile);

  const proves = args.flag("prove");
  const relay = openListener({ addresses, shredVersion, schedule, proves });
  try {
    await watch({
      relay,
      verifies: schedule !== undefined,
      proves,
      seconds,
      json: args.flag("json"),
      terminal,
    });
    return exitCodes.ok;
  } finally {
    relay.close();
  }
}

function listenAddresses(bind: string | undefined, port: number): string[] {
  if (bind !== undefined) {
    try {
      return [formatEndpoint({ bytes: parseAddress(bind), port })];
    } catch (error) {
      throw usageError(`--bind: ${messageOf(error)}`);
    }
  }
  // Two sockets cannot be told to choose the same free port.
  if (port === 0 || !hasIpv6()) return [`0.0.0.0:${port}`];
  return [`0.0.0.0:${port}`, `[::]:${port}`];
}

function hasIpv6(): boolean {
  const path = "/proc/net/if_inet6";
  return existsSync(path) && readFileSync(path, "utf8").trim() !== "";
}

function openListener(options: {
  addresses: readonly string[];
  shredVersion: number;
  schedule: LeaderSchedule | undefined;
  proves: boolean;
}): Relay {
  const relay = Relay.open({
    listen: options.addresses,
    workers: 1,
    tiers: [tier],
    authentication: options.schedule ? "leader-schedule" : "off",
    shredVersion: options.shredVersion,
    answerChallenges: options.proves,
    prefault: false,
  });
  const ports = new Set(relay.addresses.map((address) => parseEndpoint(address).port));
  relay.publishSources([...ports].map((port) => ({ name: "anybody", port, tier })));
  if (options.schedule) relay.publishLeaders(options.schedule);
  return relay;
}

/**
 * Everybody is a source here, so unknown senders are only those whose packets came in the instant
 * between opening the socket and publishing that; they belong to no session.
 */
function sinceReady(snapshot: RelaySnapshot): RelaySnapshot {
  const { received, verdicts } = snapshot;
  return {
    ...snapshot,
    received: received - verdicts.unknown_source,
    verdicts: { ...verdicts, unknown_source: 0n },
  };
}

// Not AbortSignal.any with AbortSignal.timeout: Node 20 may collect such a timeout before it fires.
function endOf(stopped: AbortSignal, seconds: number | undefined): AbortSignal {
  if (seconds === undefined) return stopped;
  const ending = new AbortController();
  const timer = systemClock.after(seconds * 1000, () => ending.abort());
  stopped.addEventListener("abort", () => {
    timer.cancel();
    ending.abort();
  });
  return ending.signal;
}

async function watch(parts: {
  relay: Relay;
  verifies: boolean;
  proves: boolean;
  seconds: number | undefined;
  json: boolean;
  terminal: Terminal;
}): Promise<void> {
  const { relay, verifies, proves, seconds, json, terminal } = parts;
  const ledger = new SlotLedger();
  const startedNs = systemClock.monotonicNs();
  let before = sinceReady(relay.snapshot());
  const first = before;
  const look = (since = before): ListenView => {
    const now = sinceReady(relay.snapshot());
    ledger.note(now.slots);
    before = now;
    return {
      seconds: Number(systemClock.monotonicNs() - startedNs) / 1e9,
      addresses: relay.addresses,
      verifies,
      proves,
      now,
      report: reportBetween(since, now),
      totals: ledger.totals(),
    };
  };

  const print = json
    ? (text: string) => terminal.note(text)
    : (text: string) => terminal.line(text);
  print(`listening on ${relay.addresses.join(", ")}`);
  if (!verifies)
    print(
      terminal.paint.note(
        "NOT VERIFIED: no leader schedule; forged shreds count as well (--leaders FILE)",
      ),
    );
  if (proves) print("answering ownership challenges");

  const ended = endOf(terminal.stopped, seconds);
  await every(refreshMs, ended, () => {
    const view = look();
    if (json) terminal.line(toJson(listenJson(view, false)));
    else if (terminal.isLive) terminal.redraw(listenLines(view, terminal.paint));
    else terminal.line(listenLine(view));
    return true;
  });
  terminal.keepBlock();
  const last = look(first); // the rate of the last object is that of the whole session
  if (json) terminal.line(toJson(listenJson(last, true)));
  else for (const line of listenSummary(last)) terminal.line(line);
}
