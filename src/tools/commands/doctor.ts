// `shredway doctor`: finds problems of this machine and configuration, with reason and remedy.
//
// Reads and tests. Only --apply and --revert change something. Exit code 1 if a check fails.

import { inspectDatabase, inspectDatabaseFile } from "../../app/database-inspection.ts";
import { inspectQuicCertificate } from "../../app/quic-certificate.ts";
import { readOwnAddresses } from "../../core/addresses/own-addresses.ts";
import { systemClock } from "../../core/clock.ts";
import {
  type Config,
  configWarnings,
  loadConfig,
  parseConfig,
} from "../../core/configuration/configuration.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { applySettings, revertChanges, settingsIn } from "../../platform/doctor/changes.ts";
import { checkMachine } from "../../platform/doctor/checks.ts";
import { checkConfiguration, configuredSettingsOf } from "../../platform/doctor/config-checks.ts";
import { checkDatabase, checkDatabaseFile } from "../../platform/doctor/database-checks.ts";
import { readFacts } from "../../platform/doctor/facts.ts";
import { checkFastPath } from "../../platform/doctor/fast-path-checks.ts";
import {
  countLevels,
  type Finding,
  type Level,
  withMeasure,
} from "../../platform/doctor/finding.ts";
import { checkInbound } from "../../platform/doctor/inbound-checks.ts";
import { readInboundFacts } from "../../platform/doctor/inbound-facts.ts";
import { checkMulticast } from "../../platform/doctor/multicast-checks.ts";
import { readMulticastFacts } from "../../platform/doctor/multicast-facts.ts";
import { checkQuic } from "../../platform/doctor/quic-checks.ts";
import { readQuicFacts } from "../../platform/doctor/quic-facts.ts";
import { checkService } from "../../platform/doctor/service-checks.ts";
import { readServiceFacts } from "../../platform/doctor/service-facts.ts";
import { checkShredstream } from "../../platform/doctor/shredstream-checks.ts";
import { readShredstreamFacts } from "../../platform/doctor/shredstream-facts.ts";
import { checkStreamNode } from "../../platform/doctor/stream-checks.ts";
import {
  loadTun,
  probe,
  readConfigFacts,
  settingFiles,
  systemReader,
} from "../../platform/doctor/system.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { type Paint, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { updateUnit } from "./service.ts";

export const doctor: Command = {
  name: "doctor",
  summary: "check this machine and configuration, with the remedy for each problem",
  usage: ["doctor [--config FILE] [--json]", "doctor --apply [--config FILE]", "doctor --revert"],
  description: `
Checks kernel limits, CPUs, NICs, clock, capabilities, libraries and memory, and tests the buffers that
the relay requests. With --config it also checks the requirements of that file, the file itself and the
files it refers to. It checks the ports, and connects to the database, the node, the block engines and the
partners without submitting anything. Each finding explains how to verify its remedy. Nothing is changed. The exit code
is 1 if a check fails; warnings do not count.

--apply, as root, sets the kernel settings of its remedies until the machine starts again, loads the module tun and
updates an installed unit, so that the relay may clone. --revert restores the settings.`,
  options: {
    config: { value: "FILE", help: "check this configuration and its requirements" },
    json: { help: "print one JSON object with counts and all findings" },
    apply: { help: "set the kernel settings of the remedies, and grant what clones need" },
    revert: { help: "restore the kernel settings that --apply changed since the machine started" },
  },
  examples: ["shredway doctor", "shredway doctor --config shredway.yaml --json"],
  run,
};

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  if (args.flag("revert")) return revert(args, terminal);
  if (args.flag("apply")) return apply(args, terminal);
  const findings = await examine(args.text("config"));
  const counts = countLevels(findings);
  if (args.flag("json")) {
    terminal.line(toJson({ ...counts, findings }));
  } else {
    for (const finding of findings)
      for (const line of findingLines(finding, terminal.paint)) terminal.line(line);
    terminal.line();
    terminal.line(`${counts.ok} ok, ${counts.warn} to improve, ${counts.fail} to fix`);
  }
  return counts.fail > 0 ? exitCodes.failed : exitCodes.ok;
}

function requireRoot(option: string): void {
  if (process.geteuid?.() === 0) return;
  throw new ShredwayError("system", `doctor ${option}: expected root, got another user; use sudo`);
}

