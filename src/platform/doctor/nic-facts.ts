// Facts about NICs: rings, queues, interrupts, offloads, losses.
//
// A part of facts.ts. From sysfs and /proc, and from ethtool(8) if installed.

import { expandCpuList } from "../../core/cpu-list.ts";
import { numberIn, type SystemReader, trimmed } from "./reader.ts";

interface Rings {
  readonly receive: number;
  readonly receiveMax: number;
  readonly transmit: number;
  readonly transmitMax: number;
}

interface Feature {
  readonly isOn: boolean;
  /** The driver does not allow changes. */
  readonly isFixed: boolean;
}

export interface NicDetails {
  readonly name: string;
  readonly driver: string | null;
  /** NUMA node of the NIC; null: unknown, or the machine has only one. */
  readonly node: number | null;
  readonly interrupts: readonly { readonly number: number; readonly cpus: readonly number[] }[];
  readonly rings: Rings | null;
  /** Maximum number of queues; null: unknown. */
  readonly queuesMax: number | null;
  readonly segmentsUdp: Feature | null;
  readonly adaptiveCoalescing: boolean | null;
  /** Maximum delay of an interrupt for a packet. */
  readonly coalescingUs: number | null;
  readonly received: number | null;
  /** Packets lost in the NIC because the host did not read them in time. */
  readonly missed: number | null;
  /** Rounds of polling without packets before interrupts are on again; null: unknown. */
  readonly deferredInterrupts: number | null;
  /** Time until the kernel polls a queue that nobody polls; null: unknown. */
  readonly flushTimeoutNs: number | null;
  /** Distributes packets to CPUs in software (RPS). */
  readonly steersInSoftware: boolean;
}

export interface NicFacts {
  readonly hasEthtool: boolean;
  readonly details: readonly NicDetails[];
}

const netFolder = "/sys/class/net";

export function readNicFacts(reader: SystemReader, names: readonly string[]): NicFacts {
  const hasEthtool = reader.run("ethtool", "--version") !== null;
  return { hasEthtool, details: names.map((name) => readNic(reader, name, hasEthtool)) };
}

function readNic(reader: SystemReader, name: string, hasEthtool: boolean): NicDetails {
  const folder = `${netFolder}/${name}`;
  const ask = (option: string) => (hasEthtool ? (reader.run("ethtool", option, name) ?? "") : "");
  const coalescing = ask("-c");
  const statistic = (what: string) => numberIn(reader.readText(`${folder}/statistics/${what}`));
  const missed = ["rx_missed_errors", "rx_fifo_errors"].map(statistic);
  const node = trimmed(reader.readText(`${folder}/device/numa_node`));
  const driver = /^DRIVER=(.+)$/m.exec(reader.readText(`${folder}/device/uevent`) ?? "")?.[1];
  return {
    name,
    driver: driver ?? null,
    node: node === null || Number(node) < 0 ? null : Number(node),
    interrupts: readInterrupts(reader, name),
    rings: ringsOf(ask("-g")),
    queuesMax: queuesMaxOf(ask("-l")),
    segmentsUdp: featureOf(ask("-k"), "tx-udp-segmentation"),
    adaptiveCoalescing: flagOf(coalescing, /^Adaptive RX:\s*(on|off)/m),
    coalescingUs: numberAfter(coalescing, "rx-usecs"),
    received: statistic("rx_packets"),
    missed: missed.every((count) => count === null)
      ? null
      : missed.reduce<number>((sum, count) => sum + (count ?? 0), 0),
    deferredInterrupts: numberIn(reader.readText(`${folder}/napi_defer_hard_irqs`)),
    flushTimeoutNs: numberIn(reader.readText(`${folder}/gro_flush_timeout`)),
    steersInSoftware: reader
      .list(`${folder}/queues`)
      .some((queue) =>
        /[1-9a-f]/.test(reader.readText(`${folder}/queues/${queue}/rps_cpus`) ?? ""),
      ),
  };
}

/** Queues of the device, or on virtual machines of the parent device. */
function readInterrupts(reader: SystemReader, name: string) {
  const folders = [
    `${netFolder}/${name}/device/msi_irqs`,
    `${netFolder}/${name}/device/../msi_irqs`,
  ];
  const numbers =
    folders.map((folder) => reader.list(folder)).find((list) => list.length > 0) ?? [];
  return numbers.map(Number).map((number) => {
    const folder = `/proc/irq/${number}`;
    const effective = trimmed(reader.readText(`${folder}/effective_affinity_list`));
    const list = effective || trimmed(reader.readText(`${folder}/smp_affinity_list`));
    return { number, cpus: expandCpuList(list ?? "") };
  });
}

function numberAfter(text: string, name: string): number | null {
  return numberIn(new RegExp(`^${name}:[ \\t]*(\\d+)[ \\t]*$`, "m").exec(text)?.[1] ?? null);
}

function halves(text: string): [max: string, now: string] {
  const [max = "", now = ""] = text.split(/^Current hardware settings:$/m);
  return [max, now];
}

function ringsOf(text: string): Rings | null {
  const [max, now] = halves(text);
  const values = [
    numberAfter(now, "RX"),
    numberAfter(max, "RX"),
    numberAfter(now, "TX"),
    numberAfter(max, "TX"),
  ];
  const [receive, receiveMax, transmit, transmitMax] = values.map((value) => value ?? 0);
  if (!receive || !receiveMax || !transmit || !transmitMax) return null;
  return { receive, receiveMax, transmit, transmitMax };
}

function queuesMaxOf(text: string): number | null {
  const [max] = halves(text);
  return numberAfter(max, "Combined") ?? numberAfter(max, "RX");
}

function featureOf(text: string, name: string): Feature | null {
  const match = new RegExp(`^\\s*${name}: (on|off)( \\[fixed\\])?`, "m").exec(text);
  return match ? { isOn: match[1] === "on", isFixed: match[2] !== undefined } : null;
}

function flagOf(text: string, pattern: RegExp): boolean | null {
  const flag = pattern.exec(text)?.[1];
  return flag === undefined ? null : flag === "on";
}
