import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { slotFileIn } from "../../src/relay/slot-floor.ts";
import { firstSlotOf } from "../../src/sandbox/first-slot.ts";
import { sandboxPace } from "../../src/sandbox/plan.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const { firstSlot, shredVersion } = sandboxPace;
const epoch = BigInt(sandboxPace.slotsPerEpoch);

function folderWith(text: string): string {
  const folder = temporaryFolder();
  writeFileSync(slotFileIn(folder), text);
  return folder;
}

const folderWithSlot = (slot: bigint, version: number = shredVersion) =>
  folderWith(JSON.stringify({ slot: String(slot), shredVersion: version }));

describe("firstSlotOf", () => {
  it("is the plan's slot in a new folder, and in one of another network", () => {
    expect(firstSlotOf(temporaryFolder())).toBe(firstSlot);
    expect(firstSlotOf(folderWithSlot(firstSlot + 90n, shredVersion + 1))).toBe(firstSlot);
    expect(firstSlotOf(folderWithSlot(firstSlot - 1n))).toBe(firstSlot);
  });

  it.each([
    [0n, 1n],
    [90n, 1n],
    [epoch - 1n, 1n],
    [epoch, 2n],
    [7n * epoch + 5n, 8n],
  ])("after %d slots, it is the first slot of the next epoch", (slots, epochs) => {
    expect(firstSlotOf(folderWithSlot(firstSlot + slots))).toBe(firstSlot + epochs * epoch);
  });

  it("is the plan's slot if the file is unreadable, as the relay then sets no floor", () => {
    expect(firstSlotOf(folderWith("{"))).toBe(firstSlot);
  });

  it("refuses a slot that no chain can follow, and names the file", () => {
    const folder = folderWithSlot(2n ** 60n);
    expect(() => firstSlotOf(folder)).toThrow(`${slotFileIn(folder)}: slot: got ${2n ** 60n}`);
  });
});
