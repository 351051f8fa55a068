// `shredway start`: runs the service from a configuration file, or the sandbox without one.
//
// Data goes to stdout (the line that begins with `ready`) and the log to stderr. SIGHUP reloads
// the configuration and SIGUSR2 logs the current counters. SIGTERM and SIGINT drain the service
// and end it with exit code 0. The service manager, if any, is notified of each state.

import { resolve } from "node:path";
import { openServiceOf } from "../../app/open-service.ts";
import type { Service } from "../../app/service.ts";
import { ServiceManager } from "../../app/service-manager.ts";
import { familyOf, parseEndpoint } from "../../core/addresses/addresses.ts";
import { readOwnAddresses } from "../../core/addresses/own-addresses.ts";
import { systemClock } from "../../core/clock.ts";
import {
  configWarnings,
  formatConfig,
  loadConfig,
} from "../../core/configuration/configuration.ts";
import { quote } from "../../core/errors.ts";
import { createLogger, type Logger, type LogLevel, logLevels } from "../../core/log.ts";
import { giveUpNetworkPrivileges, notifyServiceManager } from "../../relay/data-plane/native.ts";
import { reportBetween } from "../../relay/data-plane/report.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { totalsOf } from "../terminal/relay-report.ts";
import { gatewayStatistics, plain, relayStatistics } from "../terminal/statistics.ts";
import { every, type Terminal } from "../terminal/terminal.ts";

const defaultUdp = "127.0.0.1:20000";
const defaultRpc = "127.0.0.1:8899"; // default address of a local Solana node
const defaultHttp = "127.0.0.1:8780";
const defaultQuic = "127.0.0.1:7000";
const defaultStreams = "127.0.0.1:10000";
const defaultData = "data";
const defaultStatsSeconds = 10;
const defaultLogLevel: LogLevel = "info";
const drainMs = 100; // for packets in the receive buffers
const answerMs = 5000; // for requests in progress

