import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { expandCpuList, formatCpuList } from "../../../src/core/cpu-list.ts";
import { keepThreadsOn } from "../../../src/relay/data-plane/native.ts";

/** CPUs of each thread of this process. */
function cpusOfThreads(): string[] {
  return readdirSync("/proc/self/task").flatMap((thread) => {
    try {
      const status = readFileSync(`/proc/self/task/${thread}/status`, "utf8");
      return [/^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? ""];
    } catch {
      return []; // it has ended
    }
  });
}

it("moves the threads of Node.js, and those that start later follow", async () => {
  const before = expandCpuList(cpusOfThreads()[0] ?? "");
  const last = before.slice(-1);
  try {
    expect(keepThreadsOn(last)).toBeNull();
    expect(new Set(cpusOfThreads())).toEqual(new Set([formatCpuList(last)]));
    const worker = new Worker(
      'require("node:worker_threads").parentPort.once("message", () => {})',
      {
        eval: true,
      },
    );
    await once(worker, "online");
    const during = cpusOfThreads();
    await worker.terminate();
    expect(during.length).toBeGreaterThan(1);
    expect(new Set(during)).toEqual(new Set([formatCpuList(last)]));
  } finally {
    expect(keepThreadsOn(before)).toBeNull();
  }
  expect(new Set(cpusOfThreads())).toEqual(new Set([formatCpuList(before)]));
});

it("says why the system refuses", () => {
  expect(keepThreadsOn([])).toBe("cannot move a thread: Invalid argument");
  expect(keepThreadsOn([1024])).toBe("expected a CPU number from 0 to 1023, got 1024");
});
