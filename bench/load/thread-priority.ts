// Raises the priority of a native thread of this process, so that a load generator keeps its pace.
//
// A late sender sends a burst, and the relay's latency then measures the burst. The relay's worker has the same
// priority (RaisedPriority in native/net/thread.h).

import { readdirSync, readFileSync } from "node:fs";
import { setPriority } from "node:os";

const nice = -15;

/** Threads with this name (at most 15 characters). Returns false if the system refuses. */
export function raiseThreads(name: string): boolean {
  try {
    for (const id of readdirSync("/proc/self/task")) {
      const own = readFileSync(`/proc/self/task/${id}/comm`, "latin1").trim();
      // On Linux, the priority belongs to a thread, and the id of a process is that of its first one.
      if (own === name) setPriority(Number(id), nice);
    }
    return true;
  } catch {
    return false;
  }
}
