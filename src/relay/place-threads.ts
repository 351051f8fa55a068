// Places the threads of the service: the relay's workers, and all others away from them.
//
// Called once by src/app, before the relay and its threads exist. The sandbox and other users of the
// relay do not call it: they may share a process and a machine with anything.

import type { RelayConfig } from "../core/configuration/configuration.ts";
import type { Logger } from "../core/log.ts";
import { keepThreadsOn } from "./data-plane/native.ts";
import { fileReader, readWorkerCpuFacts } from "./worker-cpu-facts.ts";
import { chooseWorkerCpus, type WorkerCpuFacts, workerCpusText } from "./worker-cpus.ts";

interface PlacingSystem {
  readonly readFacts: () => WorkerCpuFacts;
  /** Moves all threads of this process; returns the reason if the system refuses, or null. */
  readonly keepThreadsOn: (cpus: readonly number[]) => string | null;
}

const realSystem: PlacingSystem = {
  readFacts: () => readWorkerCpuFacts(fileReader, process.pid),
  keepThreadsOn,
};

/** Returns the CPU of each worker; empty: the kernel places them. */
export function placeThreads(
  { cpus, workers }: Pick<RelayConfig, "cpus" | "workers">,
  log: Logger,
  system: PlacingSystem = realSystem,
): readonly number[] {
  const chosen = chooseWorkerCpus(cpus, workers, system.readFacts());
  const refusal = chosen.others.length > 0 ? system.keepThreadsOn(chosen.others) : null;
  if (refusal === null) {
    log.info(workerCpusText(chosen));
    return chosen.workers;
  }
  // Without `relay.cpus` nothing is lost: the kernel places the workers as it does on a small machine.
  const workersStay = cpus === undefined ? "; the kernel places the workers too" : "";
  log.warn(
    `relay: the other threads were not moved away from CPU ${chosen.workers.join(", ")}: ${refusal}${workersStay}`,
  );
  return cpus === undefined ? [] : chosen.workers;
}
