// The audit of an account on each database: nothing differs after the leader's tiers, and each change of a
// row is reported. commands/audit.test.ts asks a real chain.

import { base58 } from "@scure/base";
import { expect, it } from "vitest";
import { createLogger } from "../../../src/core/log.ts";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { SqlAuditStore } from "../../../src/platform/store/tables/audit-store.ts";
import { SqlTierStore } from "../../../src/platform/store/tables/tier-store.ts";
import { LeaderTiers } from "../../../src/shreds/tiers/leader-tiers.ts";
import { type AuditTask, auditAccount } from "../../../src/tools/audit/account-audit.ts";
import { Chain } from "../../../src/tools/audit/chain-facts.ts";
import { onEachDatabase } from "../../platform/store/databases.ts";
import { signatureCodec } from "../../platform/store/files.ts";
import { keepTip } from "../../platform/store/tiers.ts";
import { day, hour, rules } from "../../shreds/tiers/leader-tiers-bench.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { answerOf, otherTipAddress, type Payment, tipAddress } from "./chain-answers.ts";

const log = createLogger({ level: "silent" });
const accountId = "a";

function signatureOf(order: bigint): string {
  const bytes = new Uint8Array(64);
  new DataView(bytes.buffer).setBigUint64(0, order);
  return base58.encode(bytes);
}

/** A node with these transactions; the stored amounts are those of `keepTip`. */
class Node {
  readonly payments = new Map<string, Payment>();
  firstSlot = 0;
  isDown = false;

  readonly call = async (method: string, params: readonly unknown[] = []): Promise<unknown> => {
    if (this.isDown) throw new Error("unexpected call");
    if (method === "getFirstAvailableBlock") return this.firstSlot;
    const signature = String(params[0]);
    const payment = this.payments.get(signature);
    return payment ? answerOf(signature, payment) : null;
  };
}

