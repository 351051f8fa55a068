// `shredway sources`: manages the permitted senders of shreds in the configuration file.
//
// Reads and writes the file; a running service applies it at its next reload (SIGHUP). It writes
// only files that the service accepts. The action `groups` is in survey/source-groups.ts.

import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import {
  isInRange,
  parseAddress,
  parseAddressRange,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import {
  configFileBytesMax,
  loadConfig,
  type RelayConfig,
} from "../../core/configuration/configuration.ts";
import { type WrittenSource, withoutSource, withSource } from "../../core/configuration/edit.ts";
import {
  defaultGroupInterface,
  defaultGroupPort,
  describeOrigin,
  isForwardedSource,
  isMulticastSource,
} from "../../core/configuration/relay-sources.ts";
import { defaultTiers } from "../../core/configuration/schema-relay.ts";
import { counted } from "../../core/counted.ts";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { readTextFile } from "../../core/files.ts";
import { surveyGroups, surveySeconds } from "../survey/source-groups.ts";
import { readAction } from "../terminal/actions.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { table, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";

type Source = RelayConfig["sources"][number];

const actions = {
  list: { help: "list every source with its tier and addresses" },
  find: { argument: "ADDRESS", help: "show the source of a packet from this address" },
  add: { argument: "NAME", help: "add a source at the end of the list" },
  remove: { argument: "NAME", help: "remove the source" },
  groups: { help: "receive the multicast groups of an interface, and show what each delivers" },
} as const;

/** Kinds that `add` writes. A source of kind shredstream needs a mapping, which no option gives. */
const addedKinds = ["udp", "multicast"] as const;

/** The kind to which an option of `add` belongs; the other options belong to every kind. */
const kindOfOption = { address: "udp", group: "multicast", interface: "multicast" } as const;

const options = {
  config: {
    actions: ["list", "find", "add", "remove"],
    value: "FILE",
    help: "the service's configuration",
  },
  address: { actions: ["add"], value: "RANGE", help: "sender address or range" },
  port: {
    actions: ["add", "find", "groups"],
    value: "PORT",
    help: `the local port that receives the packets (find: default every port of relay.listen; multicast groups: ${defaultGroupPort})`,
  },
  tier: { actions: ["add"], value: "TIER", choices: defaultTiers, help: "a tier of relay.tiers" },
  kind: { actions: ["add"], value: "KIND", choices: addedKinds, help: "default: udp" },
  group: {
    actions: ["add"],
    value: "GROUP",
    repeated: true,
    help: "a multicast group (default: every group with a route)",
  },
  interface: {
    actions: ["add", "groups"],
    value: "NAME",
    help: `interface of the groups (default: ${defaultGroupInterface})`,
  },
  "own-use": { actions: ["add"], help: "never forward what only this source delivered" },
  seconds: {
    actions: ["groups"],
    value: "S",
    help: `receive for this time, at most ${surveySeconds.max} (default ${surveySeconds.default})`,
  },
  json: {
    help: "print one JSON object; groups: one a second, and one with final: true at the end",
  },
} satisfies Command["options"];

export const sources: Command = {
  name: "sources",
  summary: "list, find, add and remove sources of shreds, and survey multicast groups",
  usage: [
    "sources list --config FILE",
    "sources find ADDRESS [--port PORT] --config FILE",
    "sources add NAME --tier TIER [--address RANGE] [--port PORT] [--own-use] --config FILE",
    "sources add NAME --tier TIER --kind multicast [--group GROUP …] [--interface NAME] [--port PORT] --config FILE",
    "sources remove NAME --config FILE",
    "sources groups [--interface NAME] [--port PORT] [--seconds S] [--json]",
  ],
  description: `
Manages relay.sources, the permitted senders of shreds, in the configuration file. add and remove
change the file and preserve its comments. They write only what the service accepts. A running service
applies the file on a reload (SIGHUP).

groups joins every multicast group that has a route through the interface, also beside a running service,
and shows what each one delivers: shreds, other datagrams, or nothing. It ends after --seconds or at
Ctrl-C. Exit code 1: no group delivers shreds.`,
  actions,
  options,
  examples: [
    "shredway sources list --config shredway.yaml",
    "shredway sources find 192.0.2.77 --config shredway.yaml",
    "shredway sources add ams-a --address 198.51.100.0/28 --tier tier-1 --config shredway.yaml",
    "shredway sources remove ams-a --config shredway.yaml",
    "shredway sources groups --interface doublezero1 --seconds 30",
  ],
  run,
};

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const { action, argument: id } = readAction(args, {
    name: "sources",
    actions,
    options,
    argument: { what: "id of a source (find: an address)", example: "fra-a" },
  });
  if (action === "groups") return surveyGroups(args, terminal);
  const file = args.required("config", "shredway.yaml");
  switch (action) {
    case "list":
      return list(args, terminal, loadConfig(file).relay);
    case "find":
      return find(args, terminal, { relay: loadConfig(file).relay, text: id });
    case "add":
      return change(args, terminal, (text) => withSource(text, file, addedSource(args, id)));
    case "remove":
      return change(args, terminal, (text) => withoutSource(text, file, id));
  }
}

