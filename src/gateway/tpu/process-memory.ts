// Resident memory of another process, as the kernel reports it.

import { readFileSync } from "node:fs";

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
