// Tip reports of the pipeline: once per transaction, for any number of accounts and restarts.

import { beforeEach, describe, expect, it } from "vitest";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import type { LandedTips, SignatureOutcome } from "../../../src/gateway/submission/types.ts";
import { Harness } from "./harness.ts";

class TipReports implements LandedTips {
  readonly calls: string[] = [];
  readonly times: bigint[] = [];

  observed(signature: string, lamports: bigint, atNs: bigint): void {
    this.calls.push(`seen ${signature} ${lamports}`);
    this.times.push(atNs);
  }

  landed(signature: string, lamports: bigint, atNs: bigint): void {
    this.calls.push(`landed ${signature} ${lamports}`);
    this.times.push(atNs);
  }

  retracted(signature: string): void {
    this.calls.push(`gone ${signature}`);
  }
}

const landed: SignatureOutcome = { slot: 5n, err: null, commitment: "confirmed" };
const failed: SignatureOutcome = { ...landed, err: { InstructionError: [0, { Custom: 1 }] } };

describe("tips", () => {
  let reports: TipReports;
  let harness: Harness;

  function open(has: { node?: boolean } = {}): void {
    reports = new TipReports();
    harness = new Harness({}, { ...has, tips: reports });
  }

  beforeEach(() => open());

  async function submitted(accounts = ["ann"]): Promise<TransactionFacts> {
    const facts = harness.facts();
    for (const account of accounts) await harness.submit(facts, {}, account);
    return facts;
  }

  it("are reported once for all accounts: observed, then landed", async () => {
    const facts = await submitted(["ann", "bob", "eve"]);
    const seenNs = harness.clock.nowNs();
    harness.observe(facts, 5n);
    harness.answers.set(facts.signature, landed);
    await harness.clock.advance(5000);
    const { signature } = facts;
    expect(reports.calls).toEqual([`seen ${signature} 20000`, `landed ${signature} 20000`]);
    expect(reports.times[0]).toBe(seenNs);
    await harness.submit(facts, {}, "zoe");
    await harness.clock.advance(5000);
    expect(reports.calls).toHaveLength(2);
  });

  it("are reported as landed without an observation", async () => {
    const facts = await submitted();
    harness.answers.set(facts.signature, landed);
    await harness.clock.advance(5000);
    expect(reports.calls).toEqual([`landed ${facts.signature} 20000`]);
  });

  it("are reported as landed by the first observation without a node", async () => {
    open({ node: false });
    const facts = await submitted();
    harness.observe(facts, 5n);
    expect(reports.calls.map((call) => call.split(" ")[0])).toEqual(["seen", "landed"]);
  });

  it("are removed if it landed as failed", async () => {
    const facts = await submitted();
    harness.observe(facts, 5n);
    harness.answers.set(facts.signature, failed);
    await harness.clock.advance(5000);
    expect(reports.calls).toEqual([`seen ${facts.signature} 20000`, `gone ${facts.signature}`]);
  });

  it("are not reported for failures without an observation", async () => {
    const facts = await submitted();
    harness.answers.set(facts.signature, failed);
    await harness.clock.advance(5000);
    expect(await harness.state(facts)).toContain("landed_failed");
    expect(reports.calls).toEqual([]);
  });

  it("are removed with an abandoned block, and reported again with the next", async () => {
    const facts = await submitted();
    harness.observe(facts, 5n);
    await harness.clock.advance(8000);
    harness.observe(facts, 9n);
    harness.answers.set(facts.signature, { ...landed, slot: 9n });
    await harness.clock.advance(5000);
    const kinds = reports.calls.map((call) => call.split(" ")[0]);
    expect(kinds).toEqual(["seen", "gone", "seen", "landed"]);
  });

  it("are removed once if it expires after its block was abandoned", async () => {
    const facts = await submitted();
    harness.observe(facts, 5n);
    harness.isBlockhashExpired = true;
    await harness.clock.advance(120_000);
    expect(await harness.state(facts)).toContain("expired");
    const kinds = reports.calls.map((call) => call.split(" ")[0]);
    expect(kinds).toEqual(["seen", "gone"]);
  });

  it("of 0 lamports are not reported", async () => {
    const facts = { ...harness.facts(), tipLamports: 0n };
    await harness.submit(facts);
    harness.observe(facts, 5n);
    harness.answers.set(facts.signature, landed);
    const other = { ...harness.facts(), tipLamports: 0n };
    await harness.submit(other);
    harness.observe(other, 5n);
    harness.answers.set(other.signature, failed);
    await harness.clock.advance(5000);
    expect(await harness.state(facts)).toContain("landed");
    expect(reports.calls).toEqual([]);
  });

  it.each([
    ["failed", failed, "gone"],
    ["landed", landed, "landed"],
  ])("of transactions open at a restart are reported: %s", async (_, outcome, kind) => {
    const facts = await submitted(["ann", "bob"]);
    harness.observe(facts, 5n);
    await harness.clock.advance(2000);
    const records = [...harness.store.records];
    harness.pipeline.stop();
    open();
    for (const [key, record] of records) harness.store.records.set(key, record);
    harness.readable.push(facts);
    harness.answers.set(facts.signature, outcome);
    const restored = harness.pipeline.restore();
    await harness.clock.advance(5000);
    expect(await restored).toBe(2);
    expect(reports.calls.map((call) => call.split(" ")[0])).toEqual([kind]);
  });

  it("of unknown transactions are removed", async () => {
    const facts = harness.facts();
    harness.leaders = { slot: 4n, current: "bad", next: "bad" };
    harness.store.failShare = 1;
    const submission = harness.submit(facts, { mevProtect: true });
    harness.observe(facts, 5n); // another service sent it
    expect(await submission).toContain("store_failed");
    expect(reports.calls.map((call) => call.split(" ")[0])).toEqual(["seen", "gone"]);
  });
});
