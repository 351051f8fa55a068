// The checks of the kernel: losses since boot, busy polling, the clock. Pure.
//
// A part of checks.ts.

import { nodeVersionError, supportedNode } from "../../core/node-version.mjs";
import { about, type Found } from "./finding.ts";
import type { Input } from "./input.ts";
import { isKernelSince } from "./reader.ts";

const squeezedShareMax = 1e-3;
const lostShareMax = 1e-5;
const swappinessMax = 10;
const clockOffsetMaxSeconds = 0.001;
const lockedMemoryLeast = 64 << 20;
/** From this version on, memory of programs counts against the control group. */
const unchargedSince = [5, 11] as const;

export function sysctl(key: string, value: number): string {
  return `sysctl -w ${key}=${value} && echo '${key} = ${value}' >> /etc/sysctl.d/60-shredway.conf`;
}

export function busyPoll({ facts, wishes }: Input): Found {
  const { ok, warn } = about(
    "busy-poll",
    "A worker that waits in the kernel polls the card there only when net.core.busy_poll says so.",
  );
  const { busyPoll: now } = facts.kernelPart;
  const wish = wishes.busyPollMicroseconds;
  if (wish === 0) return ok("relay.receive.busyPollMicroseconds is 0: not asked for");
  if (wishes.wait !== "block" || now === null || now > 0)
    return ok(`net.core.busy_poll is ${now ?? "unknown"}, wait: ${wishes.wait}`);
  return warn(
    `relay.receive.busyPollMicroseconds is ${wish}, but net.core.busy_poll is 0`,
    sysctl("net.core.busy_poll", wish),
  );
}

export function softnet({ facts }: Input): Found {
  const { ok, warn } = about(
    "softnet",
    "The kernel takes packets from the card in rounds: what a round leaves waits, what finds the queue full is dropped.",
  );
  const { softnet: counts } = facts.kernelPart;
  if (!counts) return ok("/proc/net/softnet_stat cannot be read");
  const { taken, dropped, squeezed } = counts;
  const finding = `since the boot: ${taken} packets taken, ${dropped} dropped, ${squeezed} rounds cut short`;
  if (dropped > 0) return warn(finding, sysctl("net.core.netdev_max_backlog", 16_384));
  if (squeezed <= taken * squeezedShareMax) return ok(finding);
  return warn(finding, sysctl("net.core.netdev_budget", 600));
}

export function udpDrops({ facts, wishes }: Input): Found {
  const { ok, warn } = about(
    "udp-drops",
    "A datagram that finds its socket's buffer full is lost. The count is of all programs since the boot.",
  );
  const { udp } = facts.kernelPart;
  if (!udp) return ok("/proc/net/snmp cannot be read");
  const finding = `since the boot: ${udp.delivered} datagrams delivered, ${udp.bufferFull} lost to full buffers`;
  if (udp.bufferFull <= udp.delivered * lostShareMax) return ok(finding);
  return warn(
    finding,
    `${sysctl("net.core.rmem_max", wishes.receiveBufferBytes)}, then more relay.workers if the count still rises`,
  );
}

export function swap({ facts }: Input): Found {
  const { ok, warn } = about(
    "swap",
    "A page of recent shreds that was swapped out costs milliseconds when it is needed.",
  );
  const { swappiness } = facts.kernelPart;
  const text = `vm.swappiness is ${swappiness ?? "unknown"}`;
  if (swappiness === null || swappiness <= swappinessMax) return ok(text);
  return warn(text, sysctl("vm.swappiness", 1));
}

export function lockedMemory({ facts, wishes }: Input): Found {
  const { ok, warn } = about(
    "locked-memory",
    "Linux before 5.11 charges the clones' program and its memory to this limit.",
  );
  const isCharged = isKernelSince(facts.kernel, unchargedSince) === false;
  const { lockedMemoryMax: limit } = facts.kernelPart;
  if (wishes.transmit === "socket" || !isCharged || limit === null || limit >= lockedMemoryLeast)
    return ok(wishes.transmit === "socket" ? "not needed for sockets" : "nothing is charged to it");
  return warn(`limit ${limit} bytes`, "in the systemd unit: LimitMEMLOCK=infinity");
}

/** The offset of the clock from the time of other machines. */
export function clockOffset({ facts, probes }: Input): Found {
  const { ok, warn } = about(
    "clock-offset",
    "Lead times, landings and proofs are compared with the clocks of other machines.",
  );
  const offset = facts.kernelPart.clockOffsetSeconds;
  const estimated = probes.kernelClock?.synchronised
    ? probes.kernelClock.estimatedErrorUs / 1e6
    : null;
  const off = offset ?? estimated;
  if (off === null) return ok("nobody here knows how far the clock is off");
  const who = offset === null ? "the kernel estimates" : "chrony measured";
  const finding = `${who} an error of ${Math.round(off * 1e6)} µs`;
  if (off <= clockOffsetMaxSeconds) return ok(finding);
  return warn(
    finding,
    "take nearer time servers into /etc/chrony/chrony.conf (server NAME iburst), then systemctl restart chrony",
  );
}

export function nodeVersion({ probes }: Input): Found {
  const { ok, fail } = about(
    "node",
    `The program is tested with ${supportedNode()}, and its web server has binaries for these.`,
  );
  const finding = `Node ${probes.nodeVersion}`;
  if (nodeVersionError(probes.nodeVersion) === null) return ok(finding);
  const remedy = `install ${supportedNode()}, then run npm ci`;
  return fail(finding, remedy);
}