function fromOf(source: Source): string {
  const { port, shredstream } = source;
  if (shredstream)
    return `block engine ${new URL(shredstream.url).host} to ${port === undefined ? "the port of relay.listen" : `port ${port}`}`;
  return describeOrigin(source);
}

function useOf(source: Source): string {
  return isForwardedSource(source) ? "forwarded" : "own use";
}

function list(args: Arguments, terminal: Terminal, relay: RelayConfig): number {
  if (args.flag("json")) {
    terminal.line(toJson({ tiers: relay.tiers, sources: relay.sources }));
    return exitCodes.ok;
  }
  if (relay.sources.length === 0) {
    terminal.note("no sources yet: all packets are dropped");
    return exitCodes.ok;
  }
  const rows = relay.sources.map((source) => [
    source.name,
    source.tier,
    useOf(source),
    fromOf(source),
  ]);
  const titles = ["NAME", "TIER", "USE", "PACKETS FROM"].map((title) => ({ title }));
  for (const line of table(titles, rows)) terminal.line(line);
  return exitCodes.ok;
}

/** Selects as the relay does: the longest prefix first, then a source with a port. */
export function sourceOf<T extends Pick<Source, "address" | "port">>(
  all: readonly T[],
  address: Uint8Array,
  port: number | undefined,
): T | undefined {
  const bitsOf = (source: T): number =>
    source.address === undefined ? -1 : parseAddressRange(source.address).prefixBits;
  return all
    .filter((source) => !isMulticastSource(source))
    .filter((source) => source.port === undefined || source.port === port)
    .filter(
      (source) =>
        source.address === undefined || isInRange(address, parseAddressRange(source.address)),
    )
    .toSorted(
      (a, b) =>
        bitsOf(b) - bitsOf(a) || Number(b.port !== undefined) - Number(a.port !== undefined),
    )
    .at(0);
}

function find(
  args: Arguments,
  terminal: Terminal,
  { relay, text }: { readonly relay: RelayConfig; readonly text: string },
): number {
  let address: Uint8Array;
  try {
    address = parseAddress(text);
  } catch (error) {
    throw usageError(`find: ${messageOf(error)}`);
  }
  const byPort = portsOf(args, relay).map((port) => ({
    port,
    source: sourceOf(relay.sources, address, port) ?? null,
  }));
  const [first] = byPort;
  const isSame = byPort.every(({ source }) => source === first?.source);
  const source = (isSame && first?.source) || null;
  if (args.flag("json")) terminal.line(toJson({ address: text, source, ports: byPort }));
  else if (isSame) terminal.line(foundLine(text, source));
  else for (const one of byPort) terminal.line(`port ${one.port}: ${foundLine(text, one.source)}`);
  return byPort.some((one) => one.source) ? exitCodes.ok : exitCodes.failed;
}

