// The checks of the kernel's part: what it lost since the boot, how it looks for packets, its clock. Pure.
//
// A part of checks.ts.

import { nodeVersionError, supportedNode } from "../../core/node-version.mjs";
import { type Found, ok } from "./finding.ts";
import type { Input } from "./input.ts";

const squeezedShareMax = 1e-3;
const lostShareMax = 1e-5;
const swappinessMax = 10;
const clockOffsetMaxSeconds = 0.001;
const lockedMemoryLeast = 64 << 20;

export function sysctl(key: string, value: number): string {
  return `sysctl -w ${key}=${value} && echo '${key} = ${value}' >> /etc/sysctl.d/60-shredway.conf`;
}

export function busyPoll({ facts, wishes }: Input): Found {
  const check = "busy-poll";
  const why =
    "A worker that waits in the kernel polls the card there only when net.core.busy_poll says so.";
  const { busyPoll: now } = facts.kernelPart;
  const wish = wishes.busyPollMicroseconds;
  if (wish === 0) return ok(check, "relay.receive.busyPollMicroseconds is 0: not asked for", why);
  if (wishes.wait !== "block" || now === null || now > 0)
    return ok(check, `net.core.busy_poll is ${now ?? "unknown"}, wait: ${wishes.wait}`, why);
  return {
    check,
    level: "warn",
    finding: `relay.receive.busyPollMicroseconds is ${wish}, but net.core.busy_poll is 0`,
    why,
    remedy: sysctl("net.core.busy_poll", wish),
  };
}

export function softnet({ facts }: Input): Found {
  const check = "softnet";
  const why =
    "The kernel takes packets from the card in rounds: what a round leaves waits, what finds the queue full is dropped.";
  const { softnet: counts } = facts.kernelPart;
  if (!counts) return ok(check, "/proc/net/softnet_stat cannot be read", why);
  const { taken, dropped, squeezed } = counts;
  const finding = `since the boot: ${taken} packets taken, ${dropped} dropped, ${squeezed} rounds cut short`;
  if (dropped > 0)
    return {
      check,
      level: "warn",
      finding,
      why,
      remedy: sysctl("net.core.netdev_max_backlog", 16_384),
    };
  if (squeezed <= taken * squeezedShareMax) return ok(check, finding, why);
  return { check, level: "warn", finding, why, remedy: sysctl("net.core.netdev_budget", 600) };
}

export function udpDrops({ facts, wishes }: Input): Found {
  const check = "udp-drops";
  const why =
    "A datagram that finds its socket's buffer full is lost. The count is of all programs since the boot.";
  const { udp } = facts.kernelPart;
  if (!udp) return ok(check, "/proc/net/snmp cannot be read", why);
  const finding = `since the boot: ${udp.delivered} datagrams delivered, ${udp.bufferFull} lost to full buffers`;
  if (udp.bufferFull <= udp.delivered * lostShareMax) return ok(check, finding, why);
  return {
    check,
    level: "warn",
    finding,
    why,
    remedy: `${sysctl("net.core.rmem_max", wishes.receiveBufferBytes)}, then more relay.workers if the count still rises`,
  };
}

export function swap({ facts }: Input): Found {
  const check = "swap";
  const why = "A page of recent shreds that was swapped out costs milliseconds when it is needed.";
  const { swappiness } = facts.kernelPart;
  const text = `vm.swappiness is ${swappiness ?? "unknown"}`;
  if (swappiness === null || swappiness <= swappinessMax) return ok(check, text, why);
  return { check, level: "warn", finding: text, why, remedy: sysctl("vm.swappiness", 1) };
}

export function lockedMemory({ facts, wishes }: Input): Found {
  const check = "locked-memory";
  const why = "Linux before 5.11 charges the clones' program and its memory to this limit.";
  const [major = 0, minor = 0] = (facts.kernel ?? "")
    .split(".")
    .map((part) => Number.parseInt(part, 10));
  const isCharged = major < 5 || (major === 5 && minor < 11);
  const { lockedMemoryMax: limit } = facts.kernelPart;
  if (wishes.transmit === "socket" || !isCharged || limit === null || limit >= lockedMemoryLeast)
    return ok(
      check,
      wishes.transmit === "socket" ? "not needed for sockets" : "nothing is charged to it",
      why,
    );
  return {
    check,
    level: "warn",
    finding: `limit ${limit} bytes`,
    why,
    remedy: "in the systemd unit: LimitMEMLOCK=infinity",
  };
}

/** How well the clock keeps the time that others have. */
export function clockOffset({ facts, probes }: Input): Found {
  const check = "clock-offset";
  const why = "Lead times, landings and proofs are compared with the clocks of other machines.";
  const offset = facts.kernelPart.clockOffsetSeconds;
  const estimated = probes.kernelClock?.synchronised
    ? probes.kernelClock.estimatedErrorUs / 1e6
    : null;
  const off = offset ?? estimated;
  if (off === null) return ok(check, "nobody here knows how far the clock is off", why);
  const who = offset === null ? "the kernel estimates" : "chrony measured";
  const finding = `${who} an error of ${Math.round(off * 1e6)} µs`;
  if (off <= clockOffsetMaxSeconds) return ok(check, finding, why);
  return {
    check,
    level: "warn",
    finding,
    why,
    remedy:
      "take nearer time servers into /etc/chrony/chrony.conf (server NAME iburst), then systemctl restart chrony",
  };
}

export function nodeVersion({ probes }: Input): Found {
  const check = "node";
  const why = `The program is tested with ${supportedNode()}, and its web server has binaries for these.`;
  const finding = `Node ${probes.nodeVersion}`;
  if (nodeVersionError(probes.nodeVersion) === null) return ok(check, finding, why);
  const remedy = `install ${supportedNode()}, then run npm ci`;
  return { check, level: "fail", finding, why, remedy };
}
