// The machine's checks: from facts to findings. Pure.
//
// Called by src/tools/commands/doctor.ts, for the settings of a configuration or the defaults. Level
// fail: the relay does not work, or loses shreds under ordinary traffic. Level warn: more latency, or
// lost shreds in bursts. Comments state the sources of numbers.

import { ownFilesOf } from "../../core/configuration/connection-limits.ts";
import { expandCpuList } from "../../core/cpu-list.ts";
import { cloning, transmitQueue } from "./clone-checks.ts";
import * as cpus from "./cpu-checks.ts";
import type { SystemFacts } from "./facts.ts";
import { about, type Finding, type Found, withMeasure } from "./finding.ts";
import type { ConfiguredSettings, Input, Probes } from "./input.ts";
import * as kernel from "./kernel-checks.ts";
import { sysctl } from "./kernel-checks.ts";
import * as nic from "./nic-checks.ts";
import { isKernelSince } from "./reader.ts";
import { afXdp } from "./xdp-checks.ts";

// A 1.2 kB datagram takes 2,304 bytes of a receive buffer (truesize), and mainnet-beta sends about 5,000
// shreds per second and source. A smaller buffer cannot hold a burst of half a second.
const receiveBufferLeast = 4 << 20;
const backlogLeast = 10_000;
// 21 MB of recent shreds, touched at startup, and 3 MB of counters and caches. The rest of the window is
// address space that is touched only where signed FEC sets lie close together.
const workerMemoryBytes = 24 << 20;
const workerReservedBytes = 336e6;
const processMemoryBytes = 128 << 20;
/** As in the systemd unit. */
const openFilesUsual = 65_536;
const gsoSince = [4, 18] as const;

function addon({ probes }: Input): Found {
  const { ok, fail } = about("addon", "Native code receives, checks and sends the packets.");
  if (probes.addonError === null) return ok("the native addon is loaded");
  return fail(probes.addonError, "apt-get install -y g++ make python3 && npm rebuild");
}

function receiveBuffer({ facts, configured, probes }: Input): Found {
  const { ok, withLevel } = about(
    "receive-buffer",
    "Packets that arrive while a worker is busy wait in the socket's receive buffer. When it is full, the kernel drops them.",
  );
  const setting = configured.receiveBufferBytes;
  const granted = probes.grantedReceiveBufferBytes ?? Math.min(setting, facts.rmemMax ?? setting);
  const how = facts.capNetAdmin ? "by CAP_NET_ADMIN" : `net.core.rmem_max is ${facts.rmemMax}`;
  if (granted >= setting) return ok(`${granted} bytes per socket, as configured (${how})`);
  return withLevel(
    granted < receiveBufferLeast ? "fail" : "warn",
    `a socket gets ${granted} bytes instead of ${setting} (${how})`,
    sysctl("net.core.rmem_max", setting),
  );
}

function sendBuffer({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "send-buffer",
    "A burst to many destinations waits in the send buffer until the NIC accepts it.",
  );
  const setting = configured.sendBufferBytes;
  if (facts.capNetAdmin) return ok(`${setting} bytes per socket (by CAP_NET_ADMIN)`);
  if (facts.wmemMax === null || facts.wmemMax >= setting) {
    return ok(`net.core.wmem_max is ${facts.wmemMax ?? "unknown"}`);
  }
  return warn(
    `a socket gets ${facts.wmemMax} bytes instead of ${setting} (net.core.wmem_max)`,
    sysctl("net.core.wmem_max", setting),
  );
}

function backlog({ facts }: Input): Found {
  const { ok, warn } = about(
    "backlog",
    "Packets wait in this per-CPU queue between the NIC and the sockets; the default of 1000 overflows in bursts.",
  );
  const { netdevMaxBacklog } = facts;
  const text = `net.core.netdev_max_backlog is ${netdevMaxBacklog ?? "unknown"}`;
  if (netdevMaxBacklog === null || netdevMaxBacklog >= backlogLeast) return ok(text);
  return warn(text, sysctl("net.core.netdev_max_backlog", 16_384));
}

