import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { parseShred } from "../../../src/relay/data-plane/parse-shred.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  carol,
  walletLamports,
} from "../../support/transactions/chain.ts";

/** Parent offsets in the shreds of each slot, and the chained roots of its first set. */
function headersBySlot(run: ChainRun): Map<bigint, { offsets: Set<number>; chained: string }> {
  const slots = new Map<bigint, { offsets: Set<number>; chained: string }>();
  for (const { packets } of run.shreds) {
    for (const packet of packets) {
      const parsed = parseShred(packet);
      if (!parsed.ok || parsed.shred.type !== "data") continue;
      const { slot, parentOffset, fecSetIndex, chainedRoot } = parsed.shred;
      const known = slots.get(slot) ?? { offsets: new Set<number>(), chained: "" };
      known.offsets.add(parentOffset);
      if (fecSetIndex === 0) known.chained = encodeBase58(chainedRoot);
      slots.set(slot, known);
    }
  }
  return slots;
}

describe("skipped slots", () => {
  it("have no block, do not count in heights, and shreds contain the actual parent", async () => {
    const run = await ChainRun.open();
    run.slots(2); // 1 and 2 have blocks, 3 is open
    run.chain.faults.skipNext(3); // 4, 5, 6
    run.slots(3);
    expect(run.chain.slot("processed")).toBe(3n);
    expect(run.chain.currentSlot).toBe(6n);
    run.slots(2);
    expect([3n, 4n, 5n, 6n, 7n].map((slot) => run.chain.block(slot)?.blockHeight)).toEqual([
      3n,
      undefined,
      undefined,
      undefined,
      4n,
    ]);
    expect(run.chain.block(5n)).toBeNull();
    expect(run.chain.block(7n)?.parentSlot).toBe(3n);
    expect(run.chain.block(7n)?.previousBlockhash).toBe(run.chain.block(3n)?.blockhash);
    expect(headersBySlot(run).get(7n)?.offsets).toEqual(new Set([4]));
    expect(run.eventsOf("skipped").map(({ slot }) => slot)).toEqual([4n, 5n, 6n]);
    expect(run.chain.block(7n)?.blockTime).toBe(1_767_225_600n + 2n);
  });

  it("delay transactions until the next leader", async () => {
    const run = await ChainRun.open();
    run.chain.faults.skipNext(2);
    run.slots(1);
    const signature = run.chain.send(run.transfer(alice, bob, 1n));
    run.slots(2);
    expect(run.chain.status(signature)).toBeNull();
    run.slots(1);
    expect(run.chain.status(signature)?.slot).toBe(4n);
  });

  it("can be those of one leader, or random", async () => {
    const run = await ChainRun.open({ intervalsPerSlot: 1 });
    const silent = run.chain.leaderOf(40n) ?? "";
    run.chain.faults.silentLeaders.add(silent);
    run.slots(120);
    const skipped = run.eventsOf("skipped");
    expect(skipped.length).toBeGreaterThan(0);
    expect(new Set(skipped.map(({ leader }) => leader))).toEqual(new Set([silent]));
    const created = run.eventsOf("block").map(({ block }) => block.leader);
    expect(created.slice(1)).not.toContain(silent);
    run.chain.faults.silentLeaders.clear();
    run.chain.faults.skipShare = 0.5;
    run.slots(100);
    const share = (run.eventsOf("skipped").length - skipped.length) / 100;
    expect(share).toBeGreaterThan(0.3);
    expect(share).toBeLessThan(0.7);
  });
});

