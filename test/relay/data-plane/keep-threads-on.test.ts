import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { expandCpuList, formatCpuList } from "../../../src/core/cpu-list.ts";
import { keepThreadsOn } from "../../../src/relay/data-plane/native.ts";
import { Relay } from "../../../src/relay/data-plane/relay.ts";

/** CPUs of the threads of this process with this name; default: of all. */
function cpusOf(name?: string): string[] {
  return readdirSync("/proc/self/task").flatMap((thread) => {
    try {
      const status = readFileSync(`/proc/self/task/${thread}/status`, "utf8");
      if (name !== undefined && !status.startsWith(`Name:\t${name}\n`)) return [];
      return [/^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? ""];
    } catch {
      return []; // it has ended
    }
  });
}

it("moves the threads of Node.js, and those that start later follow", async () => {
  const before = expandCpuList(cpusOf()[0] ?? "");
  const last = before.slice(-1);
  try {
    expect(keepThreadsOn(last)).toBeNull();
    expect(new Set(cpusOf())).toEqual(new Set([formatCpuList(last)]));
    const worker = new Worker(
      'require("node:worker_threads").parentPort.once("message", () => {})',
      {
        eval: true,
      },
    );
    await once(worker, "online");
    const during = cpusOf();
    await worker.terminate();
    expect(during.length).toBeGreaterThan(1);
    expect(new Set(during)).toEqual(new Set([formatCpuList(last)]));
  } finally {
    expect(keepThreadsOn(before)).toBeNull();
  }
  expect(new Set(cpusOf())).toEqual(new Set([formatCpuList(before)]));
});

it("keeps the deshred thread of a relay with the others, and its worker on the given CPU", () => {
  const before = expandCpuList(cpusOf()[0] ?? "");
  const [first = 0] = before;
  const last = before.at(-1) ?? 0;
  try {
    expect(keepThreadsOn([first])).toBeNull();
    const relay = Relay.open({
      listen: ["127.0.0.1:0"],
      workers: 1,
      tiers: ["any"],
      authentication: "off",
      shredVersion: 0,
      prefault: false,
      cpus: [last],
    });
    try {
      expect(cpusOf("shredway-0")).toEqual([`${last}`]);
      expect(cpusOf("shredway-see")).toEqual([`${first}`]);
    } finally {
      relay.close();
    }
  } finally {
    expect(keepThreadsOn(before)).toBeNull();
  }
});

it("says why the system refuses", () => {
  expect(keepThreadsOn([])).toBe("cannot move a thread: Invalid argument");
  expect(keepThreadsOn([1024])).toBe("expected a CPU number from 0 to 1023, got 1024");
});
