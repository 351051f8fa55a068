// The real machine: reads files, runs a few read-only tools, opens and closes sockets.
//
// Called only by src/tools/commands/doctor.ts. Only `settingFiles` and `loadTun` change something.

import { spawnSync } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import { classifyAddress } from "../../core/addresses/address-classes.ts";
import { formatAddress, parseEndpoint, withPortZero } from "../../core/addresses/addresses.ts";
import type { Config } from "../../core/configuration/configuration.ts";
import { messageOf } from "../../core/errors.ts";
import { describeNative, kernelClock } from "../../relay/data-plane/native.ts";
import { Relay } from "../../relay/data-plane/relay.ts";
import { openUdpSocket } from "../../relay/data-plane/udp-socket.ts";
import { readXdpSupport } from "../../relay/data-plane/xdp-support.ts";
import { coverageText, loadLeaderSchedule } from "../../relay/leaders/schedule.ts";
import { fileReader } from "../../relay/worker-cpu-facts.ts";
import type { SettingFiles } from "./changes.ts";
import type { ConfigFacts } from "./config-checks.ts";
import type { SystemReader } from "./facts.ts";
import { fileFact, type KeyedPortFact, type PortFact, portFault } from "./file-facts.ts";
import type { ConfiguredSettings, Probes } from "./input.ts";

const toolTimeoutMs = 3000;

export const systemReader: SystemReader = {
  ...fileReader,
  run(command, ...args) {
    const done = spawnSync(command, args, { encoding: "utf8", timeout: toolTimeoutMs });
    return done.status === 0 ? done.stdout : null;
  },
};

/** Kernel settings as files. A refused write throws. */
export const settingFiles: SettingFiles = {
  read: (path) => systemReader.readText(path) ?? undefined,
  write: (path, value) => writeFileSync(path, value, { mode: 0o600 }),
  replace: (path, text) => {
    const next = `${path}.${process.pid}`;
    writeFileSync(next, text, { mode: 0o600, flush: true });
    renameSync(next, path);
  },
};

/** Loads the kernel module of clones' private interface; null: done, or the reason why not. */
export function loadTun(): string | null {
  const done = spawnSync("modprobe", ["tun"], { encoding: "utf8", timeout: toolTimeoutMs });
  if (done.status === 0) return null;
  return done.error?.message ?? (done.stderr.trim() || `exit code ${done.status}`);
}

/** Probes the addon, the receive buffer of a socket, AF_XDP, and clone if configured. */
export function probe(configured: ConfiguredSettings, cards: readonly string[]): Probes {
  const nothing = {
    grantedReceiveBufferBytes: null,
    cloneRefusal: null,
    xdp: { refusal: null, receiveRefusal: null, interfaces: [] },
    priorityRefusal: null,
    memoryLockRefusal: null,
    ed25519: "none",
    sha256Accelerated: false,
    kernelClock: null,
    nodeVersion: process.versions.node,
  };
  try {
    const { ed25519, sha256Accelerated } = describeNative();
    const tried = tryRelay(configured);
    const { xdpInterfaces } = configured;
    return {
      ...nothing,
      ...tried,
      addonError: null,
      xdp: readXdpSupport(xdpInterfaces.length > 0 ? xdpInterfaces : cards),
      ed25519,
      sha256Accelerated,
      kernelClock: kernelClock(),
    };
  } catch (error) {
    return { ...nothing, addonError: messageOf(error) };
  }
}

function tryRelay({
  receiveBufferBytes,
  transmit,
  lockMemory,
}: ConfiguredSettings): Pick<
  Probes,
  "grantedReceiveBufferBytes" | "cloneRefusal" | "priorityRefusal" | "memoryLockRefusal"
> {
  const relay = Relay.open({
    listen: ["127.0.0.1:0"],
    workers: 1,
    tiers: ["any"],
    authentication: "off",
    shredVersion: 0,
    receive: { bufferBytes: receiveBufferBytes },
    // A relay with AF_XDP would take queues of the card, possibly from a running service.
    transmit: transmit === "auto" ? "automatic" : transmit === "xdp" ? "socket" : transmit,
    lockMemory,
    prefault: false,
  });
  relay.close();
  return {
    grantedReceiveBufferBytes: relay.grantedReceiveBufferBytes / 2, // the kernel returns twice the size
    cloneRefusal: relay.transmit.mode === "socket" ? relay.transmit.refusal : null,
    priorityRefusal: relay.priorityRefusal,
    memoryLockRefusal: relay.memoryLock.refusal,
  };
}

export function readConfigFacts(
  file: string,
  config: Pick<Config, "relay" | "quic" | "http" | "delivery" | "streams">,
): ConfigFacts {
  const { relay } = config;
  const leadersFile = relay.leaders?.file;
  return {
    files: [file, ...(leadersFile === undefined ? [] : [leadersFile])].map(fileFact),
    ports: udpPortFacts(config, file),
    ...leadersFacts(relay.authentication === "leader-schedule" ? leadersFile : undefined),
  };
}

function leadersFacts(
  file: string | undefined,
): Pick<ConfigFacts, "leadersError" | "leadersCover"> {
  if (file === undefined) return { leadersError: null, leadersCover: null };
  try {
    return { leadersError: null, leadersCover: coverageText(loadLeaderSchedule(file)) };
  } catch (error) {
    return { leadersError: messageOf(error), leadersCover: null };
  }
}

/** False for a wildcard address with port 0, which every machine has. */
function isChosen(address: string): boolean {
  const { bytes, port } = parseEndpoint(address, { allowPortZero: true });
  return port !== 0 || classifyAddress(bytes) !== "unspecified";
}

function udpPortFacts(
  {
    relay,
    quic,
    http,
    delivery,
    streams,
  }: Pick<Config, "relay" | "quic" | "http" | "delivery" | "streams">,
  file: string,
): KeyedPortFact[] {
  const at = (key: string, addresses: readonly string[]): KeyedPortFact[] =>
    addresses.map((address) => ({ ...portFact(address, file), key }));
  const chosenAt = (key: string, address: string): KeyedPortFact[] =>
    at(key, [address].filter(isChosen));
  const quicKeys = ["listen", "protectedListen", "swqosOnlyListen"] as const;
  const proofKeys = http ? (["listen", "listenIpv6"] as const) : [];
  const push = streams?.push;
  const { source } = relay.send;
  return [
    ...at("relay.listen", relay.listen),
    ...at("relay.send.source", source === undefined ? [] : [withPortZero(source)]),
    ...quicKeys.flatMap((key) => at(`quic.${key}`, quic?.[key] ?? [])),
    ...proofKeys.flatMap((key) => chosenAt(`delivery.proof.${key}`, delivery.proof[key])),
    ...(push ? chosenAt("streams.push.from", push.from) : []),
    ...(push ? chosenAt("streams.push.fromIpv6", push.fromIpv6) : []),
  ];
}

function portFact(address: string, file: string): PortFact {
  const endpoint = parseEndpoint(address, { allowPortZero: true });
  try {
    openUdpSocket({ host: formatAddress(endpoint.bytes), port: endpoint.port }).close();
    return { address, error: null };
  } catch (error) {
    return { address, ...portFault(endpoint, error, { protocol: "udp", file }) };
  }
}