function cores({ facts, configured }: Input): Found {
  const { ok, fail, withLevel } = about(
    "cores",
    "Each worker is a thread. The control plane and the kernel's network processing need CPU time too.",
  );
  const { cpuCount } = facts;
  const missing = configured.cpus.filter((cpu) => cpu >= cpuCount);
  const text = `${cpuCount} CPUs for ${configured.workers} worker${configured.workers === 1 ? "" : "s"}`;
  if (missing.length > 0) {
    return fail(
      `relay.cpus names CPU ${missing.join(", ")}, but there are ${cpuCount} (from 0)`,
      `set relay.cpus to numbers below ${cpuCount}`,
    );
  }
  if (cpuCount > configured.workers) return ok(text);
  return withLevel(
    configured.workers > cpuCount ? "fail" : "warn",
    text,
    `set relay.workers to ${Math.max(1, cpuCount - 1)}, or give the machine more CPUs`,
  );
}

function isolation({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "isolated-cpus",
    "A worker that never sleeps starves other threads on its CPU and is interrupted by them.",
  );
  const isolated = expandCpuList(facts.isolatedCpus ?? "");
  const text = isolated.length > 0 ? `isolated: ${facts.isolatedCpus}` : "no CPU is isolated";
  if (configured.wait !== "busy") return ok(`${text}; not needed with wait: ${configured.wait}`);
  const shared = configured.cpus.filter((cpu) => !isolated.includes(cpu));
  if (configured.cpus.length > 0 && shared.length === 0) return ok(text);
  const named = configured.cpus.length > 0 ? configured.cpus.join(",") : "";
  return warn(
    `wait: busy, but ${named ? `CPU ${shared.join(", ")} is not isolated` : "relay.cpus is not set"}`,
    named
      ? `boot with isolcpus=${named} nohz_full=${named} rcu_nocbs=${named} (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub)`
      : "set relay.cpus to isolated CPUs, or relay.receive.wait to spin",
  );
}

function governor({ facts }: Input): Found {
  const { ok, warn } = about(
    "cpu-governor",
    "A CPU at reduced frequency needs tens of microseconds to speed up when a packet arrives.",
  );
  if (facts.governors.length === 0) return ok("the machine shows no frequency scaling");
  const text = `governor ${facts.governors.join(", ")}`;
  if (facts.governors.every((name) => name === "performance")) return ok(text);
  return warn(
    text,
    "for g in /sys/devices/system/cpu/cpufreq/*/scaling_governor; do echo performance > $g; done",
  );
}

const slowClocks: readonly string[] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"];

function clockSource({ facts }: Input): Found {
  const { ok, warn } = about(
    "clock-source",
    "The kernel timestamps every packet; a slow clock source costs a microsecond or more each time.",
  );
  const text = `clock source ${facts.clockSource ?? "unknown"}`;
  if (facts.clockSource === null || !slowClocks.includes(facts.clockSource)) return ok(text);
  return warn(text, "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource");
}

function clockSync({ facts, probes }: Input): Found {
  const { ok, warn } = about(
    "clock-sync",
    "Times of shreds are compared between machines; an unsynchronised clock makes such numbers meaningless.",
  );
  // A daemon has better information than the kernel, which gets its state from the daemon.
  const isSynchronised = facts.clockSynchronized ?? probes.kernelClock?.synchronised ?? null;
  if (isSynchronised) return ok("the clock is synchronised");
  return warn(
    isSynchronised === null
      ? "neither chronyc nor timedatectl nor the kernel reports whether the clock is synchronised"
      : "the clock is not synchronised",
    "apt-get install -y chrony && systemctl enable --now chrony",
  );
}

function capabilities({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "capabilities",
    "With CAP_NET_ADMIN the relay gets its configured buffers and busy polling regardless of the system limits.",
  );
  if (facts.capNetAdmin) return ok("CAP_NET_ADMIN is present");
  const text = "no CAP_NET_ADMIN";
  if (configured.busyPollMicroseconds === 0) return ok(`${text}; the system limits above apply`);
  return warn(
    `${text}, but relay.receive.busyPollMicroseconds is ${configured.busyPollMicroseconds}`,
    "in the systemd unit: AmbientCapabilities=CAP_NET_ADMIN",
  );
}

