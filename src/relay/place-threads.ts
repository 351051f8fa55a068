// Places the threads of the service: the relay's workers, and all others away from them. Decides how many
// sender threads the workers get.
//
// Called once by src/app, before the relay and its threads exist. The sandbox and other users of the
// relay do not call it: they may share a process and a machine with anything.

import type { RelayConfig } from "../core/configuration/configuration.ts";
import type { Logger } from "../core/log.ts";
import { keepThreadsOn } from "./data-plane/native.ts";
import { chooseSenderThreads, type SenderThreadsChoice } from "./sender-threads.ts";
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

interface ThreadPlaces {
  /** Worker i runs on workerCpus[i]; empty: the kernel places the workers. */
  readonly workerCpus: readonly number[];
  readonly senderThreads: SenderThreadsChoice;
}

export function placeThreads(
  relay: Pick<RelayConfig, "cpus" | "workers" | "senderThreads">,
  log: Logger,
  system: PlacingSystem = realSystem,
): ThreadPlaces {
  const facts = system.readFacts();
  const workerCpus = placeWorkers(relay, log, facts, system);
  return { workerCpus, senderThreads: chooseSenderThreads(relay, { ...facts, workerCpus }) };
}

function placeWorkers(
  { cpus, workers }: Pick<RelayConfig, "cpus" | "workers">,
  log: Logger,
  facts: WorkerCpuFacts,
  system: PlacingSystem,
): readonly number[] {
  const chosen = chooseWorkerCpus(cpus, workers, facts);
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
