// Description of the machine that produced the numbers.

import { readFileSync } from "node:fs";
import { availableParallelism, cpus, release, totalmem } from "node:os";

export interface Machine {
  readonly cpu: string;
  readonly cpus: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly system: string;
  readonly virtualised: boolean;
  readonly node: string;
  readonly openssl: string;
  /** Load of other processes just before the run. */
  readonly loadAverage: number;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

export function describeMachine(): Machine {
  const osRelease = /^PRETTY_NAME="?([^"\n]*)/m.exec(readText("/etc/os-release"));
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cpus: availableParallelism(),
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    system: osRelease?.[1] ?? "unknown",
    virtualised: /^flags.*\bhypervisor\b/m.test(readText("/proc/cpuinfo")),
    node: process.version,
    openssl: process.versions.openssl ?? "none",
    loadAverage: Number(readText("/proc/loadavg").split(" ")[0] ?? 0),
  };
}

export function machineText(machine: Machine): string {
  return (
    `${machine.cpus} CPUs ${machine.cpu}${machine.virtualised ? " (virtual machine)" : ""}, ` +
    `${machine.memoryGib} GiB, ${machine.system}, Linux ${machine.kernel}, Node ${machine.node} ` +
    `(OpenSSL ${machine.openssl}), load before the run ${machine.loadAverage.toFixed(2)}`
  );
}
