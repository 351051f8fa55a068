// NIC checks: packet loss, delays and missing offloads. Pure.
//
// A part of checks.ts.

import { about, type Found } from "./finding.ts";
import type { Input } from "./input.ts";
import type { NicDetails } from "./nic-facts.ts";

const coalescingMaxUs = 20;
/** One in a million; less may be a burst at any time since boot. */
const missedShareMax = 1e-6;

/** One finding for all NICs: each NIC with a problem has a text and a remedy. */
function forEachNic(
  check: string,
  why: string,
  { facts }: Input,
  inspect: (nic: NicDetails) => { text: string; remedy: string | null } | null,
): Found {
  const findings = facts.nic.details.flatMap((nic) => inspect(nic) ?? []);
  const { ok, withLevel } = about(check, why);
  if (findings.length === 0) return ok("no NIC found");
  const remedies = findings.flatMap(({ remedy }) => remedy ?? []);
  return withLevel(
    remedies.length > 0 ? "warn" : "ok",
    findings.map(({ text }) => text).join("; "),
    remedies.length > 0 ? remedies.join(" && ") : null,
  );
}

export function ethtool({ facts }: Input): Found {
  const { ok, warn } = about(
    "ethtool",
    "ethtool reads and sets rings, queues and offloads of a NIC.",
  );
  const isNeeded = facts.nic.details.length > 0;
  if (facts.nic.hasEthtool || !isNeeded) return ok(isNeeded ? "ethtool is installed" : "no NIC");
  return warn("ethtool is not installed: NICs are not checked", "apt-get install -y ethtool");
}

export function rings(input: Input): Found {
  const why =
    "Packets wait in the NIC's ring until the kernel takes them; a short ring overflows in bursts.";
  return forEachNic("nic-rings", why, input, ({ name, driver, rings: now }) => {
    if (!now) return null;
    const { receive, receiveMax, transmit, transmitMax } = now;
    const text = `${name}${driver === null ? "" : ` (${driver})`}: receive ring ${receive} of ${receiveMax}, transmit ${transmit} of ${transmitMax}`;
    const isShort = receive < receiveMax || transmit < transmitMax;
    return {
      text,
      remedy: isShort ? `ethtool -G ${name} rx ${receiveMax} tx ${transmitMax}` : null,
    };
  });
}

export function interrupts(input: Input): Found {
  const why = "A NIC interrupt on a worker's CPU stops the worker while the kernel handles it.";
  const { cpus, wait } = input.configured;
  return forEachNic("nic-interrupts", why, input, ({ name, interrupts: all }) => {
    if (all.length === 0) return null;
    const on = all.filter((one) => one.cpus.some((cpu) => cpus.includes(cpu)));
    const free = Array.from({ length: input.facts.cpuCount }, (_, cpu) => cpu).filter(
      (cpu) => !cpus.includes(cpu),
    );
    const isWrong = wait !== "block" && on.length > 0 && free.length > 0;
    return {
      text: `${name}: ${all.length} interrupts, ${on.length} of them on workers' CPUs`,
      remedy: isWrong
        ? on
            .map(({ number }) => `echo ${free.join(",")} > /proc/irq/${number}/smp_affinity_list`)
            .join(" && ")
        : null,
    };
  });
}

export function segmentation(input: Input): Found {
  const why =
    "A NIC with UDP segmentation offload receives a burst to a destination as one packet.";
  return forEachNic("nic-segmentation", why, input, ({ name, segmentsUdp }) => {
    if (!segmentsUdp) return null;
    const { isOn, isFixed } = segmentsUdp;
    const state = isOn
      ? "segments UDP"
      : isFixed
        ? "has no UDP segmentation offload: the kernel segments"
        : "supports UDP segmentation offload, but it is off";
    return {
      text: `${name} ${state}`,
      remedy: isOn || isFixed ? null : `ethtool -K ${name} tx-udp-segmentation on`,
    };
  });
}

export function coalescing(input: Input): Found {
  const why =
    "The NIC waits this long for more packets before it raises an interrupt: it trades latency for CPU time.";
  return forEachNic("nic-coalescing", why, input, ({ name, adaptiveCoalescing, coalescingUs }) => {
    if (adaptiveCoalescing === null && coalescingUs === null) return null;
    const isWaiting = adaptiveCoalescing === true || (coalescingUs ?? 0) > coalescingMaxUs;
    const adaptive =
      adaptiveCoalescing === null ? "" : `, adaptive ${adaptiveCoalescing ? "on" : "off"}`;
    const off = adaptiveCoalescing ? "adaptive-rx off " : "";
    return {
      text: `${name}: ${coalescingUs ?? "unknown"} µs${adaptive}`,
      remedy: isWaiting ? `ethtool -C ${name} ${off}rx-usecs 8` : null,
    };
  });
}

export function nicDrops(input: Input): Found {
  const why = "Packets dropped by the NIC are invisible to the relay and cannot be recovered.";
  return forEachNic("nic-drops", why, input, ({ name, received, missed, rings: now }) => {
    if (missed === null || received === null) return null;
    const isMuch = missed > 0 && missed / (received + missed) > missedShareMax;
    const longer =
      now && now.receive < now.receiveMax ? `ethtool -G ${name} rx ${now.receiveMax}` : null;
    return {
      text: `${name}: ${missed} of ${received + missed} packets missed since the interface came up`,
      remedy: isMuch
        ? (longer ?? `spread its queues over more CPUs: ethtool -l ${name}, /proc/interrupts`)
        : null,
    };
  });
}

// The values of the kernel's documentation of NAPI (busy polling): two empty rounds, then 200 µs.
const deferredRounds = 2;
const flushTimeoutNs = 200_000;

export function deferral(input: Input): Found {
  const why =
    "A worker that polls the NIC itself is interrupted for each packet unless the NIC defers its interrupts.";
  const isWanted = input.configured.busyPollMicroseconds > 0;
  return forEachNic("busy-poll-irqs", why, input, (nic) => {
    const { name, deferredInterrupts, flushTimeoutNs: timeout } = nic;
    if (deferredInterrupts === null || timeout === null) return null;
    const folder = `/sys/class/net/${name}`;
    const isSet = deferredInterrupts > 0 && timeout > 0;
    return {
      text: `${name}: interrupts deferred for ${deferredInterrupts} rounds, at most ${timeout / 1000} µs`,
      remedy:
        isWanted && !isSet
          ? `echo ${deferredRounds} > ${folder}/napi_defer_hard_irqs && ` +
            `echo ${flushTimeoutNs} > ${folder}/gro_flush_timeout`
          : null,
    };
  });
}
