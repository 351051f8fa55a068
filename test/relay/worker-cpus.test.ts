import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expandCpuList } from "../../src/core/cpu-list.ts";
import {
  chooseWorkerCpus,
  type WorkerCpuFacts,
  workerCpusText,
} from "../../src/relay/worker-cpus.ts";

const machine = (allowed: string, change: Partial<WorkerCpuFacts> = {}): WorkerCpuFacts => ({
  allowed: expandCpuList(allowed),
  isolated: [],
  siblings: [],
  nearNic: [],
  pinned: [],
  hasQuota: false,
  ...change,
});
/** Two CPUs per core: 0 and `cores`, 1 and `cores` + 1, … */
const pairs = (cores: number) => Array.from({ length: cores }, (_, i) => [i, i + cores]);
const pinned = (...cpus: number[]) => cpus.map((cpu) => ({ cpu, pid: 9, name: "other" }));

/** Expected: the workers' CPUs | those of the other threads. */
const placed: readonly (readonly [string, number, WorkerCpuFacts, string])[] = [
  ["four CPUs", 1, machine("0-3"), "1 | 0,2-3"],
  ["two workers on four CPUs", 2, machine("0-3"), "1,2 | 0,3"],
  ["a cpuset without CPU 0", 2, machine("4-9"), "4,5 | 6-9"],
  ["CPU 0 only if nothing else is left", 2, machine("0-3", { pinned: pinned(2, 3) }), "1,0 | 2-3"],
  ["two CPUs per core: idle siblings", 1, machine("0-7", { siblings: pairs(4) }), "1 | 0,2-4,6-7"],
  [
    "two CPUs per core: siblings in use if few CPUs remain",
    2,
    machine("0-5", { siblings: pairs(3) }),
    "1,2 | 0,3-5",
  ],
  [
    "the other CPU of core 0",
    1,
    machine("0-3", { siblings: pairs(2), pinned: pinned(1) }),
    "2 | 0-1,3",
  ],
  [
    "a core with a pinned thread on its other CPU",
    1,
    machine("0-7", { siblings: pairs(4), pinned: pinned(5) }),
    "2 | 0-1,3-5,7",
  ],
  ["isolated CPUs", 1, machine("0-5", { isolated: [1, 2] }), "3 | 0,4-5"],
  ["the node of the card", 2, machine("0-7", { nearNic: [0, 4, 5, 6, 7] }), "4,5 | 0-3,6-7"],
  ["more workers than the node has", 2, machine("0-5", { nearNic: [0, 5] }), "5,1 | 0,2-4"],
];

const refused: readonly (readonly [string, number, WorkerCpuFacts, RegExp])[] = [
  ["two CPUs", 1, machine("0-1"), /would need 4 CPUs, got 2$/],
  [
    "three workers on four CPUs",
    3,
    machine("0-3"),
    /^relay.workers: 3 .* would need 5 CPUs, got 4$/,
  ],
  ["isolated CPUs", 1, machine("0-4", { isolated: [3, 4] }), /would need 4 CPUs, got 3$/],
  ["unknown CPUs", 1, machine(""), /got 0$/],
  [
    "pinned threads on most cores",
    2,
    machine("0-3", { pinned: pinned(0, 1, 2) }),
    /^relay.workers: 2 would need as many cores without pinned .*, got 1$/,
  ],
  [
    "as many workers as cores",
    2,
    machine("0-3", { siblings: pairs(2) }),
    /^no core would remain for the other threads alone$/,
  ],
  ["a limit of CPU time", 1, machine("0-7", { hasQuota: true }), /\(cpu\.max\)$/],
];

