// Sender threads: decides how many help each worker to send by socket. Pure.
//
// Called by place-threads.ts before the relay opens, and by the doctor. A sender thread that has to wait
// for a CPU makes its worker wait, so without `relay.senderThreads` each gets a CPU beside those of the
// workers and of the other threads.

import type { RelayConfig } from "../core/configuration/configuration.ts";
import { othersMin, usableCpus, type WorkerCpuFacts } from "./worker-cpus.ts";

export interface SenderThreadsChoice {
  readonly perWorker: number;
  readonly reason: string;
}

/** The gain of more than one was not measured; docs/transmit.md has the measurement of one. */
const chosenMax = 2;

interface SenderThreadsFacts extends Pick<WorkerCpuFacts, "allowed" | "isolated" | "hasQuota"> {
  /** CPUs of the workers; empty: the kernel places them. */
  readonly workerCpus: readonly number[];
}

/** CPUs for sender threads: those beside the workers, without the ones that the other threads need. */
export function spareCpus(workers: number, facts: SenderThreadsFacts): number {
  const usable = usableCpus(facts);
  const placed = usable.filter((cpu) => facts.workerCpus.includes(cpu)).length;
  return usable.length - (facts.workerCpus.length > 0 ? placed : workers) - othersMin;
}

export function chooseSenderThreads(
  { senderThreads, workers }: Pick<RelayConfig, "senderThreads" | "workers">,
  facts: SenderThreadsFacts,
): SenderThreadsChoice {
  if (senderThreads !== "auto") {
    return { perWorker: senderThreads, reason: `relay.senderThreads: ${senderThreads}` };
  }
  if (facts.hasQuota) {
    return { perWorker: 0, reason: "the control group limits the CPU time (cpu.max)" };
  }
  const spare = Math.max(0, spareCpus(workers, facts));
  const perWorker = Math.min(chosenMax, Math.floor(spare / workers));
  const needed = `${workers + othersMin} CPUs beside the ${workers === 1 ? "worker" : "workers"}`;
  const got = spareCpus(workers, facts) + othersMin;
  return perWorker > 0
    ? { perWorker, reason: `relay.senderThreads: auto, ${got} CPUs beside the workers` }
    : { perWorker, reason: `relay.senderThreads: auto would need ${needed}, got ${got}` };
}

/** For the log. `inUse`: by the relay, which has none while it clones or uses AF_XDP. */
export function senderThreadsText(inUse: number, { perWorker, reason }: SenderThreadsChoice) {
  if (inUse === 0) {
    return `relay: no sender threads (${perWorker > 0 ? "clones or AF_XDP are in use" : reason})`;
  }
  return `relay: ${inUse} sender thread${inUse === 1 ? "" : "s"} per worker (${reason})`;
}
