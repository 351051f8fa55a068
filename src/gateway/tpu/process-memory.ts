// Memory of the confined processes, as the kernel reports and limits it.

import { readFileSync, writeFileSync } from "node:fs";

const kibibyte = 1024;

/** null: the process has ended, or the system does not show it. */
export function residentBytes(pid: number): number | null {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "latin1");
    const [, kibibytes] = /^VmRSS:\s*(\d+) kB$/m.exec(text) ?? [];
    return kibibytes === undefined ? null : Number(kibibytes) * kibibyte;
  } catch {
    return null;
  }
}

/** If memory runs out, the kernel ends this process before the gateway. */
export function preferForOutOfMemory(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // The memory limits still apply.
  }
}
