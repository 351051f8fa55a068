// Options that `race` and `listen` share: feeds, local addresses, and the source of the leader
// schedule.

import { existsSync, readFileSync } from "node:fs";
import {
  formatAddress,
  formatEndpoint,
  parseAddressRange,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import { isMulticastAddress, parseGroup } from "../../core/addresses/multicast-addresses.ts";
import { systemClock } from "../../core/clock.ts";
import { defaultGroupInterface } from "../../core/configuration/relay-sources.ts";
import { counted } from "../../core/counted.ts";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { createLogger } from "../../core/log.ts";
import { RpcClient } from "../../platform/solana/rpc-client.ts";
import { RpcLeaderSchedule } from "../../relay/leaders/rpc-leader-schedule.ts";
import { type LeaderSchedule, loadLeaderSchedule } from "../../relay/leaders/schedule.ts";
import { type Arguments, usageError } from "../terminal/command.ts";
import { messageIn } from "../terminal/log-lines.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface FeedOption {
  readonly name: string;
  readonly port: number;
  /** Each "ip:port" to open; several if any local address is allowed. */
  readonly listen: readonly string[];
  /** Address or range of the sender. */
  readonly source?: string;
  /** A multicast group with all its senders. */
  readonly group?: { readonly address: string; readonly interface: string };
}

/** "233.84.178.1" or "233.84.178.1%eth1". Throws ShredwayError "address_invalid". */
export function parseGroupOnInterface(text: string): {
  readonly address: string;
  readonly interface: string;
} {
  const at = text.indexOf("%");
  const address = parseGroup(at < 0 ? text : text.slice(0, at));
  return { address, interface: at < 0 ? defaultGroupInterface : text.slice(at + 1) };
}

/** A feed "GROUP[%INTERFACE]:PORT"; undefined: the address is not a multicast address. */
function parseGroupFeed(text: string): Pick<FeedOption, "port" | "group"> | undefined {
  const [, address = "", of = "", port = ""] = /^(.*?)(%[^:\]]+)?(\]?:\d+)$/.exec(text) ?? [];
  if (address === "") return undefined;
  const endpoint = parseEndpoint(`${address}${port}`);
  if (!isMulticastAddress(endpoint.bytes)) {
    if (of === "") return undefined;
    throw usageError(`${quote(text)} has an interface; expected it for multicast groups only`);
  }
  const group = parseGroupOnInterface(`${formatAddress(endpoint.bytes)}${of}`);
  return { port: endpoint.port, group };
}

export const feedsMax = 8;
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;

function hasIpv6(): boolean {
  const path = "/proc/net/if_inet6";
  return existsSync(path) && readFileSync(path, "utf8").trim() !== "";
}

/** The wildcard address of each available IP family. */
export function anyAddresses(port: number): string[] {
  // Port 0 would give two sockets different ports, so it opens only one.
  if (port === 0 || !hasIpv6()) return [`0.0.0.0:${port}`];
  return [`0.0.0.0:${port}`, `[::]:${port}`];
}

/** Splits "NAME=rest"; `what` describes the rest for error messages. */
export function splitName(option: string, text: string, what: string): [string, string] {
  const at = text.indexOf("=");
  const name = text.slice(0, Math.max(0, at));
  if (at < 0 || !namePattern.test(name)) {
    throw usageError(
      `--${option}: invalid value ${quote(text)}; expected NAME=${what} with a name of letters, digits, ".", "_" and "-"`,
    );
  }
  return [name, text.slice(at + 1)];
}

/** A feed "NAME=…". Throws a usage error. */
export function parseFeed(text: string): FeedOption {
  const [name, rest] = splitName(
    "feed",
    text,
    "PORT, NAME=ADDRESS:PORT or NAME=GROUP%INTERFACE:PORT, the first two optionally followed by @SENDER",
  );
  const at = rest.lastIndexOf("@");
  const own = at < 0 ? rest : rest.slice(0, at);
  const source = at < 0 ? undefined : rest.slice(at + 1);
  try {
    if (source !== undefined) parseAddressRange(source);
    const ofSource = source === undefined ? {} : { source };
    if (/^\d+$/.test(own)) {
      const { port } = parseEndpoint(`0.0.0.0:${own}`);
      return { name, port, listen: anyAddresses(port), ...ofSource };
    }
    const ofGroup = parseGroupFeed(own);
    if (ofGroup && source !== undefined)
      throw usageError("a multicast group is a feed with all its senders; remove @SENDER");
    if (ofGroup) return { name, listen: [], ...ofGroup };
    const endpoint = parseEndpoint(own);
    return { name, port: endpoint.port, listen: [formatEndpoint(endpoint)], ...ofSource };
  } catch (error) {
    throw usageError(`--feed ${name}: ${messageOf(error)}`);
  }
}

