// Facts for the choice of the workers' CPUs, from /proc and /sys.
//
// Called by place-threads.ts, and by the doctor for pinned threads. Read-only; what cannot be read counts as
// absent. Sources: proc(5), cgroups(7), sysfs of Linux 6.x (Documentation/ABI/testing/sysfs-devices-system-cpu).

import { readdirSync, readFileSync } from "node:fs";
import { expandCpuList } from "../core/cpu-list.ts";
import type { PinnedThread, WorkerCpuFacts } from "./worker-cpus.ts";

export interface FileReader {
  /** Content of a file; null: unreadable. */
  readText(path: string): string | null;
  /** Names in a folder; empty: unreadable. */
  list(path: string): readonly string[];
}

export const fileReader: FileReader = {
  readText(path) {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return null; // missing on this machine, or not permitted
    }
  },
  list(path) {
    try {
      return readdirSync(path);
    } catch {
      return [];
    }
  },
};

const cpuFolder = "/sys/devices/system/cpu";
const nicFolder = "/sys/class/net";
const groupFolder = "/sys/fs/cgroup";
/** Reading a status takes about 20 µs, so this many delay a start by less than half a second. */
const threadsReadMax = 20_000;

export function readWorkerCpuFacts(reader: FileReader, ownPid: number): WorkerCpuFacts {
  const allowed = cpusIn(fieldOf(reader.readText("/proc/self/status"), "Cpus_allowed_list"));
  return {
    allowed,
    isolated: cpusIn(reader.readText(`${cpuFolder}/isolated`)),
    siblings: readSiblings(reader, allowed),
    nearNic: readNearNic(reader),
    pinned: readPinnedThreads(reader, ownPid),
    hasQuota: hasQuota(reader),
  };
}

function cpusIn(list: string | null): number[] {
  return expandCpuList((list ?? "").trim());
}

/** Field of a status file: "Name:\tvalue". */
function fieldOf(status: string | null, name: string): string | null {
  const line = status?.split("\n").find((one) => one.startsWith(`${name}:`));
  return line === undefined ? null : line.slice(name.length + 1).trim();
}

function readSiblings(reader: FileReader, cpus: readonly number[]): number[][] {
  const lists = cpus.map((cpu) =>
    (reader.readText(`${cpuFolder}/cpu${cpu}/topology/thread_siblings_list`) ?? "").trim(),
  );
  return [...new Set(lists)].map(expandCpuList).filter((core) => core.length > 1);
}

/** CPUs of the memory node to which every NIC that is up is attached; empty: none, or several. */
function readNearNic(reader: FileReader): number[] {
  const nodes = new Set(
    reader
      .list(nicFolder)
      .filter((name) => reader.readText(`${nicFolder}/${name}/operstate`)?.trim() === "up")
      .map((name) => reader.readText(`${nicFolder}/${name}/device/numa_node`)?.trim())
      .filter((node) => node !== undefined && node !== "-1"),
  );
  const [node] = nodes;
  if (nodes.size !== 1 || node === undefined) return [];
  return cpusIn(reader.readText(`/sys/devices/system/node/node${node}/cpulist`));
}

/** Version 2 of control groups: a limit of this group, or of one that contains it. */
function hasQuota(reader: FileReader): boolean {
  const line = reader.readText("/proc/self/cgroup")?.split("\n");
  const path = line?.find((one) => one.startsWith("0::"))?.slice("0::".length) ?? "";
  const parts = path.split("/").filter((part) => part !== "" && part !== "..");
  return Array.from({ length: parts.length + 1 }, (_, depth) =>
    [groupFolder, ...parts.slice(0, depth), "cpu.max"].join("/"),
  ).some((file) => /^\d/.test(reader.readText(file) ?? ""));
}

/**
 * Threads of other programs that may run on one CPU only. Threads of the kernel are left out: it has some
 * on each CPU. A process that hides from this user (ProtectProc=invisible) is not found.
 */
export function readPinnedThreads(reader: FileReader, ownPid: number): PinnedThread[] {
  const pinned: PinnedThread[] = [];
  let left = threadsReadMax;
  for (const pid of reader.list("/proc").filter((name) => /^\d+$/.test(name))) {
    if (Number(pid) === ownPid) continue;
    // Only programs have memory.
    if (fieldOf(reader.readText(`/proc/${pid}/status`), "VmRSS") === null) continue;
    for (const thread of reader.list(`/proc/${pid}/task`)) {
      if (left-- <= 0) return pinned;
      const status = reader.readText(`/proc/${pid}/task/${thread}/status`);
      const list = fieldOf(status, "Cpus_allowed_list") ?? "";
      if (!/^\d+$/.test(list)) continue;
      pinned.push({ cpu: Number(list), pid: Number(pid), name: fieldOf(status, "Name") ?? "" });
    }
  }
  return pinned;
}