export const start: Command = {
  name: "start",
  summary: "run the service; without a configuration, run the sandbox",
  usage: [
    "start [--http ADDRESS] [--udp ADDRESS] [--quic ADDRESS] [--streams ADDRESS] [--rpc ADDRESS] [--shredstream ADDRESS] " +
      "[--data DIRECTORY]",
    "start --config FILE [--stats SECONDS] [--log-level LEVEL]",
    "start --config FILE --print-config",
  ],
  description: `
Without --config it starts the sandbox: a Solana-like chain in this process, with a real virtual machine,
leaders' shreds and a JSON-RPC endpoint for any Solana client. The real relay forwards its shreds to
receivers on loopback. One source is a block engine of Jito's ShredStream, and one receiver subscribes
as a stock ShredStream proxy does. The gateway sends transactions to its leaders by routes of every kind. The screen
shows live numbers and an API key. With --config it starts the service (docs/configuration.md).

It prints one line that begins with "ready" when it accepts traffic. The line ends with "degraded=…" if
a requirement is missing, for example the leader schedule; the log explains each. SIGHUP reads the file again and
applies sources, destinations, leaders, routes, tips and limits; a file with errors changes nothing.
SIGUSR2 logs the numbers since the start. SIGTERM and Ctrl-C end it with exit code 0. Under systemd it
reports its states to the service manager (Type=notify, WatchdogSec=).`,
  options: {
    config: { value: "FILE", help: "configuration file" },
    "print-config": { help: "print the effective configuration, with every default, and exit" },
    stats: {
      value: "SECONDS",
      help: `interval of the statistics in the log; 0: never (default ${defaultStatsSeconds})`,
    },
    "log-level": {
      value: "LEVEL",
      choices: logLevels,
      help: `the least severe lines of the log: ${logLevels.join(", ")} (default ${defaultLogLevel})`,
    },
    http: {
      value: "ADDRESS",
      help: `address of the sandbox's gateway; also uses the next port for WebSocket, with port 0 only one listener (default ${defaultHttp})`,
    },
    quic: {
      value: "ADDRESS",
      help: `address of the sandbox's QUIC ingress; also uses the next port (default ${defaultQuic})`,
    },
    streams: {
      value: "ADDRESS",
      help: `address of the sandbox's decoded streams (default ${defaultStreams})`,
    },
    data: {
      value: "DIRECTORY",
      help: `folder of the sandbox's database and API key (default ${defaultData})`,
    },
    shredstream: {
      value: "ADDRESS",
      help: "address of the sandbox's block engine for ShredStream proxies (default 127.0.0.1:10010, or a free port if it is in use)",
    },
    udp: { value: "ADDRESS", help: `address of the sandbox's relay (default ${defaultUdp})` },
    rpc: {
      value: "ADDRESS",
      help: `address of the sandbox's chain; also uses the next port (default ${defaultRpc})`,
    },
  },
  examples: [
    "shredway start",
    "shredway start --http 127.0.0.1:9780 --udp 127.0.0.1:21000 --quic 127.0.0.1:7100 --streams 127.0.0.1:10100 --rpc 127.0.0.1:9899 --data data-2",
    "shredway start --config shredway.yaml",
    "shredway start --config shredway.yaml --print-config",
  ],
  isService: (args) => args.given("config") && !args.flag("print-config"),
  run,
};

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const file = args.text("config");
  const statsSeconds = args.integer("stats", { min: 0, max: 86_400 });
  if (file === undefined) {
    for (const name of ["print-config", "stats", "log-level"]) {
      if (args.given(name)) throw usageError(`--${name} requires --config FILE`);
    }
    const allowPortZero = { allowPortZero: true };
    const udp = args.endpoint("udp", allowPortZero) ?? defaultUdp;
    requireIpv4("--udp", udp, "the sandbox's sources send from 127.0.0.2 to 127.0.0.5");
    const rpc = args.endpoint("rpc", allowPortZero) ?? defaultRpc;
    const http = args.endpoint("http", allowPortZero) ?? defaultHttp;
    const quic = args.endpoint("quic", allowPortZero) ?? defaultQuic;
    const streams = args.endpoint("streams", allowPortZero) ?? defaultStreams;
    const shredstream = args.endpoint("shredstream", allowPortZero);
    if (shredstream !== undefined)
      requireIpv4("--shredstream", shredstream, "the sandbox's subscriber uses IPv4");
    const data = resolve(args.text("data") ?? defaultData);
    const { runSandbox } = await import("../sandbox/sandbox.ts"); // large, and not needed in production
    const addresses = {
      udp,
      rpc,
      http,
      quic,
      streams,
      data,
      ...(shredstream !== undefined && { shredstream }),
    };
    return runSandbox(addresses, createLogger({ level: "warn" }), terminal);
  }
  if (args.given("udp")) {
    throw usageError("--udp is not allowed with --config; set relay.listen in the file");
  }
  if (args.given("http")) {
    throw usageError("--http is not allowed with --config; set http.listen in the file");
  }
  if (args.given("quic")) {
    throw usageError("--quic is not allowed with --config; set quic.listen in the file");
  }
  if (args.given("streams")) {
    throw usageError("--streams is not allowed with --config; set streams.listen in the file");
  }
  if (args.given("shredstream")) {
    throw usageError(
      "--shredstream is not allowed with --config; set shredstream.listen in the file",
    );
  }
  if (args.given("data")) {
    throw usageError("--data is not allowed with --config; set data.directory in the file");
  }
  if (args.given("rpc"))
    throw usageError("--rpc is not allowed with --config; it is an option of the sandbox");
  if (args.flag("print-config")) {
    const config = loadConfig(file, readOwnAddresses());
    for (const warning of configWarnings(config)) terminal.note(`warning: ${warning}`);
    terminal.line(formatConfig(config).trimEnd());
    return exitCodes.ok;
  }
  const log = createLogger({ level: logLevelOf(args) });
  return runService({ file, statsSeconds: statsSeconds ?? defaultStatsSeconds, log }, terminal);
}

function requireIpv4(option: string, address: string, why: string): void {
  const { bytes } = parseEndpoint(address, { allowPortZero: true });
  if (familyOf(bytes) === "ipv4") return;
  throw usageError(`${option}: ${address} is not an IPv4 address; ${why}`);
}

function logLevelOf(args: Arguments): LogLevel {
  const given = args.text("log-level") ?? defaultLogLevel;
  const level = logLevels.find((one) => one === given);
  if (level !== undefined) return level;
  const expected = `expected one of ${logLevels.join(", ")}`;
  throw usageError(`--log-level: invalid value ${quote(given)}; ${expected}`);
}

interface RunOptions {
  readonly file: string;
  readonly statsSeconds: number;
  readonly log: Logger;
}

async function runService(
  { file, statsSeconds, log }: RunOptions,
  terminal: Terminal,
): Promise<number> {
  const manager = new ServiceManager({
    environment: process.env,
    pid: process.pid,
    send: notifyServiceManager,
    clock: systemClock,
    log,
  });
  const signals = new Signals();
  const starting = new Interruption(terminal.stopped);
  let service: Service | undefined;
  try {
    manager.starting();
    const opened = await openServiceOf(file, log, systemClock, starting.signal);
    service = opened;
    await opened.start();
    starting.end();
    const privileged = giveUpNetworkPrivileges();
    if (privileged > 0)
      log.warn(`${privileged} threads kept the capabilities to change the network`);
    for (const warning of opened.warnings()) log.warn(warning);
    for (const { name, detail } of opened.degraded()) {
      log.warn(`degraded: ${name}: ${detail}; /health/ready returns 503 until this is repaired`);
    }
    terminal.line(readyLine(opened));
    manager.ready(readyLine(opened));
    signals.onReload(() => manager.reload(() => reloadOf(opened)));
    manager.watch(() => opened.relay.snapshot().workers.map(({ cpu_ns }) => cpu_ns));
    signals.onNumbers(() => logTotals(opened, log, "numbers"));
    await logStatistics({ service: opened, log, manager }, statsSeconds, terminal.stopped);
    signals.onReload(() => log.warn("reload: ignored, because the service is shutting down"));
    manager.stopping();
    await Promise.all([systemClock.sleep(drainMs), opened.drain(answerMs)]);
    logTotals(opened, log, "ended");
    return exitCodes.ok;
  } catch (error) {
    if (!starting.signal.aborted) throw error;
    log.info("start: a signal ended it before the service was ready");
    manager.stopping();
    return exitCodes.ok;
  } finally {
    signals.close();
    await service?.close();
    manager.close();
  }
}