describe("a fork", () => {
  /** A chain in which a leader's turn begins at the next slot. */
  async function beforeTurn(): Promise<ChainRun> {
    const run = await ChainRun.open();
    run.slots(6); // slot 7 is open; a turn begins at slot 8
    return run;
  }

  it("undoes the newest blocks: balances, statuses, hashes, counts", async () => {
    const run = await beforeTurn();
    const survivor = run.chain.send(run.transfer(alice, bob, 1n)); // slot 7
    run.slots(4); // 11 is open
    const before = {
      alice: run.balance(alice),
      count: run.chain.transactionCount(),
      height: run.chain.blockHeight("processed"),
    };
    const lost = run.transfer(alice, bob, 1_000n); // slot 11
    const signature = run.chain.send(lost);
    run.chain.faults.forkNext(1);
    run.pass(run.slotNs / 2n);
    expect(run.chain.status(signature)?.err).toBeNull();
    const lostHash = () => run.eventsOf("abandoned")[0]?.block.blockhash ?? "";
    run.slots(1); // into slot 12, a turn
    const abandoned = run.eventsOf("abandoned").map(({ block }) => block);
    expect(abandoned.map(({ slot }) => slot)).toEqual([11n]);
    expect(abandoned[0]?.transactions.map((each) => each.signature)).toEqual([signature]);
    expect(run.chain.status(signature)).toBeNull();
    expect(run.chain.transaction(signature)).toBeNull();
    expect(run.chain.block(11n)).toBeNull();
    expect(run.chain.isBlockhashValid(lostHash())).toBe(false);
    expect(run.balance(alice)).toBe(before.alice);
    expect(run.chain.transactionCount()).toBe(before.count);
    expect(run.chain.blockHeight("processed")).toBe(before.height);
    expect(run.chain.signaturesFor(addressOf(bob)).map((each) => each.signature)).toEqual([
      survivor,
    ]);
    // It was not processed on this fork, so it may land.
    run.chain.send(lost);
    run.slots();
    expect(run.chain.status(signature)?.slot).toBe(12n);
    expect(run.balance(bob)).toBe(walletLamports + 1_001n);
  });

  it("sends shreds of both forks with their parents' offsets and roots", async () => {
    const run = await beforeTurn();
    run.slots(4); // 11 is open
    run.chain.faults.forkNext(3);
    run.slots(2); // 12 is done on parent 8
    expect(run.eventsOf("abandoned").map(({ block }) => block.slot)).toEqual([11n, 10n, 9n]);
    expect(run.chain.block(12n)?.parentSlot).toBe(8n);
    const headers = headersBySlot(run);
    expect(headers.get(11n)?.offsets).toEqual(new Set([1]));
    expect(headers.get(12n)?.offsets).toEqual(new Set([4]));
    // Both children of 8 chain to its last set.
    expect(headers.get(12n)?.chained).toBe(headers.get(9n)?.chained);
    expect(headers.get(12n)?.chained).not.toBe(headers.get(11n)?.chained);
    expect(run.chain.block(12n)?.previousBlockhash).toBe(run.chain.block(8n)?.blockhash);
  });

  it("undoes the changes of transactions and bundles in one block to the same accounts", async () => {
    const run = await beforeTurn();
    run.slots(4); // 11 is open
    run.chain.send(run.transfer(alice, bob, 1_000n));
    run.pass(run.slotNs / 4n);
    run.chain.sendBundle([run.transfer(bob, carol, 2_000n), run.transfer(carol, alice, 3_000n)]);
    run.pass(run.slotNs / 4n);
    run.chain.send(run.transfer(alice, carol, 4_000n));
    run.pass(run.slotNs / 4n);
    expect(run.chain.transactionCount()).toBe(4n);
    run.chain.faults.forkNext(1);
    run.slots(1);
    expect(run.eventsOf("abandoned").length).toBe(1);
    expect([alice, bob, carol].map((pair) => run.balance(pair))).toEqual([
      walletLamports,
      walletLamports,
      walletLamports,
    ]);
  });

  it("shows programs only the slots of their own ancestors", async () => {
    const run = await beforeTurn();
    run.slots(4);
    run.chain.faults.forkNext(2);
    run.slots(2); // 13 is open, on 12, on 9
    const data = run.chain.account("SysvarS1otHashes111111111111111111111111111")?.data;
    const view = new DataView((data ?? new Uint8Array(0)).slice().buffer);
    const count = Number(view.getBigUint64(0, true));
    const slots = Array.from({ length: count }, (_, i) => view.getBigUint64(8 + 40 * i, true));
    expect(slots).toEqual([12n, 9n, 8n, 7n, 6n, 5n, 4n, 3n, 2n, 1n, 0n]);
  });

  it("rejects transactions with a blockhash of the abandoned blocks", async () => {
    const run = await beforeTurn();
    run.slots(4);
    const { blockhash } = run.chain.latestBlockhash("processed"); // of slot 10
    run.chain.faults.forkNext(2);
    run.slots(1);
    const signature = run.chain.send(run.transfer(alice, bob, 5n, blockhash));
    run.slots(1);
    expect(run.dropped.get(signature)).toBe("BlockhashNotFound");
  });

  it("moves the confirmed slot back to an ancestor", async () => {
    const run = await beforeTurn();
    run.slots(4); // 11 is open
    expect(run.chain.slot("confirmed")).toBe(10n);
    run.chain.faults.forkNext(3);
    run.slots(1); // 12 is open, on 8
    expect(run.chain.slot("confirmed")).toBe(8n);
    expect(run.chain.latestBlockhash("confirmed").blockhash).toBe(run.chain.block(8n)?.blockhash);
    run.slots(1);
    expect(run.chain.slot("confirmed")).toBe(12n);
  });

  it("never goes below the root", async () => {
    const run = await ChainRun.open({ rootedDepth: 4, intervalsPerSlot: 1 });
    run.slots(18);
    const root = run.chain.slot("finalized");
    run.chain.faults.forkNext(100);
    run.slots(6);
    expect(run.eventsOf("abandoned").every(({ block }) => block.slot > root)).toBe(true);
    expect(run.eventsOf("abandoned").length).toBeGreaterThan(3);
    expect(run.chain.block(root)?.slot).toBe(root);
  });
});

