import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { slotFileIn } from "../../src/relay/slot-floor.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Waits until every receiver has shreds and the relay's shreds have set the slot clock. */
async function untilRelayed(sandbox: Sandbox): Promise<void> {
  const everyReceiver = () =>
    sandbox.snapshot().receivers.every(({ seen }) => Number(seen.verdicts.first) > 0);
  await until(everyReceiver, "shreds at every receiver");
  const reached = () => sandbox.service.relay.slots.reachedSlot() !== null;
  await until(reached, "a slot that shreds have reached");
}

describe("openSandbox", () => {
  it("relays the shreds of a second run on the same data folder", async () => {
    const data = temporaryFolder();
    const first = await runningSandbox(undefined, { data });
    await untilRelayed(first);
    await first.close();
    const path = slotFileIn(data);
    const saved: { slot: string; shredVersion: number } = JSON.parse(readFileSync(path, "utf8"));
    expect(BigInt(saved.slot)).toBeGreaterThanOrEqual(first.chain.currentSlot - 8n);
    // The state after a run of an hour.
    const slot = BigInt(saved.slot) + 9000n;
    writeFileSync(path, JSON.stringify({ ...saved, slot: String(slot) }));
    const second = await runningSandbox(undefined, { data });
    await untilRelayed(second);
    expect(second.snapshot().relay.verdicts.slot_behind).toBe(0n);
    expect(second.chain.currentSlot).toBeGreaterThan(slot);
  });
});
