// Questions about landings: how many calls they need, and nodes that lag, fork, forget or fail.

import { describe, expect, it } from "vitest";
import { ConfirmationHarness } from "./confirmation-harness.ts";

async function registerMany(harness: ConfirmationHarness, count: number): Promise<string[]> {
  const wires = Array.from({ length: count }, (_, i) => harness.tip(5n, BigInt(i)));
  return Promise.all(wires.map((wire) => harness.register(wire)));
}

/** Until it is clear that the tip will never land; 64 slots more are needed to drop it. */
const expiredSeconds = 75;

describe("tips that never land", () => {
  it("are asked about 256 at a time, and none is read", async () => {
    const harness = await ConfirmationHarness.open();
    const signatures = await registerMany(harness, 300);
    await harness.seconds(130);
    for (const each of signatures) expect(harness.row(each)?.reason).toBe("expired");
    expect(harness.reads).toEqual([]);
    const questions = harness.requests.length / signatures.length;
    expect(questions).toBeLessThanOrEqual(10);
    expect(harness.calls.length).toBeLessThanOrEqual(2 * questions);
    expect(Math.max(...harness.calls.map((call) => call.signatures))).toBe(256);
    expect(harness.registrations.counts.queries).toBe(BigInt(harness.calls.length));
  });

  it("are searched in the history at first and when they can expire, not in between", async () => {
    const harness = await ConfirmationHarness.open();
    await harness.register(harness.tip());
    await harness.seconds(20);
    const searches = () => harness.calls.map(({ searchHistory }) => searchHistory);
    expect(searches()).toEqual([true, false, false, false, false]);
    await harness.seconds(110);
    expect(searches().slice(-2)).toEqual([true, true]);
  });
});

describe("a landed tip", () => {
  it("is read once, when it is confirmed", async () => {
    const harness = await ConfirmationHarness.open();
    const landing = harness.tip();
    const [signature] = [await harness.register(landing), ...(await registerMany(harness, 9))];
    harness.run.chain.send(landing);
    await harness.seconds(6);
    expect(harness.row(signature)).toMatchObject({ state: "counted" });
    expect(harness.reads).toEqual([signature]);
  });

  it("that the recent blocks of the node do not contain any more is found", async () => {
    const harness = await ConfirmationHarness.open();
    harness.hasSights = false;
    harness.recentSlots = 80n;
    const [before, after] = [harness.tip(5n, 1n), harness.tip(5n, 2n)];
    harness.run.chain.send(before);
    const late = await harness.register(after);
    await harness.seconds(16); // the next question comes after 31 s
    harness.run.chain.send(after);
    await harness.seconds(40);
    expect(harness.row(late)?.state).toBe("counted");
    expect(harness.row(await harness.register(before))?.state).toBe("pending");
    await harness.seconds(1);
    expect([...harness.rows.rows.values()].map(({ state }) => state)).toEqual([
      "counted",
      "counted",
    ]);
  });

  it("that another node cannot read yet stays pending until it can", async () => {
    const harness = await ConfirmationHarness.open();
    harness.hidesTransactions = true;
    const wire = harness.tip();
    const signature = await harness.register(wire);
    harness.run.chain.send(wire);
    await harness.seconds(200); // its blockhash is gone
    expect(harness.reads.length).toBeGreaterThan(2);
    expect(harness.row(signature)?.state).toBe("pending");
    harness.hidesTransactions = false;
    await harness.seconds(6);
    expect(harness.row(signature)?.state).toBe("counted");
  });
});

describe("an absence", () => {
  it("drops no tip if the node that reports it lags behind the end of the lifetime", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    const signature = await harness.register(wire);
    await harness.seconds(40);
    harness.behindSlots = 1000n;
    harness.run.chain.send(wire);
    await harness.seconds(200);
    expect(harness.row(signature)?.state).toBe("pending");
    harness.behindSlots = 0n;
    await harness.seconds(6);
    expect(harness.row(signature)?.state).toBe("counted");
  });

  it("drops no tip while the node may be on another fork", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    const signature = await harness.register(wire);
    await harness.seconds(58);
    // It lands in one of the last slots of its lifetime.
    harness.forkedSlot = harness.run.chain.slot("processed");
    harness.run.chain.send(wire);
    await harness.seconds(60);
    expect(harness.row(signature)?.state).toBe("counted");
  });

  it("drops no tip if the node has no history", async () => {
    const harness = await ConfirmationHarness.open();
    harness.hasHistory = false;
    const signature = await harness.register(harness.tip());
    await harness.seconds(expiredSeconds + 100);
    expect(harness.row(signature)?.state).toBe("pending");
    expect(harness.registrations.counts.failures).toBeGreaterThan(5n);
    harness.hasHistory = true;
    await harness.seconds(60);
    expect(harness.row(signature)?.reason).toBe("expired");
  });
});

it("a call that is too large for the node is repeated with fewer signatures", async () => {
  const harness = await ConfirmationHarness.open();
  harness.signaturesMax = 20;
  const signatures = await registerMany(harness, 300);
  await harness.seconds(expiredSeconds + 120);
  for (const each of signatures) expect(harness.row(each)?.reason).toBe("expired");
});
