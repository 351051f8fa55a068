// Submissions while the wall clock of the machine is set.

import { describe, expect, it } from "vitest";
import { Harness } from "./harness.ts";

describe("a wall clock that is set forward by ten minutes", () => {
  it("does not end the sending of what was accepted before", async () => {
    const harness = new Harness();
    await harness.submit(harness.facts());
    harness.clock.setWallForward(600_000);
    await harness.clock.advance(90_000);
    const sent = harness.outbound.length;
    expect(sent).toBeGreaterThan(10);
    await harness.clock.advance(120_000);
    const last = harness.outbound.length;
    expect(last).toBeGreaterThan(sent);
    await harness.clock.advance(60_000);
    expect(harness.outbound.length).toBe(last);
  });

  it("does not lose a submission that waits for MEV protection", async () => {
    const harness = new Harness();
    harness.leaders = { slot: 4n, current: "A", next: "bad" };
    await harness.submit(harness.facts(), { mevProtect: true });
    harness.clock.setWallForward(600_000);
    harness.leaders = { slot: 9n, current: "C", next: "D" };
    await harness.clock.advance(50);
    expect(harness.outbound.length).toBe(1);
  });
});