/** Throws a usage error if two feeds have the same name. */
export function checkNames(names: readonly string[], option: string): void {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw usageError(`--${option}: duplicate name ${twice}; expected different names`);
  if (names.length < 2 || names.length > feedsMax) {
    throw usageError(
      `got ${counted(names.length, "feed")}; expected 2 to ${feedsMax} (--${option} NAME=…)`,
    );
  }
}

/** `others`: names of other participants. */
export function readFeeds(args: Arguments, others: readonly string[] = []): FeedOption[] {
  const feeds = args.texts("feed").map(parseFeed);
  checkNames([...feeds.map(({ name }) => name), ...others], "feed");
  for (const [i, feed] of feeds.entries()) {
    const other = feeds.slice(0, i).find(({ port }) => port === feed.port);
    if (!other) continue;
    if (feed.group && other.group && feed.group.address !== other.group.address) continue;
    if (feed.source === undefined || other.source === undefined || feed.source === other.source) {
      throw usageError(
        `--feed ${feed.name}: port ${feed.port} is also the port of ${other.name}; use another port, or different senders for both (@ADDRESS)`,
      );
    }
  }
  return feeds;
}

/** Returns the addresses to open, each once. */
export function addressesOf(feeds: readonly FeedOption[]): string[] {
  return [...new Set(feeds.flatMap(({ listen }) => listen))];
}

export interface LeaderSource {
  /** Undefined if nothing is verified. */
  readonly schedule: LeaderSchedule | undefined;
  /** Publishes every newer schedule from now on. */
  follow(publish: (schedule: LeaderSchedule) => void): void;
  stop(): void;
}

export const leaderOptions = {
  leaders: { value: "FILE", help: "leader schedule (leaders.json): verify signatures" },
  rpc: { value: "URL", help: "read the leader schedule from this node: verify signatures" },
  verify: { help: "refuse to run without verification; requires --leaders or --rpc" },
} as const;

/** Throws ShredwayError "leaders_invalid", "rpc_failed" or "usage". */
export async function openLeaders(args: Arguments, terminal: Terminal): Promise<LeaderSource> {
  args.exclusive("leaders", "rpc");
  const file = args.text("leaders");
  const url = args.text("rpc");
  if (args.flag("verify") && file === undefined && url === undefined)
    throw usageError("--verify requires --leaders FILE or --rpc URL");
  if (url !== undefined) return leadersFromNode(url, terminal);
  const schedule = file === undefined ? undefined : loadLeaderSchedule(file);
  return { schedule, follow: () => undefined, stop: () => undefined };
}

/** Follows the leader schedule of a node. Throws ShredwayError "rpc_failed" or "usage". */
export async function leadersFromNode(url: string, terminal: Terminal): Promise<LeaderSource> {
  let newest: LeaderSchedule | undefined;
  let publishTo: ((schedule: LeaderSchedule) => void) | undefined;
  let failure = "";
  let isStarted = false;
  let node: RpcClient;
  try {
    node = new RpcClient(url);
  } catch (error) {
    throw usageError(`--rpc: ${messageOf(error)}`);
  }
  const leaders = new RpcLeaderSchedule({
    node,
    clock: systemClock,
    log: createLogger({
      stream: {
        write: (line) => {
          failure = messageIn(line);
          if (isStarted) terminal.note(failure);
        },
      },
    }),
    publish: (schedule) => {
      newest = schedule;
      publishTo?.(schedule);
    },
  });
  await leaders.start();
  isStarted = true;
  if (!newest) {
    leaders.stop();
    throw new ShredwayError("rpc_failed", `--rpc: ${failure}`);
  }
  return {
    schedule: newest,
    follow: (publish) => {
      publishTo = publish;
    },
    stop: () => leaders.stop(),
  };
}
