// The checks of the kernel: losses since boot, busy polling, the clock. Pure.
//
// A part of checks.ts.

import { nodeVersionError, supportedNode } from "../../core/node-version.mjs";
import type { XdpReport } from "../../relay/data-plane/xdp-support.ts";
import { about, type Found } from "./finding.ts";
import type { Input } from "./input.ts";
import { isKernelSince } from "./reader.ts";

const squeezedShareMax = 1e-3;
const lostShareMax = 1e-5;
const swappinessMax = 10;
const clockOffsetMaxSeconds = 0.001;
const lockedMemoryLeast = 64 << 20;
// Frames of AF_XDP (native/xdp/xdp_socket.cc): of one worker and interface in zero-copy mode (with copies
// 4 MiB), and of one queue that receives.
const xdpMemoryBytes = 12 << 20;
const xdpQueueBytes = 16 << 20;
/** From this version on, memory of programs counts against the control group. */
const unchargedSince = [5, 11] as const;

export function sysctl(key: string, value: number): string {
  return `sysctl -w ${key}=${value} && echo '${key} = ${value}' >> /etc/sysctl.d/60-shredway.conf`;
}

export function busyPoll({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "busy-poll",
    "A worker that waits in the kernel polls the NIC only if net.core.busy_poll is set.",
  );
  const { busyPoll: now } = facts.kernelPart;
  const setting = configured.busyPollMicroseconds;
  if (setting === 0) return ok("relay.receive.busyPollMicroseconds is 0: busy polling is off");
  if (configured.wait !== "block" || now === null || now > 0)
    return ok(`net.core.busy_poll is ${now ?? "unknown"}, wait: ${configured.wait}`);
  return warn(
    `relay.receive.busyPollMicroseconds is ${setting}, but net.core.busy_poll is 0`,
    sysctl("net.core.busy_poll", setting),
  );
}

export function softnet({ facts }: Input): Found {
  const { ok, warn } = about(
    "softnet",
    "The kernel takes packets from the NIC in rounds. Packets left by a round wait; packets that find the queue full are dropped.",
  );
  const { softnet: counts } = facts.kernelPart;
  if (!counts) return ok("/proc/net/softnet_stat cannot be read");
  const { taken, dropped, squeezed } = counts;
  const finding = `since boot: ${taken} packets processed, ${dropped} dropped, ${squeezed} rounds cut short`;
  if (dropped > 0) return warn(finding, sysctl("net.core.netdev_max_backlog", 16_384));
  if (squeezed <= taken * squeezedShareMax) return ok(finding);
  return warn(finding, sysctl("net.core.netdev_budget", 600));
}

export function udpDrops({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "udp-drops",
    "A datagram is lost if its socket's receive buffer is full. The count includes all programs since boot.",
  );
  const { udp } = facts.kernelPart;
  if (!udp) return ok("/proc/net/snmp cannot be read");
  const finding = `since boot: ${udp.delivered} datagrams delivered, ${udp.bufferFull} lost to full buffers`;
  if (udp.bufferFull <= udp.delivered * lostShareMax) return ok(finding);
  return warn(
    finding,
    `${sysctl("net.core.rmem_max", configured.receiveBufferBytes)}, then more relay.workers if the count still rises`,
  );
}

export function swap({ facts }: Input): Found {
  const { ok, warn } = about(
    "swap",
    "Reading a swapped-out page of recent shreds takes milliseconds.",
  );
  const { swappiness } = facts.kernelPart;
  const text = `vm.swappiness is ${swappiness ?? "unknown"}`;
  if (swappiness === null || swappiness <= swappinessMax) return ok(text);
  return warn(text, sysctl("vm.swappiness", 1));
}

export function lockedMemory({ facts, configured, probes }: Input): Found {
  const { ok, warn } = about(
    "locked-memory",
    "Linux before 5.11 counts the clone program and its memory against this limit.",
  );
  if (configured.transmit === "xdp" || configured.receive === "xdp")
    return lockedFrames(facts, configured, probes.xdp);
  const isCharged = isKernelSince(facts.kernel, unchargedSince) === false;
  const { lockedMemoryMax: limit } = facts.kernelPart;
  if (
    configured.transmit === "socket" ||
    !isCharged ||
    limit === null ||
    limit >= lockedMemoryLeast
  )
    return ok(
      configured.transmit === "socket"
        ? "not needed for sockets"
        : "it does not apply to this kernel",
    );
  return warn(`limit ${limit} bytes`, "in the systemd unit: LimitMEMLOCK=infinity");
}

/** The frames of AF_XDP always count. */
function lockedFrames(
  facts: Input["facts"],
  configured: Input["configured"],
  { interfaces }: XdpReport,
): Found {
  const { ok, warn } = about("locked-memory", "The frames of AF_XDP count against this limit.");
  const { lockedMemoryMax: limit } = facts.kernelPart;
  const sending =
    configured.transmit === "xdp" ? configured.workers * configured.xdpInterfaces.length : 0;
  const queues = interfaces.reduce((sum, { receiveQueues }) => sum + receiveQueues, 0);
  const receiving = configured.receive === "xdp" ? queues : 0;
  const needed = sending * xdpMemoryBytes + receiving * xdpQueueBytes;
  if (limit === null || limit >= needed)
    return ok(`limit ${limit ?? "none"}, needed ${needed} bytes`);
  return warn(
    `limit ${limit} bytes, needed ${needed} bytes`,
    "in the systemd unit: LimitMEMLOCK=infinity",
  );
}

/** The offset of the clock from the time of other machines. */
export function clockOffset({ facts, probes }: Input): Found {
  const { ok, warn } = about(
    "clock-offset",
    "Lead times, landings and proofs are compared across machines' clocks.",
  );
  const offset = facts.kernelPart.clockOffsetSeconds;
  const estimated = probes.kernelClock?.synchronised
    ? probes.kernelClock.estimatedErrorUs / 1e6
    : null;
  const off = offset ?? estimated;
  if (off === null) {
    return warn(
      "the clock offset is unknown: neither chronyc nor the kernel knows it",
      "apt-get install -y chrony && systemctl enable --now chrony",
    );
  }
  const who = offset === null ? "the kernel estimates" : "chrony measured";
  const finding = `${who} an offset of ${Math.round(off * 1e6)} µs`;
  if (off <= clockOffsetMaxSeconds) return ok(finding);
  return warn(
    finding,
    "add nearer time servers to /etc/chrony/chrony.conf (server NAME iburst), then systemctl restart chrony",
  );
}

export function nodeVersion({ probes }: Input): Found {
  const { ok, fail } = about(
    "node",
    `Shredway is tested with ${supportedNode()}, and its web server has binaries for these versions.`,
  );
  const finding = `Node ${probes.nodeVersion}`;
  if (nodeVersionError(probes.nodeVersion) === null) return ok(finding);
  const remedy = `install ${supportedNode()}, then run npm ci`;
  return fail(finding, remedy);
}