function ed25519({ probes }: Input): Found {
  const { ok, withLevel } = about(
    "ed25519",
    "The relay verifies one signature per FEC set. libsodium takes about half as long as OpenSSL.",
  );
  if (probes.ed25519 === "libsodium") return ok("libsodium is in use");
  return withLevel(
    probes.ed25519 === "none" ? "fail" : "warn",
    probes.ed25519 === "none" ? "no Ed25519 library was found" : `${probes.ed25519} is in use`,
    "apt-get install -y libsodium23",
  );
}

function sha256({ probes }: Input): Found {
  const { ok, warn } = about(
    "sha256",
    "The relay hashes every new shred up to its Merkle root. The CPU's SHA instructions make this cheap.",
  );
  if (probes.sha256Accelerated) return ok("SHA instructions are in use");
  return warn(
    "this CPU has no SHA instructions (or the virtual machine hides them)",
    "use a CPU with SHA-NI, or pass it through to the virtual machine (cpu: host)",
  );
}

function openFiles({ facts, configured }: Input): Found {
  const { ok, warn, fail } = about(
    "open-files",
    "Modules are read in parallel at startup, and every worker and connection has its own socket. With a low limit, the service accepts fewer connections than configured.",
  );
  const { workers, listenAddresses, connectionsMax } = configured;
  const least = ownFilesOf(workers, listenAddresses);
  const needed = least + connectionsMax;
  const text = `limit ${facts.openFilesMax ?? "unknown"}, needed ${needed}`;
  if (facts.openFilesMax === null || facts.openFilesMax >= needed) return ok(text);
  const limit = Math.max(openFilesUsual, needed);
  const remedy = `ulimit -n ${limit} (in the systemd unit: LimitNOFILE=${limit})`;
  if (facts.openFilesMax < least) return fail(text, remedy);
  return warn(text, `${remedy}, or a smaller http.connectionsMax`);
}

function gso({ facts }: Input): Found {
  const { ok, warn } = about(
    "gso",
    "UDP segmentation sends a burst to a destination as one message at a fraction of the cost (Linux 4.18 or newer).",
  );
  if (isKernelSince(facts.kernel, gsoSince))
    return ok(`Linux ${facts.kernel} supports UDP segmentation`);
  return warn(
    `Linux ${facts.kernel ?? "of unknown version"} may not segment UDP`,
    "use Linux 4.18 or newer",
  );
}

function ipv6({ facts, configured }: Input): Found {
  const { ok, fail } = about(
    "ipv6",
    "IPv6 addresses in the configuration need IPv6 on this machine.",
  );
  if (facts.ipv6) return ok("IPv6 is available");
  if (!configured.usesIpv6) return ok("no IPv6, and the configuration does not use it");
  return fail(
    "no IPv6, but the configuration names IPv6 addresses",
    "sysctl -w net.ipv6.conf.all.disable_ipv6=0, or use IPv4 addresses",
  );
}

