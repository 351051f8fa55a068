import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { createLogger } from "../../src/core/log.ts";
import { SlotFloor } from "../../src/relay/slot-floor.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

function open(path = join(temporaryFolder(), "data", "highest-slot.json"), shredVersion = 50093) {
  const clock = new ManualClock();
  const lines: string[] = [];
  const floors: bigint[] = [];
  const state = { slot: null as bigint | null };
  const floor = new SlotFloor({
    path,
    shredVersion,
    relay: { setSlotFloor: (slot) => void floors.push(slot) },
    reachedSlot: () => state.slot,
    clock,
    log: createLogger({ stream: { write: (line) => void lines.push(line) } }),
  });
  floor.start();
  return { path, clock, lines, floors, state, floor };
}

describe("SlotFloor", () => {
  it("keeps the highest slot across a restart, less the slots that may still arrive", async () => {
    const first = open();
    expect(first.floors).toEqual([]);
    await first.clock.advance(10_000);
    expect(existsSync(first.path)).toBe(false); // nothing is known yet
    first.state.slot = 5000n;
    await first.clock.advance(10_000);
    expect(JSON.parse(readFileSync(first.path, "utf8"))).toEqual({
      slot: "5000",
      shredVersion: 50093,
    });
    first.state.slot = 5010n;
    first.floor.close();
    expect(first.clock.pending).toBe(0);
    const second = open(first.path);
    expect(second.floors).toEqual([4978n]);
    expect(second.lines.join()).toContain(`delete ${first.path}`);
    // A lower slot changes nothing.
    second.state.slot = 4990n;
    second.floor.close();
    expect(open(first.path).floors).toEqual([4978n]);
  });

  it("survives a kill: what was saved in the last interval counts", async () => {
    const first = open();
    first.state.slot = 5000n;
    await first.clock.advance(10_000);
    first.state.slot = 5020n;
    expect(open(first.path).floors).toEqual([4968n]);
  });

  it("ignores the file of a network that was reset", async () => {
    const first = open();
    first.state.slot = 5000n;
    first.floor.close();
    const second = open(first.path, 50094);
    expect(second.floors).toEqual([]);
    expect(second.lines.join()).toContain("its shred version is 50093");
  });

  it.each([
    "",
    "{",
    "null",
    '{"slot":5000,"shredVersion":50093}',
    '{"slot":"-1","shredVersion":50093}',
    `{"slot":"${2n ** 64n}","shredVersion":50093}`,
    '{"slot":"5000"}',
    "x".repeat(2000),
  ])("starts without a floor and says so if the file contains %j", (text) => {
    const path = join(temporaryFolder(), "highest-slot.json");
    writeFileSync(path, text);
    const { floors, lines, state, floor } = open(path);
    expect(floors).toEqual([]);
    expect(lines.join()).toContain("the highest slot before the restart is unknown");
    state.slot = 7000n;
    floor.close();
    expect(open(path).floors).toEqual([6968n]); // the next save replaces it
  });

  it("reports once that the slot cannot be saved, and once that it can again", async () => {
    const path = join(temporaryFolder(), "data", "highest-slot.json");
    writeFileSync(dirname(path), "a file, where the folder should be");
    const { clock, lines, state } = open(path);
    state.slot = 5000n;
    await clock.advance(30_000);
    expect(lines.filter((line) => line.includes("cannot be saved")).length).toBe(1);
    rmSync(dirname(path));
    state.slot = 5001n;
    await clock.advance(30_000);
    expect(lines.length).toBe(2);
    expect(lines[1]).toContain("is written again");
  });
});
