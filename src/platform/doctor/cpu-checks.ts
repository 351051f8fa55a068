// The checks of CPUs: idle states, frequency and interrupts of the workers' CPUs. Pure.
//
// A part of checks.ts. docs/tuning.md states the benefit of each remedy and how to revert it.

import { about, type Found } from "./finding.ts";
import type { Input } from "./input.ts";
import { expandCpuList } from "./reader.ts";

/** Above this, the wake-up costs more than the relay's own work for a packet. */
const idleLatencyMaxUs = 10;

function isPolling({ wishes }: Input): boolean {
  return wishes.wait !== "block";
}

export function siblings(input: Input): Found {
  const { ok, warn } = about(
    "cpu-siblings",
    "Two CPUs of one core share its units: what runs on the other one slows the worker.",
  );
  const { facts, wishes } = input;
  const isolated = expandCpuList(facts.isolatedCpus ?? "");
  const shared = facts.cpu.siblings.flatMap((group) => {
    const [worker, ...more] = group.filter((cpu) => wishes.cpus.includes(cpu));
    if (worker === undefined) return [];
    const others = group.filter((cpu) => cpu !== worker);
    const isBusy =
      more.length > 0 || (isPolling(input) && others.some((cpu) => !isolated.includes(cpu)));
    return isBusy ? [{ worker, others }] : [];
  });
  if (wishes.cpus.length === 0) return ok("relay.cpus is not set: nothing to compare");
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
      " (and take them out of relay.cpus)",
  );
}

export function idleStates({ facts }: Input): Found {
  const { ok, warn } = about(
    "cpu-idle",
    "A CPU in a deep sleep needs that long to wake up for the first packet of a burst.",
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

export function ticks({ facts, wishes }: Input): Found {
  const { ok, warn } = about(
    "cpu-ticks",
    "The clock's tick interrupts a worker that never sleeps up to 1000 times a second.",
  );
  if (wishes.wait !== "busy" || wishes.cpus.length === 0)
    return ok(`not needed with wait: ${wishes.wait}`);
  const free = expandCpuList((facts.cpu.nohzFull ?? "").replace("(null)", ""));
  const ticking = wishes.cpus.filter((cpu) => !free.includes(cpu));
  if (ticking.length === 0) return ok(`no tick on CPU ${wishes.cpus.join(", ")}`);
  return warn(
    `CPU ${ticking.join(", ")} of workers is not in nohz_full`,
    `boot with nohz_full=${wishes.cpus.join(",")} rcu_nocbs=${wishes.cpus.join(",")} (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub)`,
  );
}

export function memoryNode({ facts, wishes }: Input): Found {
  const { ok, warn } = about(
    "cpu-node",
    "Packets of a card that is attached to another processor cross between the two.",
  );
  const { nodes } = facts.cpu;
  const cards = facts.card.details.filter(({ node }) => node !== null);
  if (nodes.length < 2 || cards.length === 0 || wishes.cpus.length === 0)
    return ok(nodes.length < 2 ? "one memory node" : "nothing to compare");
  const nodeOf = (cpu: number) => nodes.find(({ cpus }) => cpus.includes(cpu))?.node;
  const near = cards.filter(({ node }) => wishes.cpus.every((cpu) => nodeOf(cpu) === node));
  if (near.length > 0) return ok(`workers run beside ${near.map(({ name }) => name).join(", ")}`);
  const [card] = cards;
  const cpus = nodes.find(({ node }) => node === card?.node)?.cpus ?? [];
  return warn(
    `${card?.name} is attached to node ${card?.node}, workers run on CPU ${wishes.cpus.join(", ")} of another`,
    `set relay.cpus to CPUs of node ${card?.node}: ${cpus.join(", ")}`,
  );
}

export function irqBalance({ facts, wishes }: Input): Found {
  const { ok, warn } = about(
    "irq-balance",
    "irqbalance moves the card's interrupts every ten seconds, onto the workers' CPUs as well.",
  );
  if (!facts.cpu.hasIrqBalance) return ok("irqbalance does not run");
  if (wishes.cpus.length === 0) return ok("irqbalance runs; relay.cpus is not set");
  return warn(
    "irqbalance runs, and workers have CPUs of their own",
    `echo IRQBALANCE_BANNED_CPULIST=${wishes.cpus.join(",")} >> /etc/default/irqbalance && systemctl restart irqbalance (or: systemctl disable --now irqbalance)`,
  );
}
