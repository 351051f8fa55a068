// The configuration's checks: mistakes in a file that is formally valid. Pure.
//
// Called by src/tools/commands/doctor.ts with facts about the files and ports of the configuration.

import { parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Config, RelayConfig } from "../../core/configuration/configuration.ts";
import { callerFilesOf } from "../../core/configuration/connection-limits.ts";
import { isForwardedSource } from "../../core/configuration/relay-sources.ts";
import { counted } from "../../core/counted.ts";
import { modeText, portFinding } from "./file-and-port-texts.ts";
import type { FileFact, KeyedPortFact } from "./file-facts.ts";
import { about, type Finding, type Found, withMeasure } from "./finding.ts";
import type { ConfiguredSettings } from "./input.ts";

export interface ConfigFacts {
  readonly files: readonly FileFact[];
  /** UDP ports. */
  readonly ports: readonly KeyedPortFact[];
  /** The reason why the leader schedule is unusable; null: usable, or not needed. */
  readonly leadersError: string | null;
  /** Slots of the schedule; null: no schedule. */
  readonly leadersCover: string | null;
}

const writableByOthers = 0o022;

export function checkConfiguration(relay: RelayConfig, facts: ConfigFacts): Finding[] {
  return [
    authentication(relay, facts),
    ...facts.files.map(fileMode),
    ...facts.ports.map((port) => portFinding(port, "-u")),
    tables(relay),
  ].map(withMeasure);
}

function authentication(relay: RelayConfig, facts: ConfigFacts): Found {
  const { ok, warn, fail } = about(
    "authentication",
    "Without it, every host that can send from a source's address can inject forged shreds into the feed.",
  );
  if (relay.authentication === "off") {
    return warn(
      "AUTHENTICATION IS OFF: forged shreds are forwarded",
      "set relay.authentication: leader-schedule and relay.leaders: { file: leaders.json }",
    );
  }
  if (facts.leadersError !== null) {
    return fail(
      facts.leadersError,
      "write a leader schedule (relay.leaders.file in docs/configuration.md)",
    );
  }
  return ok(
    `shreds are verified${facts.leadersCover === null ? " against the leader schedule" : `; ${facts.leadersCover}`}`,
  );
}

function fileMode({ path, mode }: FileFact): Found {
  const { withLevel } = about(
    "file-mode",
    "Write access to this file gives control over sources, leaders and destinations.",
  );
  const text = mode === null ? "cannot be looked at" : modeText(mode);
  const others = mode !== null && (mode & writableByOthers) !== 0;
  return withLevel(
    others ? "fail" : mode === null ? "warn" : "ok",
    `${path}: ${text}${others ? ", writable by other users" : ""}`,
    others ? `chmod go-w ${path}` : mode === null ? `ls -l ${path}` : null,
  );
}

function tables({ sources, destinations }: RelayConfig): Found {
  const { ok, warn } = about(
    "tables",
    "The relay drops packets from senders that are not in sources, and sends only to destinations.",
  );
  const ownUse = sources.filter((source) => !isForwardedSource(source)).length;
  const finding = `${counted(sources.length, "source")}${ownUse > 0 ? ` (${ownUse} for own use)` : ""}, ${counted(destinations.length, "destination")}`;
  if (sources.length > 0 && ownUse === sources.length && destinations.length > 0)
    return warn(
      finding,
      "add a source that is forwarded: shreds of sources for own use are not sent",
    );
  if (sources.length > 0 && destinations.length > 0) return ok(finding);
  const empty = sources.length === 0 ? "relay.sources" : "relay.destinations";
  return warn(finding, `add entries to ${empty}`);
}

/** The machine settings that a configuration requires. */
export function configuredSettingsOf(config: Config): ConfiguredSettings {
  const { relay } = config;
  const addresses = [...relay.listen, ...relay.destinations.map(({ address }) => address)];
  return {
    workers: relay.workers,
    cpus: Array.isArray(relay.cpus) ? relay.cpus : [],
    placesWorkers: relay.cpus !== "none",
    senderThreads: relay.senderThreads,
    lockMemory: relay.lockMemory,
    wait: relay.receive.wait,
    busyPollMicroseconds: relay.receive.busyPollMicroseconds,
    receiveBufferBytes: relay.receive.bufferBytes,
    sendBufferBytes: relay.send.bufferBytes,
    listenAddresses: relay.listen.length,
    connectionsMax: callerFilesOf(config),
    transmit: relay.transmit,
    receive: relay.receive.mode,
    xdpInterfaces: relay.xdpInterfaces ?? [],
    usesIpv6: addresses.some(
      (address) => parseEndpoint(address, { allowPortZero: true }).family === "ipv6",
    ),
  };
}
