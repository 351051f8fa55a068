// Processor time of a process and all its descendants, by /proc.

import { readdirSync, readFileSync } from "node:fs";

/** Unit of processor times in /proc (USER_HZ). */
const tickUs = 10_000;

interface ProcessTimes {
  readonly parent: number;
  readonly us: number;
}

function readTimes(pid: string): ProcessTimes | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // After the name, which may contain spaces: state, parent, …, utime and stime as the 12th and 13th.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const us = (Number(fields[11]) + Number(fields[12])) * tickUs;
    return { parent: Number(fields[1]), us };
  } catch {
    return null; // The process has ended.
  }
}

/** In microseconds. Descendants that have ended are left out. */
export function processTreeUs(pid: number): number {
  const all = new Map<number, ProcessTimes>();
  for (const name of readdirSync("/proc")) {
    const times = /^\d+$/.test(name) ? readTimes(name) : null;
    if (times) all.set(Number(name), times);
  }
  const isDescendant = (of: number): boolean => {
    for (let at = of; at > 1; at = all.get(at)?.parent ?? 0) if (at === pid) return true;
    return false;
  };
  return [...all].reduce((sum, [each, { us }]) => (isDescendant(each) ? sum + us : sum), 0);
}
