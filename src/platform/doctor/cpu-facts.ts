// Facts about CPUs: shared cores, idle states, interrupts.
//
// A part of facts.ts, read by the same reader; null: unknown. Sources: sysfs of Linux 6.x
// (Documentation/ABI/testing/sysfs-devices-system-cpu), proc(5).

import { expandCpuList } from "../../core/cpu-list.ts";
import { numberIn, type SystemReader, trimmed } from "./reader.ts";

interface IdleState {
  readonly name: string;
  /** Wake-up time. */
  readonly latencyUs: number;
  readonly isDisabled: boolean;
}

export interface CpuFacts {
  /** CPUs that share a core with another one. */
  readonly siblings: readonly (readonly number[])[];
  /** CPUs without a clock tick ("2-3"). */
  readonly nohzFull: string | null;
  /** Idle states of the first CPU; empty if the machine reports none (virtual machines). */
  readonly idleStates: readonly IdleState[];
  /** CPUs of each NUMA node. */
  readonly nodes: readonly { readonly node: number; readonly cpus: readonly number[] }[];
  /** irqbalance is running and may move interrupts. */
  readonly hasIrqBalance: boolean;
}

const cpuFolder = "/sys/devices/system/cpu";
const nodeFolder = "/sys/devices/system/node";

export function readCpuFacts(reader: SystemReader): CpuFacts {
  return {
    siblings: readSiblings(reader),
    nohzFull: trimmed(reader.readText(`${cpuFolder}/nohz_full`)),
    idleStates: readIdleStates(reader),
    nodes: readNodes(reader),
    hasIrqBalance: reader
      .list("/proc")
      .some((name) => /^\d+$/.test(name) && commandOf(reader, name) === "irqbalance"),
  };
}

function commandOf(reader: SystemReader, pid: string): string | null {
  return trimmed(reader.readText(`/proc/${pid}/comm`));
}

function readSiblings(reader: SystemReader): number[][] {
  const lists = reader
    .list(cpuFolder)
    .filter((name) => /^cpu\d+$/.test(name))
    .map((name) => trimmed(reader.readText(`${cpuFolder}/${name}/topology/thread_siblings_list`)))
    .filter((list) => list !== null);
  return [...new Set(lists)].map(expandCpuList).filter((cpus) => cpus.length > 1);
}

function readIdleStates(reader: SystemReader): IdleState[] {
  const folder = `${cpuFolder}/cpu0/cpuidle`;
  return reader.list(folder).flatMap((state) => {
    const read = (name: string) => reader.readText(`${folder}/${state}/${name}`);
    const latencyUs = numberIn(read("latency"));
    if (latencyUs === null) return [];
    const isDisabled = numberIn(read("disable")) === 1;
    return [{ name: trimmed(read("name")) ?? state, latencyUs, isDisabled }];
  });
}

function readNodes(reader: SystemReader): { node: number; cpus: number[] }[] {
  return reader
    .list(nodeFolder)
    .filter((name) => /^node\d+$/.test(name))
    .map((name) => ({
      node: Number(name.slice("node".length)),
      cpus: expandCpuList(trimmed(reader.readText(`${nodeFolder}/${name}/cpulist`)) ?? ""),
    }));
}
