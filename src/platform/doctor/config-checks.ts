// The configuration's checks: what a file that is formally right still gets wrong. Pure.
//
// Called by cli/doctor.ts with facts about the files and ports that the configuration names.

import { parseEndpoint } from "../../core/addresses/addresses.ts";
import type { RelayConfig } from "../../core/configuration/configuration.ts";
import type { FileFact, PortFact } from "./file-facts.ts";
import { type Finding, type Found, withMeasure } from "./finding.ts";
import type { Wishes } from "./input.ts";

export interface ConfigFacts {
  readonly files: readonly FileFact[];
  readonly ports: readonly PortFact[];
  /** Why the leader schedule cannot be used; null when it can or none is needed. */
  readonly leadersError: string | null;
  /** Which slots the schedule covers; null when there is none. */
  readonly leadersCover: string | null;
}

const writableByOthers = 0o022;

export function checkConfiguration(relay: RelayConfig, facts: ConfigFacts): Finding[] {
  return [
    authentication(relay, facts),
    ...facts.files.map(fileMode),
    ...facts.ports.map(port),
    tables(relay),
  ].map(withMeasure);
}

function authentication(relay: RelayConfig, facts: ConfigFacts): Found {
  const check = "authentication";
  const why =
    "Without it anybody who can send to a source's address can put forged shreds into the feed.";
  if (relay.authentication === "off") {
    return {
      check,
      level: "warn",
      finding: "AUTHENTICATION IS OFF: forged shreds are passed on",
      why,
      remedy: "set relay.authentication: leader-schedule and relay.leaders: { file: leaders.json }",
    };
  }
  if (facts.leadersError !== null) {
    return {
      check,
      level: "fail",
      finding: facts.leadersError,
      why,
      remedy: "write a schedule as docs/configuration.md describes it (relay.leaders.file)",
    };
  }
  return {
    check,
    level: "ok",
    finding: `shreds are checked${facts.leadersCover === null ? " against the leader schedule" : `; ${facts.leadersCover}`}`,
    why,
    remedy: null,
  };
}

function fileMode({ path, mode }: FileFact): Found {
  const check = "file-mode";
  const why = "Who can write this file decides who is believed and who is sent to.";
  const text = mode === null ? "cannot be looked at" : `mode ${mode.toString(8).padStart(3, "0")}`;
  const others = mode !== null && (mode & writableByOthers) !== 0;
  return {
    check,
    level: others ? "fail" : mode === null ? "warn" : "ok",
    finding: `${path}: ${text}${others ? ", others can write it" : ""}`,
    why,
    remedy: others ? `chmod go-w ${path}` : mode === null ? `ls -l ${path}` : null,
  };
}

function port({ address, error }: PortFact): Found {
  const number = parseEndpoint(address, { allowPortZero: true }).port;
  return {
    check: "listen",
    level: error === null ? "ok" : "fail",
    finding: error === null ? `${address} is free` : `${address}: ${error}`,
    why: "Shreds arrive here.",
    remedy:
      error === null ? null : `ss -ulpn 'sport = :${number}' (who has it), or change relay.listen`,
  };
}

function tables({ sources, destinations }: RelayConfig): Found {
  const check = "tables";
  const why =
    "Packets from senders in no source entry are dropped, and nobody but the destinations is sent to.";
  const finding = `${sources.length} sources, ${destinations.length} destinations`;
  if (sources.length > 0 && destinations.length > 0)
    return { check, level: "ok", finding, why, remedy: null };
  const empty = sources.length === 0 ? "relay.sources" : "relay.destinations";
  return { check, level: "warn", finding, why, remedy: `add entries to ${empty}` };
}

/** What a configuration asks of the machine. */
export function wishesOf(relay: RelayConfig): Wishes {
  const addresses = [...relay.listen, ...relay.destinations.map(({ address }) => address)];
  return {
    workers: relay.workers,
    cpus: relay.cpus ?? [],
    wait: relay.receive.wait,
    busyPollMicroseconds: relay.receive.busyPollMicroseconds,
    receiveBufferBytes: relay.receive.bufferBytes,
    sendBufferBytes: relay.send.bufferBytes,
    listenAddresses: relay.listen.length,
    transmit: relay.transmit,
    usesIpv6: addresses.some(
      (address) => parseEndpoint(address, { allowPortZero: true }).family === "ipv6",
    ),
  };
}
