// Worker CPUs: decides on which CPUs the relay's workers and the other threads run. Pure.
//
// Called by place-threads.ts before the relay opens. Without `relay.cpus`, each worker gets a physical core of
// its own if enough CPUs remain for the other threads. The same machine always gives the same answer.

import { formatCpuList } from "../core/cpu-list.ts";

/** A thread of another program that may run on one CPU only. */
export interface PinnedThread {
  readonly cpu: number;
  readonly pid: number;
  readonly name: string;
}

export interface WorkerCpuFacts {
  /** CPUs that this process may use: its affinity, inside the cpuset of its control group. */
  readonly allowed: readonly number[];
  /** CPUs that the kernel command line excludes from scheduling (isolcpus). */
  readonly isolated: readonly number[];
  /** For each core with several CPUs: all of them. A CPU that no list contains has a core of its own. */
  readonly siblings: readonly (readonly number[])[];
  /** CPUs of the NIC's memory node; empty: unknown, or several NICs differ. */
  readonly nearNic: readonly number[];
  readonly pinned: readonly PinnedThread[];
  /** The control group limits the CPU time of this process (cpu.max). */
  readonly hasQuota: boolean;
}

interface WorkerCpus {
  /** Worker i runs on workers[i]; empty: the kernel places the workers. */
  readonly workers: readonly number[];
  /** CPUs of all other threads; empty: they stay where they are. */
  readonly others: readonly number[];
  readonly reason: string;
}

/** CPUs that the event loop, JavaScript's helpers, the database and the kernel's network processing need. */
export const othersMin = 2;
/** With fewer CPUs in all, the kernel places the workers. */
const allowedMin = 4;
/** The other threads leave the siblings of the workers' CPUs idle if this many CPUs remain for them. */
const othersMinBesideIdleSiblings = 4;

/** `configured`: relay.cpus. */
export function chooseWorkerCpus(
  configured: readonly number[] | "none" | undefined,
  count: number,
  facts: WorkerCpuFacts,
): WorkerCpus {
  if (configured === "none") return placedByKernel("relay.cpus: none");
  if (configured) {
    return { workers: configured, others: othersBeside(configured, facts), reason: "relay.cpus" };
  }
  if (facts.hasQuota) return placedByKernel("the control group limits the CPU time (cpu.max)");
  const usable = usableCpus(facts);
  const least = Math.max(allowedMin, count + othersMin);
  if (usable.length < least) {
    return placedByKernel(
      `relay.workers: ${count} and the other threads would need ${least} CPUs, got ${usable.length}`,
    );
  }
  const cores = freeCores(facts);
  if (cores.length < count) {
    return placedByKernel(
      `relay.workers: ${count} would need as many cores without pinned threads of other programs, got ${cores.length}`,
    );
  }
  const workers = cores.slice(0, count).map(({ cpu }) => cpu);
  const isShared = (cpu: number) => siblingsOf(cpu, facts).some((one) => workers.includes(one));
  if (usable.every(isShared)) {
    return placedByKernel("no core would remain for the other threads alone");
  }
  return { workers, others: othersBeside(workers, facts), reason: "cores of their own" };
}

/** For the log. */
export function workerCpusText({ workers, others, reason }: WorkerCpus): string {
  if (workers.length === 0) return `relay: the kernel places the workers (${reason})`;
  const rest = others.length === 0 ? "are not moved" : `on CPU ${formatCpuList(others)}`;
  return `relay: workers on CPU ${workers.join(", ")} (${reason}), other threads ${rest}`;
}

function placedByKernel(reason: string): WorkerCpus {
  return { workers: [], others: [], reason };
}

/** CPUs that the kernel may schedule this process on. */
export function usableCpus({
  allowed,
  isolated,
}: Pick<WorkerCpuFacts, "allowed" | "isolated">): number[] {
  return allowed.filter((cpu) => !isolated.includes(cpu));
}

/** All CPUs of the core, this one included. */
function siblingsOf(cpu: number, { siblings }: WorkerCpuFacts): readonly number[] {
  return siblings.find((core) => core.includes(cpu)) ?? [cpu];
}

/** Empty if too few CPUs remain: then the other threads stay where they are. */
function othersBeside(workers: readonly number[], facts: WorkerCpuFacts): number[] {
  const others = usableCpus(facts).filter((cpu) => !workers.includes(cpu));
  const apart = others.filter(
    (cpu) => !siblingsOf(cpu, facts).some((one) => workers.includes(one)),
  );
  if (apart.length >= othersMinBesideIdleSiblings) return apart;
  return others.length >= othersMin ? others : [];
}

interface FreeCore {
  /** For a worker: the lowest one of the core, but never CPU 0 if the core has another. */
  readonly cpu: number;
  /** CPU 0 usually takes interrupts. */
  readonly hasCpu0: boolean;
  readonly isNear: boolean;
}

/**
 * Cores on which no thread of another program is pinned, in the order in which workers get them: near the
 * NIC first, then by number, and the core with CPU 0 last. On processors with two kinds of cores, the fast
 * ones have the low numbers.
 */
function freeCores(facts: WorkerCpuFacts): FreeCore[] {
  const usable = usableCpus(facts).toSorted((a, b) => a - b);
  const taken = new Set(facts.pinned.flatMap(({ cpu }) => siblingsOf(cpu, facts)));
  const cores = new Map<number, FreeCore>();
  for (const cpu of usable) {
    const all = siblingsOf(cpu, facts);
    const key = Math.min(...all);
    if (taken.has(cpu) || (cores.has(key) && cores.get(key)?.cpu !== 0)) continue;
    const isNear = facts.nearNic.includes(cpu);
    cores.set(key, { cpu, hasCpu0: all.includes(0), isNear });
  }
  return [...cores.values()].toSorted(
    (a, b) =>
      Number(a.hasCpu0) - Number(b.hasCpu0) || Number(b.isNear) - Number(a.isNear) || a.cpu - b.cpu,
  );
}
