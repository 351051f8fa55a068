// Facts about receiving in the kernel: losses since boot and polling.
//
// A part of facts.ts. Sources: proc(5), Documentation/admin-guide/sysctl/net.rst, chronyc(1).

import { numberIn, type SystemReader } from "./reader.ts";

export interface KernelFacts {
  readonly busyPoll: number | null;
  /** Packets of all CPUs since boot: processed, and dropped because a CPU's queue was full. */
  readonly softnet: {
    readonly taken: number;
    readonly dropped: number;
    readonly squeezed: number;
  } | null;
  /** UDP datagrams of all programs since boot: delivered, and dropped because a buffer was full. */
  readonly udp: { readonly delivered: number; readonly bufferFull: number } | null;
  readonly swappiness: number | null;
  readonly lockedMemoryMax: number | null;
  /** The offset of the clock according to chrony. */
  readonly clockOffsetSeconds: number | null;
}

export function readKernelFacts(reader: SystemReader): KernelFacts {
  const sysctl = (name: string) => numberIn(reader.readText(`/proc/sys/${name}`));
  return {
    busyPoll: sysctl("net/core/busy_poll"),
    softnet: readSoftnet(reader),
    udp: readUdp(reader),
    swappiness: sysctl("vm/swappiness"),
    lockedMemoryMax: readLockedMemoryMax(reader),
    clockOffsetSeconds: readClockOffset(reader),
  };
}

/** Hexadecimal columns, one line per CPU. */
function readSoftnet(reader: SystemReader): KernelFacts["softnet"] {
  const text = reader.readText("/proc/net/softnet_stat");
  if (text === null) return null;
  const rows = text
    .trim()
    .split("\n")
    .map((line) => line.split(" "));
  const sum = (column: number) =>
    rows.reduce((total, row) => total + Number.parseInt(row[column] ?? "0", 16), 0);
  return { taken: sum(0), dropped: sum(1), squeezed: sum(2) };
}

/** A line of names and a line of values. */
function readUdp(reader: SystemReader): KernelFacts["udp"] {
  const lines = (reader.readText("/proc/net/snmp") ?? "")
    .split("\n")
    .filter((line) => line.startsWith("Udp: "));
  const [names = [], values = []] = lines.map((line) => line.split(" "));
  const at = (name: string) => numberIn(values[names.indexOf(name)] ?? null);
  const [delivered, bufferFull] = [at("InDatagrams"), at("RcvbufErrors")];
  return delivered === null || bufferFull === null ? null : { delivered, bufferFull };
}

function readLockedMemoryMax(reader: SystemReader): number | null {
  const limits = reader.readText("/proc/self/limits");
  const soft = /^Max locked memory\s+(\S+)/m.exec(limits ?? "")?.[1];
  if (soft === undefined) return null;
  return soft === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(soft);
}

function readClockOffset(reader: SystemReader): number | null {
  const tracking = reader.run("chronyc", "-n", "tracking") ?? "";
  const offset = /^System time\s*:\s*([\d.]+) seconds/m.exec(tracking)?.[1];
  return offset === undefined ? null : Number(offset);
}