async function apply(args: Arguments, terminal: Terminal): Promise<number> {
  if (args.flag("json")) throw usageError("--json is not allowed with --apply");
  requireRoot("--apply");
  const findings = await examine(args.text("config"));
  const remedies = findings.filter(({ level }) => level !== "ok").map(({ remedy }) => remedy ?? "");
  const named = remedies.flatMap(settingsIn);
  const settings = [...new Map(named.map((setting) => [setting.path, setting])).values()];
  for (const line of applySettings(settingFiles, settings)) terminal.line(line);
  if (!systemReader.list("/dev/net").includes("tun")) {
    const refusal = loadTun();
    terminal.line(refusal === null ? "loaded  module tun" : `not loaded  module tun: ${refusal}`);
  }
  await updateUnit(terminal);
  if (settings.length > 0) terminal.note("the settings hold until the machine starts again");
  return exitCodes.ok;
}

function revert(args: Arguments, terminal: Terminal): number {
  for (const name of ["apply", "json", "config"])
    if (args.given(name)) throw usageError(`--${name} is not allowed with --revert`);
  requireRoot("--revert");
  const lines = revertChanges(settingFiles);
  for (const line of lines) terminal.line(line);
  if (lines.length === 0) terminal.line("nothing to revert");
  return exitCodes.ok;
}

async function examine(file: string | undefined): Promise<Finding[]> {
  if (file === undefined) return machineFindings(defaultConfig());
  try {
    const config = loadConfig(file, readOwnAddresses());
    const facts = readConfigFacts(file, config);
    const around = await readServiceFacts(file, config, systemClock);
    const engines = await readShredstreamFacts(config.relay, systemClock);
    const database = await inspectDatabase(config, systemClock);
    const databaseFile = await inspectDatabaseFile(config);
    const isServiceHere = around.tcpPorts.some(
      ({ key, error }) => key.startsWith("http.") && error !== null,
    );
    return [
      ...configWarnings(config).map((warning) => configWarning(file, warning)),
      ...machineFindings(config),
      ...checkConfiguration(config.relay, facts),
      ...checkShredstream(engines),
      ...checkInbound(readInboundFacts(config.relay, systemReader), engines),
      ...checkMulticast(
        config.relay,
        readMulticastFacts(config.relay, (path) => systemReader.readText(path)),
      ),
      ...checkService(config, file, around),
      ...checkStreamNode(config),
      ...checkFastPath(config),
      ...checkQuic(readQuicFacts(config, systemReader), inspectQuicCertificate(config)),
      ...(database ? checkDatabase(database, isServiceHere) : []),
      ...(databaseFile ? checkDatabaseFile(databaseFile) : []),
    ];
  } catch (error) {
    return [...machineFindings(defaultConfig()), refusedConfig(file, messageOf(error))];
  }
}

function machineFindings(config: Config): Finding[] {
  const wishes = configuredSettingsOf(config);
  const facts = readFacts(systemReader);
  const cards = facts.nics.map(({ name }) => name);
  return checkMachine(facts, wishes, probe(wishes, cards));
}

/** Defaults for every optional key. */
function defaultConfig(): Config {
  return parseConfig("relay: { shredVersion: 1, authentication: off }", "defaults");
}

function configWarning(file: string, warning: string): Finding {
  return withMeasure({
    check: "config",
    level: "warn",
    finding: warning,
    why: "The service starts with this file, but may not do what the file is meant to say.",
    remedy: `correct ${file}`,
  });
}

function refusedConfig(file: string, message: string): Finding {
  return withMeasure({
    check: "config",
    level: "fail",
    finding: message,
    why: "The service starts only with a file without errors.",
    remedy: `correct ${file}; docs/configuration.md describes each key`,
  });
}

function findingLines(
  { check, level, finding, why, remedy, measure }: Finding,
  paint: Paint,
): string[] {
  const colour: Record<Level, (text: string) => string> = {
    ok: paint.good,
    warn: paint.note,
    fail: paint.bad,
  };
  const indent = " ".repeat(6);
  const [first = "", ...more] = finding.split("\n");
  return [
    `${colour[level](level.padEnd(4))}  ${check.padEnd(17)}  ${first}`,
    ...more.map((line) => `${indent}${" ".repeat(19)}${line}`),
    ...(level === "ok" ? [] : [paint.dim(`${indent}why     ${why}`)]),
    ...(remedy === null ? [] : [`${indent}remedy  ${remedy}`]),
    ...(measure === null ? [] : [paint.dim(`${indent}see     ${measure}`)]),
  ];
}
