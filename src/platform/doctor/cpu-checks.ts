// The checks of CPUs: idle states, frequency and interrupts of the workers' CPUs. Pure.
//
// A part of checks.ts. docs/tuning.md states the benefit of each remedy and how to revert it.

import { expandCpuList } from "../../core/cpu-list.ts";
import { chooseSenderThreads, senderThreadsText, spareCpus } from "../../relay/sender-threads.ts";
import { chooseWorkerCpus, workerCpusText } from "../../relay/worker-cpus.ts";
import { about, type Found } from "./finding.ts";
import type { Input } from "./input.ts";

/** Above this, the wake-up costs more than the relay's own work for a packet. */
const idleLatencyMaxUs = 10;

function isPolling({ configured }: Input): boolean {
  return configured.wait !== "block";
}

export function siblings(input: Input): Found {
  const { ok, warn } = about(
    "cpu-siblings",
    "Two CPUs of one core share its execution units: load on the sibling slows the worker.",
  );
  const { facts, configured } = input;
  const isolated = expandCpuList(facts.isolatedCpus ?? "");
  const shared = facts.cpu.siblings.flatMap((group) => {
    const [worker, ...more] = group.filter((cpu) => configured.cpus.includes(cpu));
    if (worker === undefined) return [];
    const others = group.filter((cpu) => cpu !== worker);
    const isBusy =
      more.length > 0 || (isPolling(input) && others.some((cpu) => !isolated.includes(cpu)));
    return isBusy ? [{ worker, others }] : [];
  });
  if (configured.cpus.length === 0) return ok("relay.cpus is not set: nothing to compare");
  if (shared.length === 0) return ok("no worker shares its core");
  const off = shared.flatMap(({ others }) => others);
  return warn(
    shared
      .map(
        ({ worker, others }) =>
          `CPU ${worker} of a worker shares its core with CPU ${others.join(", ")}`,
      )
      .join("; "),
    off.map((cpu) => `echo 0 > /sys/devices/system/cpu/cpu${cpu}/online`).join(" && ") +
      " (and remove them from relay.cpus)",
  );
}

const workerName = /^shredway-\d+$/;

/** For the CPUs of this command, which may have another affinity than the service. */
export function workerCpus({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "worker-cpus",
    "A worker and another program's thread that may run on the same CPU only wait for each other.",
  );
  const { pinned } = facts.workerCpus;
  const conflicts = [...new Set(pinned.map(({ cpu }) => cpu))].flatMap((cpu) => {
    const here = pinned.filter((thread) => thread.cpu === cpu);
    const isOfWorker = here.some(({ name }) => workerName.test(name));
    if (!isOfWorker && !configured.cpus.includes(cpu)) return [];
    const processes = new Set(here.map(({ pid }) => pid)).size;
    return processes > (isOfWorker ? 1 : 0) ? [here] : [];
  });
  if (conflicts.length > 0) {
    const text = conflicts.map(
      (here) =>
        `CPU ${here[0]?.cpu}: ${here.map(({ name, pid }) => `${name} of process ${pid}`).join(", ")}`,
    );
    return warn(
      `threads of several programs are pinned to a worker's CPU: ${text.join("; ")}`,
      "set relay.cpus to other CPUs, or restart the service, which avoids the pinned threads that it can see",
    );
  }
  return ok(workerCpusText(chosenCpus({ facts, configured })));
}

function chosenCpus({ facts, configured }: Pick<Input, "facts" | "configured">) {
  const wanted = configured.cpus.length > 0 ? configured.cpus : undefined;
  const others = facts.workerCpus.pinned.filter(({ name }) => !workerName.test(name));
  return chooseWorkerCpus(configured.placesWorkers ? wanted : "none", configured.workers, {
    ...facts.workerCpus,
    pinned: others,
  });
}

export function senderThreads({ facts, configured, probes }: Input): Found {
  const { ok, warn } = about(
    "sender-threads",
    "A sender thread without a CPU of its own makes its worker wait for it.",
  );
  const threadFacts = {
    ...facts.workerCpus,
    workerCpus: chosenCpus({ facts, configured }).workers,
  };
  const clones = configured.transmit !== "socket" && probes.cloneRefusal === null;
  const choice = chooseSenderThreads(configured, threadFacts);
  const text = senderThreadsText(clones ? 0 : choice.perWorker, choice);
  const spare = Math.max(0, spareCpus(configured.workers, threadFacts));
  if (clones || configured.workers * choice.perWorker <= spare) return ok(text);
  return warn(
    `${text}, but only ${spare} CPUs remain beside the workers and the other threads`,
    "set relay.senderThreads to auto, or give the machine more CPUs",
  );
}

