// The UDP sockets of this process with their options, read from the kernel by
// udp-socket-options.cc, compiled with the installed compiler.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("udp-socket-options.cc", import.meta.url));

/** IP_PMTUDISC_OMIT and IPV6_PMTUDISC_OMIT of linux/in.h. */
export const omit = 5;

export interface UdpSocketState {
  readonly inode: number;
  readonly family: number;
  readonly mtuDiscover: number;
  /** -1: an IPv4 socket. */
  readonly mtuDiscoverIpv6: number;
  readonly reuseAddress: number;
}

/** null if this process may not be traced, which its own child does here. */
export function udpSockets(): UdpSocketState[] | null {
  const folder = mkdtempSync(join(tmpdir(), "shredway-options-"));
  try {
    const program = join(folder, "udp-socket-options");
    execFileSync("c++", ["-std=c++20", "-O1", "-o", program, source]);
    const { status, stdout } = spawnSync(program, [String(process.pid)], { encoding: "utf8" });
    if (status === 77) return null;
    if (status !== 0) throw new Error(`udp-socket-options: expected exit code 0, got ${status}`);
    return stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => {
        const [inode = 0, family = 0, mtuDiscover = 0, mtuDiscoverIpv6 = 0, reuseAddress = 0] = line
          .split(" ")
          .map(Number);
        return { inode, family, mtuDiscover, mtuDiscoverIpv6, reuseAddress };
      });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The sockets in `now` that are new. */
export function newSockets(
  before: readonly UdpSocketState[],
  now: readonly UdpSocketState[],
): UdpSocketState[] {
  const known = new Set(before.map(({ inode }) => inode));
  return now.filter(({ inode }) => !known.has(inode));
}
