// `shredway start` without a configuration: the complete service on a chain in this process, with
// a live screen.
//
// Called by start.ts. Ends on Ctrl-C or SIGTERM with exit code 0.

import { rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { systemClock } from "../../core/clock.ts";
import { messageOf, type Reason, reworded, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { reportBetween } from "../../relay/data-plane/report.ts";
import { openSandbox } from "../../sandbox/open-sandbox.ts";
import type { Sandbox, SandboxSnapshot } from "../../sandbox/sandbox.ts";
import { sandboxKeyFile } from "../../sandbox/sandbox-key.ts";
import { exitCodes } from "../terminal/command.ts";
import { every, type Terminal } from "../terminal/terminal.ts";
import { reserveAddress } from "./reserved-address.ts";
import {
  introduction,
  receiverView,
  type SandboxView,
  sandboxLine,
  sandboxLines,
  sandboxSummary,
  suggestions,
} from "./sandbox-screen.ts";

const refreshMs = 1000;
const lastShredsMs = 100; // for packets in flight when the traffic ends

/** Beside the key. It exists while the sandbox runs; after a kill it names a process that ended. */
const pidFileName = "sandbox.pid";
const reloadText =
  "reload ignored: the sandbox has no configuration file; start the service with --config FILE";

/** Address of the relay's block engine for subscribers, unless it is in use. */
export const defaultShredstream = "127.0.0.1:10010";

export interface SandboxAddresses {
  readonly udp: string;
  readonly rpc: string;
  readonly http: string;
  readonly quic: string;
  readonly streams: string;
  /** Absent: `defaultShredstream`, or another port if that one is in use. */
  readonly shredstream?: string;
  /** Folder of the database and the API key. */
  readonly data: string;
}

export async function runSandbox(
  addresses: SandboxAddresses,
  log: Logger,
  terminal: Terminal,
): Promise<number> {
  const noteReload = () => log.warn(reloadText);
  process.on("SIGHUP", noteReload);
  const reserved =
    addresses.shredstream === undefined ? await reserveAddress(defaultShredstream) : null;
  try {
    const choice = {
      ...addresses,
      ...(reserved && { shredstream: reserved.address, shredstreamSocket: reserved.socket }),
    };
    const sandbox = await withRemedy(() => openSandbox({ ...choice, log, clock: systemClock }));
    const pidFile = join(addresses.data, pidFileName); // the folder belongs to this process now
    try {
      writeFileSync(pidFile, `${process.pid}\n`);
      await withRemedy(() => sandbox.start());
      return await show(sandbox, keyFileOf(addresses), terminal);
    } finally {
      rmSync(pidFile, { force: true });
      await sandbox.close();
    }
  } finally {
    reserved?.socket.close(); // without effect if the sandbox has taken it over and is closed
    process.off("SIGHUP", noteReload);
  }
}

const remedy =
  "Choose others with --http, --udp, --quic, --streams, --rpc and --shredstream; for a second sandbox: --http 127.0.0.1:9780 " +
  "--udp 127.0.0.1:21000 --quic 127.0.0.1:7100 --streams 127.0.0.1:10100 --rpc 127.0.0.1:9899 --data data-2";
/** Resources that two sandboxes may compete for: ports and the data folder. */
const sharedReasons: readonly Reason[] = ["relay_open", "http_open", "quic_open", "store_failed"];

/** Adds a remedy to errors about a port or folder in use. */
async function withRemedy<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isShared = error instanceof ShredwayError && sharedReasons.includes(error.reason);
    if (!isShared || !/in use/.test(messageOf(error))) throw error;
    throw reworded(error, `${messageOf(error)}\n${remedy}`);
  }
}

/** Path of the API key. */
function keyFileOf({ data }: SandboxAddresses): string {
  return shorterPath(join(data, sandboxKeyFile));
}

/** A path from the current folder if that is shorter. */
function shorterPath(file: string): string {
  const fromHere = relative(process.cwd(), file);
  return fromHere.length < file.length ? fromHere : file;
}