describe("chooseWorkerCpus without relay.cpus", () => {
  it.each(placed)("gives each worker a core: %s", (_, workers, facts, expected) => {
    const [cpus = "", others = ""] = expected.split(" | ");
    expect(chooseWorkerCpus(undefined, workers, facts)).toEqual({
      workers: cpus.split(",").map(Number),
      others: expandCpuList(others),
      reason: "cores of their own",
    });
  });

  it.each(refused)("leaves it to the kernel: %s", (_, workers, facts, reason) => {
    const chosen = chooseWorkerCpus(undefined, workers, facts);
    expect(chosen).toMatchObject({ workers: [], others: [] });
    expect(chosen.reason).toMatch(reason);
  });

  it("never shares a core between workers, or a CPU with the other threads", () => {
    const cpus = fc.uniqueArray(fc.integer({ min: 0, max: 15 }));
    const facts = fc.record({
      allowed: cpus,
      isolated: cpus,
      siblings: fc.constantFrom([], pairs(8), [expandCpuList("0-7"), expandCpuList("8-15")]),
      nearNic: cpus,
      pinned: cpus.map((list) => pinned(...list.slice(0, 4))),
      hasQuota: fc.boolean(),
    });
    let placedCount = 0;
    const property = fc.property(fc.integer({ min: 1, max: 6 }), facts, (count, given) => {
      const { workers, others } = chooseWorkerCpus(undefined, count, given);
      if (workers.length === 0) {
        expect(others).toEqual([]);
        return;
      }
      placedCount++;
      const coreOf = (cpu: number) => given.siblings.findIndex((core) => core.includes(cpu));
      const cores = workers.map((cpu) => (coreOf(cpu) < 0 ? cpu : coreOf(cpu)));
      expect(new Set(cores).size).toBe(count);
      expect(others.length).toBeGreaterThanOrEqual(2);
      for (const cpu of [...workers, ...others]) {
        expect(given.allowed).toContain(cpu);
        expect(given.isolated).not.toContain(cpu);
      }
      expect(others.filter((cpu) => workers.includes(cpu))).toEqual([]);
      for (const { cpu } of given.pinned) {
        expect(workers).not.toContain(cpu);
        if (coreOf(cpu) >= 0) expect(workers.map(coreOf)).not.toContain(coreOf(cpu));
      }
      expect(chooseWorkerCpus(undefined, count, given)).toMatchObject({ workers, others });
    });
    fc.assert(property, { numRuns: 1000, seed: 28 });
    expect(placedCount).toBeGreaterThan(50);
  });
});

describe("chooseWorkerCpus with relay.cpus", () => {
  it("keeps the other threads away from the named CPUs, also from isolated ones", () => {
    expect(chooseWorkerCpus([2, 3], 2, machine("0-3"))).toEqual({
      workers: [2, 3],
      others: [0, 1],
      reason: "relay.cpus",
    });
    const isolated = machine("0-1,4-7", { isolated: [2, 3] });
    expect(chooseWorkerCpus([2, 3], 2, isolated).others).toEqual([0, 1, 4, 5, 6, 7]);
  });

  it("moves no other thread if fewer than two CPUs would remain", () => {
    const chosen = chooseWorkerCpus([0], 1, machine("0-1"));
    expect(chosen).toMatchObject({ workers: [0], others: [] });
  });

  it("uses named CPUs although they are isolated, pinned or few", () => {
    const facts = machine("0-1", { isolated: [1], pinned: pinned(1), hasQuota: true });
    expect(chooseWorkerCpus([1], 1, facts).workers).toEqual([1]);
  });

  it("places nothing with none", () => {
    const chosen = chooseWorkerCpus("none", 1, machine("0-7"));
    expect(chosen).toEqual({ workers: [], others: [], reason: "relay.cpus: none" });
  });
});

describe("workerCpusText", () => {
  it.each([
    [
      chooseWorkerCpus(undefined, 2, machine("0-7")),
      "relay: workers on CPU 1, 2 (cores of their own), other threads on CPU 0,3-7",
    ],
    [
      chooseWorkerCpus([1], 1, machine("0-1")),
      "relay: workers on CPU 1 (relay.cpus), other threads are not moved",
    ],
    [
      chooseWorkerCpus("none", 1, machine("0-7")),
      "relay: the kernel places the workers (relay.cpus: none)",
    ],
    [
      chooseWorkerCpus(undefined, 1, machine("0-1")),
      "relay: the kernel places the workers (relay.workers: 1 and the other threads would need 4 CPUs, got 2)",
    ],
  ])("says where the threads run and why (%#)", (chosen, text) => {
    expect(workerCpusText(chosen)).toBe(text);
  });
});