/** Own ports that can receive the packet: --port, or those of relay.listen; 0 is not known yet. */
function portsOf(args: Arguments, { listen }: RelayConfig): number[] {
  const given = args.integer("port", { min: 1, max: 65_535 });
  if (given !== undefined) return [given];
  const ports = listen.map((one) => parseEndpoint(one, { allowPortZero: true }).port);
  return [...new Set(ports)];
}

function foundLine(address: string, source: Source | null): string {
  return source
    ? `${address} is ${source.name}, ${source.tier}, ${useOf(source)} (${describeOrigin(source)})`
    : `no source matches ${address}: its packets are dropped`;
}

function addedKind(args: Arguments): (typeof addedKinds)[number] {
  const text = args.text("kind") ?? "udp";
  const kind = addedKinds.find((one) => one === text);
  if (kind !== undefined) return kind;
  const remedy =
    text === "shredstream" ? "; write a source of kind shredstream into the file itself" : "";
  throw usageError(
    `--kind: invalid value ${quote(text)}; expected one of ${addedKinds.join(", ")}${remedy}`,
  );
}

/** An option that the kind ignores would give a source that the operator did not ask for. */
function refuseOptionsOfOtherKinds(args: Arguments, kind: string): void {
  for (const [option, expected] of Object.entries(kindOfOption)) {
    if (kind === expected || !args.given(option)) continue;
    throw usageError(
      `add: unexpected option --${option} with kind ${kind}; expected it only with kind ${expected}; ` +
        `remove --${option}, or give --kind ${expected}`,
    );
  }
}

function addedSource(args: Arguments, name: string): WrittenSource {
  const tier = args.required("tier", "tier-1");
  const address = args.text("address");
  const port = args.integer("port", { min: 1, max: 65_535 });
  const kind = addedKind(args);
  refuseOptionsOfOtherKinds(args, kind);
  const groups = args.texts("group");
  const ofInterface = args.text("interface");
  if (kind === "udp" && address === undefined && port === undefined) {
    throw usageError("add: --address and --port are missing; expected at least one of them");
  }
  return {
    name,
    ...(kind === "multicast" && { kind }),
    ...(groups.length > 0 && { groups }),
    ...(ofInterface !== undefined && { interface: ofInterface }),
    ...(address !== undefined && { address }),
    ...(port !== undefined && { port }),
    tier,
    ...(args.flag("own-use") && { forward: false }),
  };
}

function change(args: Arguments, terminal: Terminal, edit: (text: string) => string): number {
  // Resolve links, so that the file itself is replaced and not the link.
  const given = args.required("config", "shredway.yaml");
  const text = edit(readTextFile(given, configFileBytesMax, "config_invalid"));
  replaceFile(realpathSync(given), text);
  const written = loadConfig(given).relay.sources;
  if (args.flag("json")) terminal.line(toJson({ sources: written }));
  else
    terminal.line(
      `${quote(given)} now has ${counted(written.length, "source")}; reload the service (SIGHUP) to apply them`,
    );
  return exitCodes.ok;
}

/** Atomic, also on power failure; preserves mode and owner. */
function replaceFile(path: string, text: string): void {
  const beside = `${path}.new-${process.pid}`;
  try {
    const { mode, uid, gid } = statSync(path);
    const file = openSync(beside, "wx", 0o600);
    try {
      fchownSync(file, uid, gid);
      fchmodSync(file, mode & 0o777);
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(beside, path);
  } catch (cause) {
    try {
      unlinkSync(beside);
    } catch {
      // The temporary file does not exist or is already renamed.
    }
    throw new ShredwayError("config_invalid", `cannot write ${path}: ${messageOf(cause)}`, {
      cause,
    });
  }
}
