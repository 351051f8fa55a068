// The checks of network cards: packet loss, delays, and missing offloads. Pure.
//
// A part of checks.ts.

import type { CardDetails } from "./card-facts.ts";
import { about, type Found } from "./finding.ts";
import type { Input } from "./input.ts";

const coalescingMaxUs = 20;
/** One in a million; less may be a burst at any time since boot. */
const missedShareMax = 1e-6;

/** One finding for all cards: each `wrong` card has a text and a remedy. */
function overCards(
  check: string,
  why: string,
  { facts }: Input,
  look: (card: CardDetails) => { text: string; remedy: string | null } | null,
): Found {
  const looks = facts.card.details.flatMap((card) => look(card) ?? []);
  const { ok, withLevel } = about(check, why);
  if (looks.length === 0) return ok("nothing is known of a network card");
  const remedies = looks.flatMap(({ remedy }) => remedy ?? []);
  return withLevel(
    remedies.length > 0 ? "warn" : "ok",
    looks.map(({ text }) => text).join("; "),
    remedies.length > 0 ? remedies.join(" && ") : null,
  );
}

export function ethtool({ facts }: Input): Found {
  const { ok, warn } = about(
    "ethtool",
    "Rings, queues and offloads of a network card are seen and set by it.",
  );
  const isNeeded = facts.card.details.length > 0;
  if (facts.card.hasEthtool || !isNeeded)
    return ok(isNeeded ? "ethtool is there" : "no network card");
  return warn(
    "ethtool is not installed: the cards are not looked at",
    "apt-get install -y ethtool",
  );
}

export function rings(input: Input): Found {
  const why =
    "Packets wait in the card's ring until the processor takes them; a short one overflows in bursts.";
  return overCards("card-rings", why, input, ({ name, driver, rings: now }) => {
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
  const why = "An interrupt of the card on a worker's CPU stops the worker for the kernel's work.";
  const { cpus, wait } = input.wishes;
  return overCards("card-interrupts", why, input, ({ name, interrupts: all }) => {
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
  const why = "A card that cuts UDP bursts itself takes a burst to a destination as one packet.";
  return overCards("card-segmentation", why, input, ({ name, segmentsUdp }) => {
    if (!segmentsUdp) return null;
    const { isOn, isFixed } = segmentsUdp;
    const state = isOn
      ? "cuts UDP bursts"
      : isFixed
        ? "cannot cut UDP bursts: the kernel does"
        : "supports UDP segmentation, but it is switched off";
    return {
      text: `${name} ${state}`,
      remedy: isOn || isFixed ? null : `ethtool -K ${name} tx-udp-segmentation on`,
    };
  });
}

export function coalescing(input: Input): Found {
  const why =
    "The card waits that long for more packets before it interrupts: latency for processor time.";
  return overCards("card-coalescing", why, input, ({ name, adaptiveCoalescing, coalescingUs }) => {
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

export function cardDrops(input: Input): Found {
  const why = "What the card drops nobody after it can count or recover.";
  return overCards("card-drops", why, input, ({ name, received, missed, rings: now }) => {
    if (missed === null || received === null) return null;
    const isMuch = missed > 0 && missed / (received + missed) > missedShareMax;
    const longer =
      now && now.receive < now.receiveMax ? `ethtool -G ${name} rx ${now.receiveMax}` : null;
    return {
      text: `${name}: ${missed} of ${received + missed} packets since it came up`,
      remedy: isMuch
        ? (longer ?? `spread its queues over more CPUs: ethtool -l ${name}, /proc/interrupts`)
        : null,
    };
  });
}
