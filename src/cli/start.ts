// `shredway start`: the service from a configuration file, or without one the sandbox.
//
// Data goes to stdout (the line that begins with `ready`), the log to stderr. SIGHUP reloads sources,
// destinations and leaders; SIGTERM and SIGINT drain and end with exit code 0.

import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { familyOf, parseEndpoint } from "../core/addresses.ts";
import { systemClock } from "../core/clock.ts";
import { formatConfig, loadConfig } from "../core/config.ts";
import { createLogger, type Logger } from "../core/log.ts";
import { readOwnAddresses } from "../core/own-addresses.ts";
import { giveUpNetworkPrivileges } from "../data-plane/native.ts";
import { openServiceOf } from "../main.ts";
import type { Service } from "../service/service.ts";
import { type Arguments, type Command, exitCodes, usageError } from "./command.ts";
import { totalsOf } from "./relay-report.ts";
import { gatewayStatistics, plain, relayStatistics } from "./statistics.ts";
import { every, type Terminal } from "./terminal.ts";

const defaultUdp = "127.0.0.1:20000";
const defaultRpc = "127.0.0.1:8899"; // where Solana clients look for a node on this machine
const defaultHttp = "127.0.0.1:8780";
const defaultData = "data";
const defaultStatsSeconds = 10;
const drainMs = 100; // for what already waits in the receive buffers
const answerMs = 5000; // for requests under way

export const start: Command = {
  name: "start",
  summary: "run relay and gateway, or without a configuration a sandbox around them",
  usage: [
    "start [--http ADDRESS] [--udp ADDRESS] [--rpc ADDRESS] [--data DIRECTORY]",
    "start --config FILE [--stats SECONDS]",
    "start --config FILE --print-config",
  ],
  description: `
Without --config: the sandbox. A Solana-like chain runs in this process (a real virtual machine, real
leaders' shreds, a JSON-RPC endpoint for any Solana client); its shreds go through the real relay to
receivers on loopback, and the gateway sends transactions to its leaders by routes of every kind, with
live numbers and a ready API key. With --config: the service as the file says (docs/configuration.md).

Prints one line that begins with "ready" when it takes traffic. SIGHUP reads the file again and
takes over sources, destinations, leaders, routes, tips and limits; a wrong file changes nothing. SIGTERM and Ctrl-C
end it with exit code 0.`,
  options: {
    config: { value: "FILE", help: "configuration file" },
    "print-config": { help: "print the effective configuration and end" },
    stats: {
      value: "SECONDS",
      help: `log one line of numbers so often; 0: never (default ${defaultStatsSeconds})`,
    },
    http: {
      value: "ADDRESS",
      help: `where the sandbox's gateway answers; takes the port above, too (default ${defaultHttp})`,
    },
    data: {
      value: "DIRECTORY",
      help: `folder of the sandbox's database and API key (default ${defaultData})`,
    },
    udp: { value: "ADDRESS", help: `where the sandbox's relay listens (default ${defaultUdp})` },
    rpc: {
      value: "ADDRESS",
      help: `where the sandbox's chain answers; takes the port above, too (default ${defaultRpc})`,
    },
  },
  examples: [
    "shredway start",
    "shredway start --http 127.0.0.1:9780 --udp 127.0.0.1:21000 --rpc 127.0.0.1:9899 --data data-2",
    "shredway start --config shredway.yaml",
    "shredway start --config shredway.yaml --print-config",
  ],
  run,
};

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const file = args.text("config");
  const statsSeconds = args.integer("stats", { min: 0, max: 86_400 });
  if (file === undefined) {
    for (const name of ["print-config", "stats"]) {
      if (args.given(name)) throw usageError(`--${name}: expected --config FILE with it, got none`);
    }
    const allowPortZero = { allowPortZero: true };
    const udp = args.endpoint("udp", allowPortZero) ?? defaultUdp;
    if (familyOf(parseEndpoint(udp, allowPortZero).bytes) !== "ipv4") {
      throw usageError(
        `--udp: expected an IPv4 address, for the sandbox's sources send from 127.0.0.2 to .4; got ${udp}`,
      );
    }
    const rpc = args.endpoint("rpc", allowPortZero) ?? defaultRpc;
    const http = args.endpoint("http", allowPortZero) ?? defaultHttp;
    const data = resolve(args.text("data") ?? defaultData);
    const { runSandbox } = await import("./sandbox.ts"); // heavy, and of no use in production
    return runSandbox({ udp, rpc, http, data }, createLogger({ level: "warn" }), terminal);
  }
  if (args.given("udp")) {
    throw usageError("--udp: expected without --config; the file says it in relay.listen");
  }
  if (args.given("http")) {
    throw usageError("--http: expected without --config; the file says it in http.listen");
  }
  if (args.given("data")) {
    throw usageError("--data: expected without --config; the file says it in data.directory");
  }
  if (args.given("rpc")) throw usageError("--rpc: expected without --config: it is the sandbox's");
  if (args.flag("print-config")) {
    terminal.line(formatConfig(loadConfig(file, readOwnAddresses())).trimEnd());
    return exitCodes.ok;
  }
  return runService(file, statsSeconds ?? defaultStatsSeconds, terminal);
}

async function runService(file: string, statsSeconds: number, terminal: Terminal): Promise<number> {
  const log = createLogger();
  let service: Service | undefined;
  let wantsReload = false;
  const reload = () => {
    if (service) service.reload();
    else wantsReload = true; // the file may have been read already
  };
  process.on("SIGHUP", reload);
  try {
    service = await openServiceOf(file, log, systemClock);
    await service.start();
    if (service.relay.relay.transmit.way === "clone") giveUpNetworkPrivileges();
    if (wantsReload) service.reload();
    for (const warning of service.warnings()) log.warn(warning);
    terminal.line(readyLine(service));
    tellSystemd(log);
    await logStatistics(service, log, statsSeconds, terminal.stopped);
    await Promise.all([systemClock.sleep(drainMs), service.drain(answerMs)]);
    log.info(
      { ...plain(totalsOf(service.relay.snapshot())), ...gatewayStatistics(service) },
      "ended",
    );
    return exitCodes.ok;
  } finally {
    process.off("SIGHUP", reload);
    await service?.close();
  }
}

function readyLine({ relay: { relay, config }, gateway }: Service): string {
  const { workers, sources, destinations, authentication } = config;
  const http = gateway ? ` http=${gateway.addresses.join(",")}` : "";
  return (
    `ready listen=${relay.addresses.join(",")} workers=${workers} sources=${sources.length} ` +
    `destinations=${destinations.length} authentication=${authentication} ` +
    `transmit=${relay.transmit.way}${http}`
  );
}

async function logStatistics(
  service: Service,
  log: Logger,
  seconds: number,
  stopped: AbortSignal,
): Promise<void> {
  let before = service.relay.snapshot();
  const periodMs = (seconds || 86_400) * 1000;
  await every(periodMs, stopped, () => {
    if (seconds === 0) return true;
    const now = service.relay.snapshot();
    const line = { ...relayStatistics(service.relay, before, now), ...gatewayStatistics(service) };
    log.info(line, "statistics");
    before = now;
    return true;
  });
}

// Node has no datagram sockets of the local family, so systemd's own tool says it (in the unit:
// NotifyAccess=all).
function tellSystemd(log: Logger): void {
  const { NOTIFY_SOCKET } = process.env;
  if (!NOTIFY_SOCKET) return;
  const child = spawn("systemd-notify", ["--ready"], { stdio: "ignore" });
  child.on("error", (error) => log.warn(`systemd was not told READY=1: ${error.message}`));
}
