// Facts about the machine, read from /proc, /sys and a few tools.
//
// Called by src/tools/commands/doctor.ts with the system's reader, and by tests with a fake one.
// Read-only. An unknown fact is null, and the checks report it. Sources: proc(5), sysfs of Linux 6.x,
// capabilities(7), timedatectl(1), chronyc(1).

import { expandCpuList } from "../../core/cpu-list.ts";
import { readWorkerCpuFacts } from "../../relay/worker-cpu-facts.ts";
import type { WorkerCpuFacts } from "../../relay/worker-cpus.ts";
import { type CpuFacts, readCpuFacts } from "./cpu-facts.ts";
import { type KernelFacts, readKernelFacts } from "./kernel-facts.ts";
import { type NicFacts, readNicFacts } from "./nic-facts.ts";
import { numberIn, type SystemReader, trimmed } from "./reader.ts";

export type { SystemReader } from "./reader.ts";

interface Nic {
  readonly name: string;
  readonly receiveQueues: number;
  /** Maximum number of queued packets; null: unknown. */
  readonly transmitQueueLength: number | null;
}

export interface SystemFacts {
  /** "6.1.0-18-amd64" */
  readonly kernel: string | null;
  readonly cpuCount: number;
  /** CPUs that are isolated from the scheduler ("2-3"); empty: none. */
  readonly isolatedCpus: string | null;
  /**
   * Active frequency governors, each once; empty if the machine reports none (virtual machines).
   */
  readonly governors: readonly string[];
  readonly clockSource: string | null;
  readonly clockSynchronized: boolean | null;
  readonly rmemMax: number | null;
  readonly wmemMax: number | null;
  readonly netdevMaxBacklog: number | null;
  readonly capNetAdmin: boolean | null;
  /** CAP_BPF, or CAP_SYS_ADMIN, which includes it. */
  readonly capBpf: boolean | null;
  /** CAP_PERFMON, or CAP_SYS_ADMIN: without it, the kernel rejects programs with loops. */
  readonly capPerfmon: boolean | null;
  /** /dev/net/tun. */
  readonly hasTun: boolean;
  /** net.core.bpf_jit_enable: 0 if the kernel interprets programs. */
  readonly bpfJit: number | null;
  readonly openFilesMax: number | null;
  readonly memoryAvailableBytes: number | null;
  /** "always", "madvise" or "never". */
  readonly hugePages: string | null;
  readonly ipv6: boolean;
  readonly nics: readonly Nic[];
  readonly cpu: CpuFacts;
  readonly workerCpus: WorkerCpuFacts;
  readonly nic: NicFacts;
  readonly kernelPart: KernelFacts;
}

const capNetAdminBit = 12n;
const capSysAdminBit = 21n;
const capPerfmonBit = 38n;
const capBpfBit = 39n;

export function readFacts(reader: SystemReader): SystemFacts {
  const nics = readNics(reader);
  return {
    kernel: trimmed(reader.readText("/proc/sys/kernel/osrelease")),
    cpuCount: countCpus(reader),
    isolatedCpus: trimmed(reader.readText("/sys/devices/system/cpu/isolated")),
    governors: readGovernors(reader),
    clockSource: trimmed(
      reader.readText("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ),
    clockSynchronized: readClockSynchronized(reader),
    rmemMax: numberIn(reader.readText("/proc/sys/net/core/rmem_max")),
    wmemMax: numberIn(reader.readText("/proc/sys/net/core/wmem_max")),
    netdevMaxBacklog: numberIn(reader.readText("/proc/sys/net/core/netdev_max_backlog")),
    capNetAdmin: readCapability(reader, capNetAdminBit),
    capBpf: readEitherCapability(reader, capBpfBit),
    capPerfmon: readEitherCapability(reader, capPerfmonBit),
    hasTun: reader.list("/dev/net").includes("tun"),
    bpfJit: numberIn(reader.readText("/proc/sys/net/core/bpf_jit_enable")),
    openFilesMax: readOpenFilesMax(reader),
    memoryAvailableBytes: readMemoryAvailable(reader),
    hugePages: chosenOf(reader.readText("/sys/kernel/mm/transparent_hugepage/enabled")),
    ipv6: (trimmed(reader.readText("/proc/net/if_inet6")) ?? "") !== "",
    nics,
    cpu: readCpuFacts(reader),
    workerCpus: readWorkerCpuFacts(reader, process.pid),
    nic: readNicFacts(
      reader,
      nics.map(({ name }) => name),
    ),
    kernelPart: readKernelFacts(reader),
  };
}

/** "always [madvise] never" -> "madvise" */
function chosenOf(text: string | null): string | null {
  return text === null ? null : (/\[(\w+)\]/.exec(text)?.[1] ?? null);
}

function countCpus(reader: SystemReader): number {
  const online = trimmed(reader.readText("/sys/devices/system/cpu/online"));
  return online === null ? 1 : Math.max(1, expandCpuList(online).length);
}

function readGovernors(reader: SystemReader): string[] {
  const folder = "/sys/devices/system/cpu/cpufreq";
  const found = reader
    .list(folder)
    .map((policy) => trimmed(reader.readText(`${folder}/${policy}/scaling_governor`)))
    .filter((governor) => governor !== null);
  return [...new Set(found)].toSorted();
}

function readClockSynchronized(reader: SystemReader): boolean | null {
  const chrony = reader.run("chronyc", "-n", "tracking");
  const leap = chrony === null ? undefined : /Leap status\s*:\s*(.+)/.exec(chrony)?.[1];
  if (leap !== undefined) return leap.trim() === "Normal";
  const systemd = trimmed(
    reader.run("timedatectl", "show", "--property=NTPSynchronized", "--value"),
  );
  if (systemd === "yes") return true;
  return systemd === "no" ? false : null;
}

function readCapability(reader: SystemReader, bit: bigint): boolean | null {
  const status = reader.readText("/proc/self/status");
  const hex = status === null ? undefined : /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
  return hex === undefined ? null : ((BigInt(`0x${hex}`) >> bit) & 1n) === 1n;
}

function readEitherCapability(reader: SystemReader, bit: bigint): boolean | null {
  const own = readCapability(reader, bit);
  return own === false ? readCapability(reader, capSysAdminBit) : own;
}

function readOpenFilesMax(reader: SystemReader): number | null {
  const limits = reader.readText("/proc/self/limits");
  const soft = limits === null ? undefined : /^Max open files\s+(\S+)/m.exec(limits)?.[1];
  if (soft === undefined) return null;
  return soft === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(soft);
}

function readMemoryAvailable(reader: SystemReader): number | null {
  const text = reader.readText("/proc/meminfo");
  const kilobytes = text === null ? undefined : /^MemAvailable:\s+(\d+) kB$/m.exec(text)?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1024;
}

function readNics(reader: SystemReader): Nic[] {
  const folder = "/sys/class/net";
  return (
    reader
      .list(folder)
      // Virtual interfaces (bridges, tunnels, lo) have no device and no settings.
      .filter((name) => reader.list(`${folder}/${name}/device`).length > 0)
      .map((name) => ({
        name,
        receiveQueues: reader
          .list(`${folder}/${name}/queues`)
          .filter((queue) => queue.startsWith("rx-")).length,
        transmitQueueLength: numberIn(reader.readText(`${folder}/${name}/tx_queue_len`)),
      }))
  );
}