/** Forwards the request to stop until the start ends. Afterwards, the service drains instead. */
class Interruption {
  readonly #controller = new AbortController();
  readonly #stopped: AbortSignal;
  readonly #interrupt = (): void => this.#controller.abort();

  constructor(stopped: AbortSignal) {
    this.#stopped = stopped;
    if (stopped.aborted) this.#interrupt();
    else stopped.addEventListener("abort", this.#interrupt);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    this.#stopped.removeEventListener("abort", this.#interrupt);
  }
}

/** Applies the changed file. Returns the status text for the service manager. */
function reloadOf(service: Service): string {
  return service.reload()
    ? readyLine(service)
    : "the new configuration was refused and the old one remains active; see the log";
}

function logTotals(service: Service, log: Logger, message: string): void {
  const totals = plain(totalsOf(service.relay.snapshot()));
  log.info({ ...totals, ...gatewayStatistics(service) }, message);
}

/**
 * Handlers of all signals that do not end the service. Signals can arrive before the handlers are
 * set.
 */
class Signals {
  #reload: (() => void) | undefined;
  #numbers: (() => void) | undefined;
  #wantsReload = false; // the file may already have been read
  readonly #listeners: readonly (readonly [NodeJS.Signals, () => void])[] = [
    ["SIGHUP", () => (this.#reload ? this.#reload() : this.#noteReload())],
    ["SIGUSR2", () => this.#numbers?.()],
    // Node's default would open its debugger to every user of this machine.
    ["SIGUSR1", () => {}],
  ];

  constructor() {
    for (const [signal, listener] of this.#listeners) process.on(signal, listener);
  }

  onReload(reload: () => void): void {
    this.#reload = reload;
    if (this.#wantsReload) reload();
    this.#wantsReload = false;
  }

  onNumbers(numbers: () => void): void {
    this.#numbers = numbers;
  }

  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
  }

  #noteReload(): void {
    this.#wantsReload = true;
  }
}

function readyLine(service: Service): string {
  const {
    relay: { relay, config },
    gateway,
  } = service;
  const { workers, sources, destinations, authentication } = config;
  const receive = relay.receiveInterfaces === null ? "" : " receive=xdp";
  const http = gateway ? ` http=${gateway.addresses.join(",")}` : "";
  const tls = gateway?.tlsAddresses.length ? ` https=${gateway.tlsAddresses.join(",")}` : "";
  const streams = service.streams ? ` streams=${service.streams.address}` : "";
  const quic = gateway?.quicAddresses.length ? ` quic=${gateway.quicAddresses.join(",")}` : "";
  const portalUrl = gateway?.portalUrl ?? null;
  const portal = portalUrl === null ? "" : ` portal=${portalUrl}`;
  const problems = service.degraded().map(({ name }) => name);
  const degraded = problems.length > 0 ? ` degraded=${problems.join(",")}` : "";
  return (
    `ready listen=${relay.addresses.join(",")} workers=${workers} sources=${sources.length} ` +
    `destinations=${destinations.length} authentication=${authentication} ` +
    `transmit=${relay.transmit.mode}${receive}${http}${tls}${quic}${streams}${portal}${degraded}`
  );
}

function ratesLine(before: RelaySnapshot, now: RelaySnapshot): string {
  const { receivedPerSecond, distinctPerSecond, sentPerSecond } = reportBetween(before, now);
  const [received, distinct, sent] = [receivedPerSecond, distinctPerSecond, sentPerSecond].map(
    (rate) => Math.round(rate).toLocaleString("en-US"),
  );
  return `relaying: ${received} shreds/s in, ${distinct}/s distinct, ${sent}/s out`;
}

interface StatisticsOptions {
  readonly service: Service;
  readonly log: Logger;
  readonly manager: ServiceManager;
}

async function logStatistics(
  { service, log, manager }: StatisticsOptions,
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
    manager.status(ratesLine(before, now));
    before = now;
    return true;
  });
}
