import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, expect, it } from "vitest";
import { guarded } from "./guard.ts";
import type { Sent } from "./network.ts";
import { checkFault, faultNames } from "./planted-faults.ts";
import { drawScenario } from "./quiet-scenario.ts";
import { regressionSeeds } from "./regression-seeds.ts";
import type { RunResult } from "./run-result.ts";
import { drawBusyScenario, hasSlotNode, type ScenarioEvent } from "./scenario.ts";
import { shrink } from "./shrink.ts";
import { World, type WorldOptions } from "./world.ts";

const folder = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const slots = 40;

/** Other seeds for every commit. Without a repository: always the same. */
function seedOfCommit(): number {
  try {
    const hash = execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8", stdio: "pipe" });
    return Number.parseInt(hash.slice(0, 8), 16);
  } catch {
    return 1;
  }
}

function runOf(
  seed: number,
  duration = slots,
  tamper?: WorldOptions["tamper"],
): Promise<RunResult> {
  return runWith(drawScenario(seed, duration), seed, tamper);
}

function runWith(
  events: readonly ScenarioEvent[],
  seed: number,
  tamper?: WorldOptions["tamper"],
): Promise<RunResult> {
  return guarded(() => new World({ seed, events, folder, tamper }).run());
}

describe("the simulated system", () => {
  const first = seedOfCommit();
  it.each([first, first + 1, first + 2])("holds every invariant with seed %d", async (seed) => {
    const result = await runOf(seed);
    expect(result.violation).toBeNull();
    // With a node for the slot, all sources are silent for most of so short a run.
    expect(hasSlotNode(seed) || result.sent > 500).toBe(true);
  });

  it.each(regressionSeeds)("holds every invariant with seed $seed: $found", async (regression) => {
    const { seed, slots: duration, hasQuietPeriods = false } = regression;
    const events = (hasQuietPeriods ? drawScenario : drawBusyScenario)(seed, duration);
    expect((await runWith(events, seed)).violation).toBeNull();
  });

  it("lands some of the submitted transactions, and not all", async () => {
    const { violation, accepted, landed } = await runOf(4, 60);
    expect(violation).toBeNull();
    expect(landed).toBeGreaterThan(20);
    expect(accepted).toBeGreaterThan(landed);
  });

  it("repeats a run byte for byte", async () => {
    const lines: string[][] = [];
    for (let run = 0; run < 2; run++) {
      const trace: string[] = [];
      lines.push(trace);
      const events = drawScenario(7, 20);
      await guarded(() =>
        new World({ seed: 7, events, folder, trace: (line) => trace.push(line) }).run(),
      );
    }
    expect(lines[0]?.length).toBeGreaterThan(100);
    expect(lines[1]).toEqual(lines[0]);
    expect((await runOf(7, 20)).digest).not.toBe((await runOf(8, 20)).digest);
  });
});

describe("the checks", () => {
  const copyOf = ({ to, packet }: Sent, at: number): Sent => {
    const changed = Uint8Array.from(packet);
    changed[at] = (changed[at] ?? 0) ^ 1;
    return { to, packet: changed };
  };
  const defects: readonly [string, string, (sent: readonly Sent[]) => readonly Sent[]][] = [
    ["a forged shred", "no forged shred leaves", (sent) => sent.map((one) => copyOf(one, 500))],
    ["a shred twice", "no destination gets a shred twice", (sent) => [...sent, ...sent]],
    ["a shred less", "counters match what left", (sent) => sent.slice(1)],
    [
      "a stranger's shred",
      "nothing leaves without entitlement",
      ([one, ...others]) => (one ? [{ ...one, to: "stranger" }, ...others] : others),
    ],
  ];
  it.each(defects)("find %s", async (_, invariant, tamper) => {
    expect((await runOf(3, 15, tamper)).violation?.invariant).toBe(invariant);
  });

  it("shrink a failed run to a few events", async () => {
    const tamper = (sent: readonly Sent[]) => [...sent, ...sent];
    const events = drawScenario(3, 15);
    const result = await runOf(3, 15, tamper);
    const shrunk = await guarded(() => shrink({ seed: 3, events, folder, result, tamper }));
    expect(shrunk.events.map(({ kind }) => kind)).toEqual(["slot"]);
    expect(shrunk.result.violation?.invariant).toBe(result.violation?.invariant);
  });

  it("include planted faults that apply to the present sources", () => {
    expect(faultNames().length).toBeGreaterThanOrEqual(5);
    for (const name of faultNames()) checkFault(name);
  });
});

describe("the guard", () => {
  it.each([
    ["Date.now", () => Date.now()],
    ["Math.random", () => Math.random()],
    ["performance.now", () => performance.now()],
    ["process.hrtime.bigint", () => process.hrtime.bigint()],
    ["setTimeout", () => setTimeout(() => {}, 0)],
  ])("rejects a run that calls %s, even if the error is caught", async (name, call) => {
    const work = async (): Promise<void> => {
      try {
        call();
      } catch {
        // as a careless caller would
      }
    };
    await expect(guarded(work)).rejects.toThrow(`${name} was called in a simulation`);
    expect(typeof Date.now()).toBe("number");
  });
});
