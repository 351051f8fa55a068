// A block that begins again (an update-parent marker) withdraws what was observed in it before.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Harness } from "./harness.ts";

/** Kinds of the account's timeline after "received". */
async function kindsOf(
  harness: Harness,
  facts: ReturnType<Harness["facts"]>,
): Promise<readonly string[]> {
  const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
  return (status?.events ?? []).map(({ kind }) => kind).slice(1);
}

/** A transaction that was observed in slot 8 on a chain with markers, without a node. */
async function observed(): Promise<{ harness: Harness; facts: ReturnType<Harness["facts"]> }> {
  const harness = new Harness({}, { node: false });
  harness.mayRestart = true;
  const facts = harness.facts();
  await harness.submit(facts);
  harness.observe(facts, 8n);
  return { harness, facts };
}

describe("with a node", () => {
  it("sends the transaction again at once, and says so in its timeline", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts);
    harness.observe(facts, 8n);
    await harness.clock.advance(300);
    expect(harness.outbound.length).toBe(1);
    harness.withdraw(facts, 8n);
    await harness.clock.advance(100);
    expect(harness.outbound.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(await kindsOf(harness, facts)).toEqual(["queued", "seen", "withdrawn", "queued"]);
    const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
    expect(status).toMatchObject({ state: "open", slot: null });
    expect(status?.events[3]).toMatchObject({ slot: 8n, reason: "update_parent" });
    expect([...harness.store.records.values()][0]?.events).toEqual(status?.events);
  });

  it("keeps the observation in another slot", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts);
    harness.observe(facts, 8n);
    harness.observe(facts, 9n);
    harness.withdraw(facts, 9n);
    harness.withdraw(facts, 9n);
    harness.withdraw(facts, 10n); // never reported
    await harness.clock.advance(100);
    expect(harness.outbound.length).toBe(1);
    expect(await kindsOf(harness, facts)).toEqual(["queued", "seen", "seen", "withdrawn"]);
    const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
    expect(status?.slot).toBe(8n);
  });

  it("reports the next observation in the same slot, and ends as the node says", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts, { resendsMax: 0 });
    harness.observe(facts, 8n);
    harness.withdraw(facts, 8n);
    harness.observe(facts, 8n);
    harness.answers.set(facts.signature, { slot: 8n, err: null, commitment: "confirmed" });
    await harness.clock.advance(1_000);
    expect(await harness.state(facts)).toBe("landed confirmed");
    const kinds = await kindsOf(harness, facts);
    expect(kinds).toEqual(["queued", "seen", "withdrawn", "seen", "landed"]);
  });

  it("never counts a withdrawn tip", async () => {
    const calls: string[] = [];
    const harness = new Harness(
      {},
      {
        tips: {
          observed: () => void calls.push("observed"),
          landed: () => void calls.push("landed"),
          retracted: () => void calls.push("retracted"),
        },
      },
    );
    const facts = { ...harness.facts(), tipLamports: 10_000n };
    await harness.submit(facts, { resendsMax: 0 });
    harness.observe(facts, 8n);
    harness.withdraw(facts, 8n);
    expect(calls).toEqual(["observed", "retracted"]);
  });
});

describe("without a node", () => {
  it("ends at once on a chain without markers", async () => {
    const harness = new Harness({}, { node: false });
    const facts = harness.facts();
    await harness.submit(facts);
    harness.observe(facts, 8n);
    expect(await harness.state(facts)).toBe("landed seen_in_shreds");
  });

  it("ends after the time in which a block may begin again", async () => {
    const { harness, facts } = await observed();
    await harness.clock.advance(1_900);
    expect(await harness.state(facts)).toBe("open null");
    await harness.clock.advance(300);
    expect(await harness.state(facts)).toBe("landed seen_in_shreds");
    const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
    expect(status?.slot).toBe(8n);
  });

  it("does not expire in this time", async () => {
    const harness = new Harness({ unobservedMs: 5_000 }, { node: false });
    harness.mayRestart = true;
    const [landed, withdrawn] = [harness.facts(), harness.facts()];
    await harness.submit(landed);
    await harness.submit(withdrawn);
    await harness.clock.advance(4_500);
    harness.observe(landed, 8n);
    harness.observe(withdrawn, 8n);
    await harness.clock.advance(1_000);
    harness.withdraw(withdrawn, 8n);
    await harness.clock.advance(3_000);
    expect(await harness.state(landed)).toBe("landed seen_in_shreds");
    expect(await harness.state(withdrawn)).toBe("expired unobserved");
  });

  it("does not end if its block began again", async () => {
    const { harness, facts } = await observed();
    await harness.clock.advance(500);
    harness.withdraw(facts, 8n);
    await harness.clock.advance(10_000);
    expect(await harness.state(facts)).toBe("open null");
    expect(harness.outbound.length).toBeGreaterThan(1);
    harness.observe(facts, 20n);
    await harness.clock.advance(2_200);
    expect(await harness.state(facts)).toBe("landed seen_in_shreds");
  });

  it("ends after a restart of the service that interrupted this time", async () => {
    const { harness, facts } = await observed();
    await harness.clock.advance(1_200); // the line is written
    const next = await harness.next(facts);
    expect(await next.state(facts)).toBe("open null");
    await next.clock.advance(2_200);
    expect(await next.state(facts)).toBe("landed seen_in_shreds");
  });
});

it("agrees with the blocks, whatever the order of observations and withdrawals", async () => {
  const step = fc.record({
    slot: fc.bigInt(8n, 10n),
    isWithdrawn: fc.boolean(),
    passMs: fc.constantFrom(0, 50, 400),
  });
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 12 }),
    fc.boolean(),
    async (steps, node) => {
      const harness = new Harness({}, { node });
      harness.mayRestart = true;
      const facts = harness.facts();
      await harness.submit(facts);
      const slots = new Set<bigint>();
      for (const { slot, isWithdrawn, passMs } of steps) {
        if (isWithdrawn) {
          slots.delete(slot);
          harness.withdraw(facts, slot);
        } else {
          slots.add(slot);
          harness.observe(facts, slot);
        }
        await harness.clock.advance(passMs);
        const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
        if (status?.state !== "open") break; // it stood for the whole time
        expect(status.slot === null).toBe(slots.size === 0);
        if (status.slot !== null) expect(slots.has(status.slot)).toBe(true);
      }
      const [before] = await harness.pipeline.statuses("ann", [facts.signature]);
      if (!node && before?.state === "open") {
        await harness.clock.advance(2_200);
        const isLanded = (await harness.state(facts)) === "landed seen_in_shreds";
        expect(isLanded).toBe(slots.size > 0);
      }
    },
  );
  await fc.assert(property, { numRuns: 150 });
});