onEachDatabase((databases) => {
  /** Three tips of "a" and one of "b" over three days, evaluated by the leader's tiers. */
  async function opened() {
    const driver = await databases.migrated();
    const clock = new ManualClock();
    const startMs = Number(clock.nowNs() / 1_000_000n);
    const node = new Node();
    const tips = [
      [1n, "a", 250n, 0],
      [2n, "b", 500n, hour],
      [3n, "a", 300n, 2 * hour],
      [4n, "a", 200n, 40 * hour],
    ] as const;
    for (const [order, account, lamports, atMs] of tips) {
      const times = { registeredMs: startMs + atMs, countedMs: startMs + atMs + 500 };
      await keepTip(driver, { order, accountId: account, lamports, ...times });
      node.payments.set(signatureOf(order), { transfer: lamports + 1n, gain: lamports });
    }
    const store = new SqlTierStore(driver);
    await clock.advance(3 * day);
    const epoch = await store.takeOver();
    const tiers = new LeaderTiers({ rules, store, clock, log, epoch });
    await tiers.start();
    await tiers.close();
    const chain = new Chain(node, new Set([tipAddress, otherTipAddress]));
    const task = (changes: Partial<AuditTask> = {}): AuditTask => ({
      accountId,
      fromMs: null,
      toMs: null,
      rules,
      chain,
      nowMs: () => startMs + 3 * day,
      onProgress: () => undefined,
      ...changes,
    });
    const auditor = new SqlAuditStore(driver, signatureCodec);
    const report = (changes?: Partial<AuditTask>) => auditAccount(auditor, task(changes));
    return { driver, node, report, startMs };
  }

  const change = (driver: SqlDriver, sql: string) =>
    driver.transaction([{ sql, params: [] }], "durable");

  it("reports no difference, for the whole history and for parts of it", async () => {
    const { report, startMs } = await opened();
    const whole = await report();
    expect(whole).toMatchObject({ registrations: 3, counted: 3, onChain: 3, unchecked: [] });
    expect(whole.differences).toEqual([]);
    expect(whole.events).toBe(5);
    for (let hours = 1; hours < 72; hours += 7) {
      const part = await report({ fromMs: startMs + hours * hour, toMs: startMs + 60 * hour });
      expect(part.differences).toEqual([]);
    }
    expect(await report({ accountId: "unknown" })).toMatchObject({
      registrations: 0,
      differences: [],
    });
  });

  it("counts, checks and names registrations ahead of the clock", async () => {
    const { report, node, startMs } = await opened();
    const behind = () => startMs + 30 * hour;
    const found = await report({ nowMs: behind });
    expect(found).toMatchObject({ registrations: 3, counted: 3, onChain: 3, differences: [] });
    const ahead = { signature: signatureOf(4n), registeredMs: startMs + 40 * hour };
    expect(found.ahead).toEqual([ahead]);
    node.payments.delete(ahead.signature);
    const [difference] = (await report({ nowMs: behind })).differences;
    expect(difference?.subject).toBe(ahead.signature);
    expect(await report({ nowMs: behind, toMs: behind() })).toMatchObject({
      registrations: 2,
      ahead: [],
    });
    expect((await report()).ahead).toEqual([]);
  });

  it("leaves out what was registered during the audit", async () => {
    const { report, startMs } = await opened();
    const times = [startMs + 30 * hour, startMs + 41 * hour];
    const found = await report({ nowMs: () => times.shift() ?? Number.NaN });
    expect(found).toMatchObject({ registrations: 2, ahead: [] });
  });

  it("reports each changed fact of the tiers", async () => {
    const { driver, report } = await opened();
    await change(
      driver,
      "UPDATE tier_states SET sum_lamports = 9, tier = 'tier-2' WHERE account_id = 'a'",
    );
    await change(
      driver,
      "UPDATE tier_events SET sum_lamports = 1 WHERE account_id = 'a' AND number = 2",
    );
    await change(driver, "DELETE FROM tier_events WHERE account_id = 'a' AND number = 4");
    const { differences } = await report({ chain: null });
    const found = differences.map(({ kind, subject, field }) => [kind, subject, field]);
    expect(found).toEqual([
      ["tier_event", "2", "sumLamports"],
      ["tier_event", "4", "event"],
      ["tier_state", null, "tier"],
      ["tier_state", null, "sumLamports"],
    ]);
    expect(differences[1]).toMatchObject({
      stored: null,
      explanation: "the history lacks an event",
    });
  });

  it("reports a tip that was counted with another amount, and its effects on the tiers", async () => {
    const { driver, report } = await opened();
    await change(driver, "UPDATE registrations SET counted_lamports = 999 WHERE counted_order = 3");
    const { differences } = await report();
    expect(differences[0]).toEqual({
      kind: "registration",
      subject: signatureOf(3n),
      field: "countedLamports",
      stored: "999",
      expected: "300",
      explanation: "the smaller of the transfers and of the gain of the tip addresses counts",
    });
    expect(differences.slice(1).every(({ kind }) => kind !== "registration")).toBe(true);
    expect(differences.length).toBeGreaterThan(1);
  });

  it("counts no transfer between two tip addresses, as the registration does", async () => {
    const { node, report } = await opened();
    node.payments.set(signatureOf(3n), { transfer: 301n, gain: 300n, moved: 70n });
    expect((await report()).differences).toEqual([]);
  });

  it("reports what the chain contradicts, and what the node cannot answer", async () => {
    const { driver, node, report } = await opened();
    node.payments.set(signatureOf(1n), { transfer: 251n, gain: 250n, err: { x: 1 } });
    node.payments.set(signatureOf(3n), { transfer: 301n, gain: 0n });
    node.payments.delete(signatureOf(4n));
    const first = await report();
    expect(
      first.differences.map(({ subject, stored, expected, explanation }) => [
        subject,
        stored,
        expected,
        explanation,
      ]),
    ).toEqual([
      [signatureOf(1n), "counted", "dropped", "the transaction failed"],
      [signatureOf(3n), "counted", "dropped", "the balance of the tip addresses did not increase"],
      [signatureOf(4n), "counted", "dropped", "the chain does not have the transaction"],
    ]);
    // The registered slot is 1, so a pruned node knows nothing.
    node.firstSlot = 2;
    const { differences, unchecked, onChain } = await report();
    expect(onChain).toBe(2);
    expect(differences).toHaveLength(2);
    expect(unchecked).toEqual([
      {
        signature: signatureOf(4n),
        reason: "the node's history begins with slot 2, after the registered slot 1",
      },
    ]);
    for (const [reason, payment, expected] of [
      ["expired", { transfer: 301n, gain: 300n }, null],
      ["refunded", { transfer: 301n, gain: 300n }, null],
      ["landed_failed", { transfer: 301n, gain: 0n }, "refunded"],
      ["landed_failed", { transfer: 301n, gain: 300n, err: {} }, undefined],
      ["refunded", { transfer: 301n, gain: 0n }, undefined],
    ] as const) {
      const dropped = `UPDATE registrations SET state = 'dropped', reason = '${reason}' WHERE signature = (
        SELECT signature FROM registrations WHERE lamports = 301)`;
      await change(driver, dropped);
      node.payments.set(signatureOf(3n), payment);
      const found = (await report()).differences.filter(
        ({ subject }) => subject === signatureOf(3n),
      );
      expect(found.map((one) => one.expected)).toEqual(expected === undefined ? [] : [expected]);
    }
  });
});
