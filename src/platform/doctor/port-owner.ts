// The process that uses a local port, from /proc: the service of this configuration, or another one.
//
// Called by system.ts and service-facts.ts for a port that is in use. Other users' processes are
// visible only to root; their ports have an unknown owner.

import { readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { basename, resolve } from "node:path";

export interface PortOwner {
  readonly pid: number;
  /** Name of its program. */
  readonly program: string;
  /** It is `shredway start` with the same configuration file. */
  readonly isOwnService: boolean;
}

function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise; // the process has ended, or belongs to another user
  }
}

/** Socket numbers (inodes) that are bound to the port; for TCP, those that listen. */
function socketsOn(protocol: "udp" | "tcp", port: number): Set<string> {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const listening = protocol === "tcp" ? "0A" : "07";
  const found = new Set<string>();
  for (const family of ["", "6"]) {
    const table = attempt(() => readFileSync(`/proc/net/${protocol}${family}`, "utf8"), "");
    for (const line of table.split("\n")) {
      const fields = line.trim().split(/\s+/);
      const inode = fields[9];
      if (!fields[1]?.endsWith(suffix) || fields[3] !== listening || inode === undefined) continue;
      found.add(`socket:[${inode}]`);
    }
  }
  return found;
}

function holds(pid: string, sockets: ReadonlySet<string>): boolean {
  const folder = `/proc/${pid}/fd`;
  return attempt(() => readdirSync(folder), []).some((fd) =>
    sockets.has(attempt(() => readlinkSync(`${folder}/${fd}`), "")),
  );
}

/** The configuration file of a `shredway start` process, without links; null: another program. */
function configFileOf(pid: string, words: readonly string[]): string | null {
  const start = words.indexOf("start");
  if (start < 0) return null;
  const at = words.findIndex((word, i) => i > start && /^--config(=|$)/.test(word));
  if (at < 0) return null;
  const file = words[at]?.includes("=") ? words[at]?.slice("--config=".length) : words[at + 1];
  const folder = attempt(() => readlinkSync(`/proc/${pid}/cwd`), "/");
  return file === undefined ? null : attempt(() => realpathSync(resolve(folder, file)), null);
}

/** `configFile`: the configuration that is checked. null: unknown, or nobody uses the port. */
export function portOwner(
  protocol: "udp" | "tcp",
  port: number,
  configFile: string,
): PortOwner | null {
  const sockets = socketsOn(protocol, port);
  if (port === 0 || sockets.size === 0) return null;
  const pid = attempt(() => readdirSync("/proc"), []).find(
    (name) => /^\d+$/.test(name) && holds(name, sockets),
  );
  if (pid === undefined) return null;
  const words = attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"), "").split("\0");
  const own = attempt(() => realpathSync(configFile), configFile);
  return {
    pid: Number(pid),
    program: attempt(
      () => readFileSync(`/proc/${pid}/comm`, "utf8").trim(),
      basename(words[0] ?? ""),
    ),
    isOwnService: configFileOf(pid, words) === own,
  };
}