async function show(sandbox: Sandbox, keyFile: string, terminal: Terminal): Promise<number> {
  const startedNs = systemClock.monotonicNs();
  const { relay } = sandbox.service;
  const relayAddress = relay.relay.addresses.join(", ");
  let before = sandbox.snapshot();
  const nextView = (): SandboxView => {
    const now = sandbox.snapshot();
    const seconds = Number(systemClock.monotonicNs() - startedNs) / 1e9;
    const view = viewBetween({ sandbox, keyFile, before, now, seconds });
    before = now;
    return view;
  };

  const workers = before.relay.workers.length;
  const { gatewayUrl, quicAddresses, quicFingerprint, streamsAddress, shredstream } = sandbox;
  const engineAddress = sandbox.service.subscribers?.address;
  const about = {
    relayAddress,
    workers,
    rpcUrl: urlOf(sandbox),
    gatewayUrl,
    quicAddresses,
    ...(quicFingerprint !== null && { quicFingerprint }),
    streamsAddress,
    ...(shredstream &&
      engineAddress !== undefined && {
        shredstream: {
          engineUrl: shredstream.engine.url,
          subscribersUrl: `http://${engineAddress}`,
          keyFile: shorterPath(shredstream.subscriberKeyFile),
        },
      }),
  };
  for (const line of introduction(about)) terminal.line(line);
  if (!terminal.isLive) printSuggestions(sandbox, keyFile, terminal);
  const { sources, destinations, authentication } = relay.config;
  const quicText = quicAddresses.length > 0 ? ` quic=${quicAddresses.join(",")}` : "";
  const streamsText = streamsAddress === "" ? "" : ` streams=${streamsAddress}`;
  const engineText = engineAddress === undefined ? "" : ` shredstream=${engineAddress}`;
  terminal.line(
    `ready listen=${relayAddress} workers=${workers} sources=${sources.length} destinations=${destinations.length} authentication=${authentication}${quicText}${streamsText}${engineText} rpc=${urlOf(sandbox)} gateway=${gatewayUrl}`,
  );
  if (terminal.isLive) terminal.line();
  await every(refreshMs, terminal.stopped, () => {
    const view = nextView();
    if (terminal.isLive) terminal.redraw(sandboxLines(view, terminal));
    else terminal.line(sandboxLine(view));
    return true;
  });

  terminal.endBlock();
  sandbox.stopTraffic();
  await systemClock.sleep(lastShredsMs);
  for (const line of sandboxSummary(nextView())) terminal.line(line);
  return exitCodes.ok;
}

function urlOf({ endpoint }: Sandbox): string {
  return `http://${endpoint.address}`;
}

function printSuggestions(sandbox: Sandbox, keyFile: string, terminal: Terminal): void {
  const { userDestination, gatewayUrl } = sandbox;
  const view = { userDestination, gatewayUrl, keyFile };
  for (const { command, shows } of suggestions(terminal.self, view))
    terminal.line(`  try           ${command.join(" ")}   (${shows})`);
}

function viewBetween(parts: {
  sandbox: Sandbox;
  keyFile: string;
  before: SandboxSnapshot;
  now: SandboxSnapshot;
  seconds: number;
}): SandboxView {
  const { sandbox, keyFile, before, now, seconds } = parts;
  const relaySeconds = Number(now.relay.takenAtNs - before.relay.takenAtNs) / 1e9;
  return {
    seconds,
    relayAddress: sandbox.service.relay.relay.addresses.join(", "),
    gatewayUrl: sandbox.gatewayUrl,
    keyFile,
    gateway: now.gateway,
    userDestination: sandbox.userDestination,
    chain: now.chain,
    slotNs: now.slotNs,
    transactionsPerSecond:
      Number(now.chain.transactions - before.chain.transactions) / relaySeconds,
    landings: now.landings,
    shredstream: now.shredstream,
    relay: now.relay,
    report: reportBetween(before.relay, now.relay),
    receivers: sandbox.receivers.map((receiver, i) => {
      const seen = now.receivers[i]?.seen ?? now.relay;
      return receiverView(receiver, before.receivers[i]?.seen ?? seen, seen);
    }),
  };
}