function hugePages({ facts }: Input): Found {
  const { ok, warn } = about(
    "huge-pages",
    'With "always" the kernel may stop a thread for milliseconds to put pages together.',
  );
  const text = `transparent huge pages: ${facts.hugePages ?? "unknown"}`;
  if (facts.hugePages !== "always") return ok(text);
  return warn(text, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
}

function memory({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "memory",
    "Recent shreds and full socket buffers must fit into memory; otherwise the machine swaps and stalls.",
  );
  const buffers = configured.listenAddresses * configured.receiveBufferBytes * 2; // according to the kernel's counters
  const needed = configured.workers * (workerMemoryBytes + buffers) + processMemoryBytes;
  const available = facts.memoryAvailableBytes;
  const text = [
    `${available === null ? "unknown" : mebibytes(available)} available, ${mebibytes(needed)} needed with full receive buffers`,
    `per worker ${mebibytes(workerMemoryBytes)} at startup and up to ${mebibytes(buffers)} of receive buffers; ` +
      `${mebibytes(workerReservedBytes)} of address space are reserved, most of it never touched`,
  ].join("\n");
  if (available === null || available >= needed) return ok(text);
  return warn(
    text,
    "lower relay.workers or relay.receive.bufferBytes, or give the machine more memory",
  );
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / (1 << 20))} MiB`;
}

function cardQueues({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "receive-queues",
    "With one receive queue, one CPU processes all packets in the kernel. With several queues, the NIC distributes them over CPUs.",
  );
  const real = facts.nics.filter(({ receiveQueues }) => receiveQueues > 0);
  const text = real.map(({ name, receiveQueues }) => `${name} ${receiveQueues}`).join(", ");
  const few = real.filter(({ receiveQueues }) => receiveQueues < configured.workers);
  if (few.length === 0) return ok(text === "" ? "no NIC" : `receive queues: ${text}`);
  const nics = few.map(({ name, receiveQueues }) => {
    const details = facts.nic.details.find((one) => one.name === name);
    return { name, receiveQueues, queuesMax: details?.queuesMax ?? null, details };
  });
  // A NIC at its maximum is as good as it gets if the kernel distributes its packets.
  const isDone = ({ queuesMax, receiveQueues, details }: (typeof nics)[number]) =>
    queuesMax !== null && queuesMax <= receiveQueues && details?.steersInSoftware === true;
  const left = nics.filter((one) => !isDone(one));
  const finding = `receive queues: ${text}, workers: ${configured.workers}`;
  if (left.length === 0) return ok(`${finding}; the kernel distributes the packets (RPS)`);
  return warn(finding, left.map((one) => queuesRemedy(one, configured.workers)).join("; "));
}

interface NicQueues {
  readonly name: string;
  readonly receiveQueues: number;
  /** null: unknown, for example without ethtool. */
  readonly queuesMax: number | null;
}

/** Only what the NIC can do: its driver rejects a larger number. */
function queuesRemedy({ name, receiveQueues, queuesMax }: NicQueues, workers: number): string {
  if (queuesMax === null) {
    return `ethtool -l ${name} (shows the maximum), then ethtool -L ${name} combined NUMBER, at most ${workers}`;
  }
  if (queuesMax > receiveQueues) {
    return `ethtool -L ${name} combined ${Math.min(queuesMax, workers)}`;
  }
  const mask = ((1n << BigInt(Math.min(workers, 64))) - 1n).toString(16);
  return (
    `${name} has no more than ${queuesMax}; distribute its packets in the kernel: ` +
    `echo ${mask} > /sys/class/net/${name}/queues/rx-0/rps_cpus`
  );
}

const checks: readonly ((input: Input) => Found)[] = [
  addon,
  receiveBuffer,
  sendBuffer,
  backlog,
  cores,
  isolation,
  governor,
  clockSource,
  clockSync,
  capabilities,
  ed25519,
  sha256,
  openFiles,
  gso,
  ipv6,
  hugePages,
  memory,
  cardQueues,
  cloning,
  transmitQueue,
  afXdp,
  cpus.siblings,
  cpus.workerCpus,
  cpus.idleStates,
  cpus.workerPriority,
  cpus.senderThreads,
  cpus.workerMemory,
  cpus.ticks,
  cpus.memoryNode,
  cpus.irqBalance,
  nic.ethtool,
  nic.rings,
  nic.interrupts,
  nic.segmentation,
  nic.coalescing,
  nic.nicDrops,
  nic.deferral,
  kernel.busyPoll,
  kernel.softnet,
  kernel.udpDrops,
  kernel.swap,
  kernel.lockedMemory,
  kernel.clockOffset,
  kernel.nodeVersion,
];

/** Every check of the machine, in a fixed order. Without the addon, its findings are left out. */
export function checkMachine(
  facts: SystemFacts,
  configured: ConfiguredSettings,
  probes: Probes,
): Finding[] {
  const left = probes.addonError === null ? [] : [ed25519, sha256, cloning];
  return checks
    .filter((check) => !left.includes(check))
    .map((check) => withMeasure(check({ facts, configured, probes })));
}
