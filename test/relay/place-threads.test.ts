import { describe, expect, it } from "vitest";
import { createLogger } from "../../src/core/log.ts";
import { placeThreads } from "../../src/relay/place-threads.ts";

const eightCpus = {
  allowed: [0, 1, 2, 3, 4, 5, 6, 7],
  isolated: [],
  siblings: [],
  nearNic: [],
  pinned: [],
  hasQuota: false,
};

function place(
  relay: Omit<Parameters<typeof placeThreads>[0], "senderThreads">,
  { refusal = null, allowed = eightCpus.allowed }: { refusal?: string | null; allowed?: number[] },
) {
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const moves: (readonly number[])[] = [];
  const places = placeThreads({ ...relay, senderThreads: "auto" }, log, {
    readFacts: () => ({ ...eightCpus, allowed }),
    keepThreadsOn: (others) => {
      moves.push(others);
      return refusal;
    },
  });
  const { workerCpus: cpus, senderThreads } = places;
  return { cpus, senderThreads, moves, lines: lines.map((line) => JSON.parse(line)) };
}

describe("placeThreads", () => {
  it("moves the other threads away and returns the workers' CPUs", () => {
    const { cpus, moves, lines } = place({ workers: 2 }, {});
    expect(cpus).toEqual([1, 2]);
    expect(moves).toEqual([[0, 3, 4, 5, 6, 7]]);
    expect(lines).toMatchObject([{ level: "info", msg: expect.stringContaining("CPU 1, 2") }]);
  });

  it("touches nothing on a small machine, and says why in one line", () => {
    const { cpus, moves, lines } = place({ workers: 1 }, { allowed: [0, 1] });
    expect(cpus).toEqual([]);
    expect(moves).toEqual([]);
    expect(lines).toMatchObject([
      { level: "info", msg: expect.stringContaining("the kernel places the workers") },
    ]);
  });

  it("gives sender threads CPUs that neither the workers nor the other threads need", () => {
    expect(place({ workers: 1 }, {}).senderThreads.perWorker).toBe(2);
    expect(place({ workers: 1 }, { allowed: [0, 1] }).senderThreads.perWorker).toBe(0);
  });

  it("leaves the workers to the kernel if the other threads cannot be moved", () => {
    const { cpus, lines } = place({ workers: 1 }, { refusal: "Operation not permitted" });
    expect(cpus).toEqual([]);
    expect(lines).toMatchObject([
      { level: "warn", msg: expect.stringContaining("Operation not permitted; the kernel places") },
    ]);
  });

  it("keeps named CPUs even then", () => {
    const { cpus, lines } = place(
      { workers: 1, cpus: [5] },
      { refusal: "Operation not permitted" },
    );
    expect(cpus).toEqual([5]);
    expect(lines).toMatchObject([{ level: "warn" }]);
  });
});
