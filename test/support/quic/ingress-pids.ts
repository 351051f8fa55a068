// Process ids of the QUIC ingress, read from the kernel: for tests that kill it.

import { readFileSync } from "node:fs";

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // the process has ended
  }
}

/** The processes of connections that `parent` started. */
export function ingressPids(parent: number): number[] {
  return read(`/proc/${parent}/task/${parent}/children`)
    .split(" ")
    .filter((text) => text !== "")
    .map(Number)
    .filter((pid) => read(`/proc/${pid}/cmdline`).includes("ingress-process-main"));
}
