// What `race` and `listen` take alike: feeds, own addresses, and where the leader schedule comes from.

import { existsSync, readFileSync } from "node:fs";
import {
  formatEndpoint,
  parseAddressRange,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import { systemClock } from "../../core/clock.ts";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { createLogger } from "../../core/log.ts";
import { isObject } from "../../core/values.ts";
import { RpcClient } from "../../platform/solana/rpc-client.ts";
import { RpcLeaderSchedule } from "../../relay/leaders/rpc-leader-schedule.ts";
import { type LeaderSchedule, loadLeaderSchedule } from "../../relay/leaders/schedule.ts";
import { type Arguments, usageError } from "../terminal/command.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface FeedOption {
  readonly name: string;
  readonly port: number;
  /** "ip:port" to open; several where any address will do. */
  readonly listen: readonly string[];
  /** Sender's address or range. */
  readonly source?: string;
}

export const feedsMax = 8;
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;

function hasIpv6(): boolean {
  const path = "/proc/net/if_inet6";
  return existsSync(path) && readFileSync(path, "utf8").trim() !== "";
}

/** All own addresses, of both families where there are two. */
export function anyAddresses(port: number): string[] {
  // Two sockets cannot be told to choose the same free port.
  if (port === 0 || !hasIpv6()) return [`0.0.0.0:${port}`];
  return [`0.0.0.0:${port}`, `[::]:${port}`];
}

/** "NAME=rest" taken apart; `what` says what the rest is. */
export function splitName(option: string, text: string, what: string): [string, string] {
  const at = text.indexOf("=");
  const name = text.slice(0, Math.max(0, at));
  if (at < 0 || !namePattern.test(name)) {
    throw usageError(
      `--${option}: expected NAME=${what} with a name of letters, digits, ".", "_" and "-", got ${quote(text)}`,
    );
  }
  return [name, text.slice(at + 1)];
}

function parseFeed(text: string): FeedOption {
  const [name, rest] = splitName(
    "feed",
    text,
    "PORT or NAME=ADDRESS:PORT, and @SENDER if you like",
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
    const endpoint = parseEndpoint(own);
    return { name, port: endpoint.port, listen: [formatEndpoint(endpoint)], ...ofSource };
  } catch (error) {
    throw usageError(`--feed ${name}: ${messageOf(error)}`);
  }
}

/** Throws a usage error when two feeds could not be told apart. */
export function checkNames(names: readonly string[], option: string): void {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw usageError(`--${option}: expected every name once, got ${twice} twice`);
  if (names.length < 2 || names.length > feedsMax) {
    throw usageError(`expected 2 to ${feedsMax} feeds (--${option} NAME=…), got ${names.length}`);
  }
}

export function readFeeds(args: Arguments): FeedOption[] {
  const feeds = args.texts("feed").map(parseFeed);
  checkNames(
    feeds.map(({ name }) => name),
    "feed",
  );
  for (const [i, feed] of feeds.entries()) {
    const other = feeds.slice(0, i).find(({ port }) => port === feed.port);
    if (!other) continue;
    if (feed.source === undefined || other.source === undefined || feed.source === other.source) {
      throw usageError(
        `--feed ${feed.name}: expected another port than ${other.name} has, or different senders for both (@ADDRESS), got port ${feed.port} twice`,
      );
    }
  }
  return feeds;
}

/** What every address is opened for once. */
export function addressesOf(feeds: readonly FeedOption[]): string[] {
  return [...new Set(feeds.flatMap(({ listen }) => listen))];
}

export interface LeaderSource {
  /** Undefined: nothing is verified. */
  readonly schedule: LeaderSchedule | undefined;
  /** From now on, whenever there is a newer one. */
  follow(publish: (schedule: LeaderSchedule) => void): void;
  stop(): void;
}

export const leaderOptions = {
  leaders: { value: "FILE", help: "leader schedule (leaders.json): verify signatures" },
  rpc: { value: "URL", help: "ask this node for the leader schedule: verify signatures" },
  verify: { help: "refuse to run without verifying: needs --leaders or --rpc" },
} as const;

/** Throws ShredwayError "leaders_invalid", "rpc_failed" or "usage". */
export async function openLeaders(args: Arguments, terminal: Terminal): Promise<LeaderSource> {
  args.exclusive("leaders", "rpc");
  const file = args.text("leaders");
  const url = args.text("rpc");
  if (args.flag("verify") && file === undefined && url === undefined)
    throw usageError("--verify: expected --leaders FILE or --rpc URL with it");
  if (url !== undefined) return fromNode(url, terminal);
  const schedule = file === undefined ? undefined : loadLeaderSchedule(file);
  return { schedule, follow: () => undefined, stop: () => undefined };
}

/** What a line of the log says. */
function messageIn(line: string): string {
  const entry: unknown = JSON.parse(line);
  return isObject(entry) ? String(entry["msg"]) : line;
}

async function fromNode(url: string, terminal: Terminal): Promise<LeaderSource> {
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