describe("commitments", () => {
  it("confirms a slot behind the tip and roots 31 blocks behind that", async () => {
    const run = await ChainRun.open({ intervalsPerSlot: 1 });
    const signature = run.chain.send(run.transfer(alice, bob, 1n)); // slot 1
    run.slots(1);
    expect(run.chain.status(signature)).toMatchObject({ confirmationStatus: "confirmed" });
    run.slots(30);
    expect(run.chain.status(signature)?.confirmations).toBe(30n + 1n);
    expect(run.chain.slot("finalized")).toBe(0n);
    run.slots(1);
    expect(run.chain.slot("processed")).toBe(33n);
    expect(run.chain.slot("confirmed")).toBe(32n);
    expect(run.chain.slot("finalized")).toBe(1n);
    expect(run.chain.status(signature)).toEqual({
      slot: 1n,
      confirmations: null,
      err: null,
      confirmationStatus: "finalized",
    });
    expect(
      run
        .eventsOf("confirmed")
        .map(({ slot }) => slot)
        .slice(0, 3),
    ).toEqual([1n, 2n, 3n]);
    expect(run.eventsOf("rooted").map(({ slot }) => slot)).toEqual([1n]);
    const latest = run.chain.latestBlockhash("finalized");
    expect(latest.blockhash).toBe(run.chain.block(1n)?.blockhash);
    expect(latest.lastValidBlockHeight).toBe(151n);
  });

  it("retains a bounded history", async () => {
    const run = await ChainRun.open({ historySlots: 256, slotMs: 16, intervalsPerSlot: 1 });
    const signature = run.chain.send(run.transfer(alice, bob, 1n));
    run.slots(255);
    expect(run.chain.block(1n)?.slot).toBe(1n);
    run.slots(10);
    expect(run.chain.firstKeptSlot()).toBe(10n);
    expect(run.chain.block(9n)).toBeUndefined();
    expect(run.chain.block(10n)?.slot).toBe(10n);
    expect(run.chain.status(signature)).toBeNull();
    expect(run.chain.signaturesFor(addressOf(alice))).toEqual([]);
  });
});

describe("rejecting and delaying", () => {
  it("drops the transactions that a rule selects, or random ones", async () => {
    const run = await ChainRun.open();
    const bad = run.transfer(alice, bob, 666n);
    const { faults } = run.chain;
    faults.refuses = (_, wire) => Buffer.compare(wire, bad) === 0;
    const refused = run.chain.send(bad);
    const replacement = run.chain.send(run.transfer(alice, bob, 1n));
    run.slots();
    expect(run.chain.status(refused)).toBeNull();
    expect(run.chain.status(replacement)?.err).toBeNull();
    faults.refuses = null;
    faults.refuseShare = 0.5;
    const signatures = Array.from({ length: 60 }, (_, i) =>
      run.chain.send(run.transfer(alice, bob, BigInt(i + 2))),
    );
    run.slots();
    const landed = signatures.filter((signature) => run.chain.status(signature)).length;
    expect(landed).toBeGreaterThan(10);
    expect(landed).toBeLessThan(50);
  });

  it("delays the execution of later submissions", async () => {
    const run = await ChainRun.open();
    run.chain.faults.delayMs = 800;
    const late = run.chain.send(run.transfer(alice, bob, 1n));
    run.chain.faults.delayMs = 0;
    const early = run.chain.send(run.transfer(alice, bob, 2n));
    run.slots(1);
    expect(run.chain.status(early)?.slot).toBe(1n);
    expect(run.chain.status(late)).toBeNull();
    run.slots(2);
    expect(run.chain.status(late)?.slot).toBe(2n);
  });

  it("rejects settings out of range", async () => {
    const { faults } = (await ChainRun.open()).chain;
    const value = expect.objectContaining({ reason: "value_invalid" });
    expect(() => faults.skipNext(-1)).toThrow(value);
    expect(() => faults.forkNext(0.5)).toThrow(value);
    expect(() => {
      faults.skipShare = 1.1;
    }).toThrow(value);
    expect(() => {
      faults.refuseShare = Number.NaN;
    }).toThrow(value);
    expect(() => {
      faults.delayMs = -1;
    }).toThrow(value);
  });
});
