// `shredway start` without a configuration: the relay at work on made-up traffic, live on screen.
//
// Called by start.ts. Ends on Ctrl-C or SIGTERM with exit code 0.

import { systemClock } from "../core/clock.ts";
import { messageOf, ShredwayError } from "../core/errors.ts";
import { openDemo } from "../main.ts";
import type { Demo, DemoSnapshot } from "../sandbox/demo.ts";
import { exitCodes } from "./command.ts";
import {
  type DemoView,
  demoLine,
  demoLines,
  demoSummary,
  introduction,
  receiverView,
  suggestions,
} from "./demo-screen.ts";
import { reportBetween } from "./relay-report.ts";
import { every, type Terminal } from "./terminal.ts";

const refreshMs = 1000;
const lastShredsMs = 100; // for what is under way when the traffic ends

export async function runDemo(udp: string, terminal: Terminal): Promise<number> {
  const demo = open(udp);
  try {
    return await show(demo, terminal);
  } finally {
    demo.close();
  }
}

function open(udp: string): Demo {
  try {
    return openDemo(udp, systemClock);
  } catch (error) {
    if (!(error instanceof ShredwayError) || error.reason !== "relay_open") throw error;
    throw new ShredwayError(
      "relay_open",
      `${messageOf(error)}\nChoose another address with --udp, for example --udp 127.0.0.1:21000`,
      { cause: error },
    );
  }
}

async function show(demo: Demo, terminal: Terminal): Promise<number> {
  const startedNs = systemClock.monotonicNs();
  const relayAddress = demo.relay.addresses.join(", ");
  let before = demo.snapshot();
  const look = (): DemoView => {
    const now = demo.snapshot();
    const seconds = Number(systemClock.monotonicNs() - startedNs) / 1e9;
    const view = viewBetween({ demo, before, now, seconds, relayAddress });
    before = now;
    return view;
  };

  for (const line of introduction({ relayAddress, workers: before.relay.workers.length }))
    terminal.line(line);
  if (!terminal.isLive) sayWhatToTry(demo, terminal);
  const destinations = demo.receivers.length + (demo.openSeat ? 1 : 0);
  terminal.line(
    `ready listen=${relayAddress} workers=${before.relay.workers.length} sources=${before.relay.sources.length} destinations=${destinations} authentication=leader-schedule`,
  );
  if (terminal.isLive) terminal.line();
  await every(refreshMs, terminal.stopped, () => {
    const view = look();
    if (terminal.isLive) terminal.redraw(demoLines(view, terminal.self, terminal.paint));
    else terminal.line(demoLine(view));
    return true;
  });

  terminal.keepBlock();
  demo.stopTraffic();
  await systemClock.sleep(lastShredsMs);
  for (const line of demoSummary(look())) terminal.line(line);
  return exitCodes.ok;
}

function sayWhatToTry(demo: Demo, terminal: Terminal): void {
  for (const { command, shows } of suggestions(terminal.self, demo.openSeat))
    terminal.line(`  try           ${command}   (${shows})`);
}

function viewBetween(parts: {
  demo: Demo;
  before: DemoSnapshot;
  now: DemoSnapshot;
  seconds: number;
  relayAddress: string;
}): DemoView {
  const { demo, before, now, seconds, relayAddress } = parts;
  return {
    seconds,
    relayAddress,
    openSeat: demo.openSeat,
    relay: now.relay,
    report: reportBetween(before.relay, now.relay),
    receivers: demo.receivers.map((receiver, i) => {
      const seen = now.receivers[i]?.seen ?? now.relay;
      return receiverView(receiver, before.receivers[i]?.seen ?? seen, seen);
    }),
  };
}