/** As the user of this command, which may have more privileges than the service. */
export function workerPriority({ probes, configured }: Input): Found {
  const { ok, warn } = about(
    "worker-priority",
    "Without priority, a worker waits for JavaScript and garbage collection on its CPU, which makes the slowest shreds slower.",
  );
  if (probes.priorityRefusal === null) {
    return ok(`workers may precede other threads (relay.workers: ${configured.workers})`);
  }
  return warn(
    `the system refuses to raise the workers' priority: ${probes.priorityRefusal}`,
    "in the systemd unit: LimitNICE=-15 (in a container: --cap-add SYS_NICE)",
  );
}

/** As the user of this command, for one worker. */
export function workerMemory({ probes, configured }: Input): Found {
  const { ok, warn } = about(
    "worker-memory",
    "A page of a worker that was swapped out, or code that was dropped, costs milliseconds when a packet needs it.",
  );
  if (!configured.lockMemory) return ok("relay.lockMemory: false");
  if (probes.memoryLockRefusal === null) return ok("relay.lockMemory: true works here");
  return warn(
    `relay.lockMemory: true, but the system refuses to lock the workers' memory: ${probes.memoryLockRefusal}`,
    "in the systemd unit: LimitMEMLOCK=infinity (in a container: --ulimit memlock=-1)",
  );
}

export function idleStates({ facts }: Input): Found {
  const { ok, warn } = about(
    "cpu-idle",
    "A CPU in a deep idle state needs this long to wake up for the first packet of a burst.",
  );
  const states = facts.cpu.idleStates;
  if (states.length === 0) return ok("the machine shows no idle states");
  const deep = states.filter(
    ({ latencyUs, isDisabled }) => !isDisabled && latencyUs > idleLatencyMaxUs,
  );
  if (deep.length === 0) return ok(`no idle state takes more than ${idleLatencyMaxUs} µs`);
  return warn(
    `idle states in use: ${deep.map(({ name, latencyUs }) => `${name} ${latencyUs} µs`).join(", ")}`,
    "for s in /sys/devices/system/cpu/cpu*/cpuidle/state*; do " +
      `[ $(cat $s/latency) -gt ${idleLatencyMaxUs} ] && echo 1 > $s/disable; done`,
  );
}

export function ticks({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "cpu-ticks",
    "The timer tick interrupts a worker that never sleeps up to 1000 times per second.",
  );
  if (configured.wait !== "busy" || configured.cpus.length === 0)
    return ok(`not needed with wait: ${configured.wait}`);
  const free = expandCpuList((facts.cpu.nohzFull ?? "").replace("(null)", ""));
  const ticking = configured.cpus.filter((cpu) => !free.includes(cpu));
  if (ticking.length === 0) return ok(`no tick on CPU ${configured.cpus.join(", ")}`);
  return warn(
    `CPU ${ticking.join(", ")} of workers is not in nohz_full`,
    `boot with nohz_full=${configured.cpus.join(",")} rcu_nocbs=${configured.cpus.join(",")} (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub)`,
  );
}

export function memoryNode({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "cpu-node",
    "Packets cross between processors if the NIC is attached to a different one than the worker.",
  );
  const { nodes } = facts.cpu;
  const nics = facts.nic.details.filter(({ node }) => node !== null);
  if (nodes.length < 2 || nics.length === 0 || configured.cpus.length === 0)
    return ok(nodes.length < 2 ? "one memory node" : "nothing to compare");
  const nodeOf = (cpu: number) => nodes.find(({ cpus }) => cpus.includes(cpu))?.node;
  const near = nics.filter(({ node }) => configured.cpus.every((cpu) => nodeOf(cpu) === node));
  if (near.length > 0)
    return ok(`workers run on the node of ${near.map(({ name }) => name).join(", ")}`);
  const [nic] = nics;
  const cpus = nodes.find(({ node }) => node === nic?.node)?.cpus ?? [];
  return warn(
    `${nic?.name} is attached to node ${nic?.node}, workers run on CPU ${configured.cpus.join(", ")} of another`,
    `set relay.cpus to CPUs of node ${nic?.node}: ${cpus.join(", ")}`,
  );
}

export function irqBalance({ facts, configured }: Input): Found {
  const { ok, warn } = about(
    "irq-balance",
    "irqbalance moves the NIC's interrupts every ten seconds, also to the workers' CPUs.",
  );
  if (!facts.cpu.hasIrqBalance) return ok("irqbalance is not running");
  if (configured.cpus.length === 0) return ok("irqbalance is running; relay.cpus is not set");
  return warn(
    "irqbalance is running, and relay.cpus is set",
    `echo IRQBALANCE_BANNED_CPULIST=${configured.cpus.join(",")} >> /etc/default/irqbalance && systemctl restart irqbalance (or: systemctl disable --now irqbalance)`,
  );
}
