import { describe, expect, it, vi } from "vitest";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { coveredSlots } from "../../../src/relay/leaders/schedule.ts";
import { SandboxLeaders } from "../../../src/sandbox/chain/leader-schedule.ts";
import { makeValidators } from "../../../src/sandbox/chain/validators.ts";
import { addressOf, ChainRun, erin } from "../../support/transactions/chain.ts";

describe("the leader schedule", () => {
  const leaders = [5n, 3n, 2n].map((stakeLamports, i) => ({
    identity: `leader ${i}`,
    publicKey: new Uint8Array(32).fill(i + 1),
    stakeLamports: stakeLamports * 10n ** 15n,
  }));

  it("assigns turns of four slots by stake, and equal seeds give equal schedules", () => {
    const schedule = new SandboxLeaders(3, leaders, 40_000n);
    const repeated = new SandboxLeaders(3, leaders, 40_000n);
    const other = new SandboxLeaders(4, leaders, 40_000n);
    const numbers = Array.from({ length: 40_000 }, (_, i) => schedule.numberOf(BigInt(i)));
    expect(numbers).toEqual(numbers.map((_, i) => repeated.numberOf(BigInt(i))));
    expect(numbers).not.toEqual(numbers.map((_, i) => other.numberOf(BigInt(i))));
    expect(numbers.every((number, i) => number === numbers[i - (i % 4)])).toBe(true);
    const shares = [0, 1, 2].map(
      (leader) => numbers.filter((number) => number === leader).length / numbers.length,
    );
    expect(shares[0]).toBeCloseTo(0.5, 1);
    expect(shares[1]).toBeCloseTo(0.3, 1);
    expect(shares[2]).toBeCloseTo(0.2, 1);
    const nextEpoch = numbers.map((_, i) => schedule.numberOf(BigInt(40_000 + i)));
    expect(nextEpoch).not.toEqual(numbers);
  });

  it("reports the current epoch and the next one, equally to the RPC and to the relay", async () => {
    const run = await ChainRun.open({ slotsPerEpoch: 64, firstSlot: 1000n, intervalsPerSlot: 1 });
    const { chain } = run;
    expect(chain.epochInfo("processed")).toMatchObject({ epoch: 15n, slotIndex: 40n });
    expect(chain.leaderSchedule(16n * 64n + 63n)).not.toBeNull();
    expect(chain.leaderSchedule(17n * 64n)).toBeNull();
    expect(chain.leaderOf(17n * 64n)).toBeNull();
    const relay = chain.relaySchedule();
    expect(coveredSlots(relay)).toEqual({ first: 960n, last: 1087n });
    const present = chain.leaderSchedule(1000n);
    const identities = chain.validators().map(({ identity }) => identity);
    for (let slot = 960n; slot < 1024n; slot++) {
      const leader = chain.leaderOf(slot) ?? "";
      expect(present?.get(leader)).toContain(Number(slot - 960n));
      expect(identities[relay.leaderBySlot[Number(slot - 960n)] ?? 0]).toBe(leader);
    }
    run.slots(30); // across the end of the epoch
    expect(chain.epochInfo("processed").epoch).toBe(16n);
    expect(chain.leaderSchedule(17n * 64n)).not.toBeNull();
    for (const { block } of run.eventsOf("block")) {
      expect(block.leader).toBe(chain.leaderOf(block.slot));
    }
  });

  it("has validators with different keys and stakes, some with the partner's software", () => {
    const validators = makeValidators(1, 5);
    expect(new Set(validators.flatMap((each) => [each.identity, each.voteAccount])).size).toBe(10);
    expect(new Set(validators.map(({ stakeLamports }) => stakeLamports)).size).toBe(5);
    expect(validators.filter(({ isAltPartner }) => isAltPartner).length).toBe(2);
    expect(makeValidators(2, 5)[0]?.identity).not.toBe(validators[0]?.identity);
  });
});

describe("votes", () => {
  it("are accepted by the vote program in every block, across skips and forks", async () => {
    const run = await ChainRun.open({ votes: true, intervalsPerSlot: 4, validators: 3 });
    run.chain.faults.skipShare = 0.25;
    for (let i = 0; i < 12; i++) {
      run.slots(7);
      run.chain.faults.forkNext(i % 4);
    }
    run.chain.faults.skipShare = 0;
    run.slots(60);
    const votes = run.eventsOf("executed").map(({ transaction }) => transaction);
    expect(run.eventsOf("abandoned").length).toBeGreaterThan(4);
    expect(run.eventsOf("skipped").length).toBeGreaterThan(4);
    expect(votes.map(({ err }) => err).filter((err) => err !== null)).toEqual([]);
    const created = run.eventsOf("block").length;
    expect(votes.length).toBeGreaterThanOrEqual(3 * (created - 2));
    // Votes for the newest block have not landed yet.
    const voted = run.chain.block(run.chain.slot("confirmed"))?.parentSlot;
    for (const { voteAccount, identity } of run.chain.validators()) {
      const data = run.chain.account(voteAccount)?.data ?? new Uint8Array(0);
      const { node, newest } = readVoteAccount(data);
      expect(node).toBe(identity);
      expect(newest).toBe(voted);
    }
  });
});

/** Version 4 of the account (3 in its first word): the votes start after 145 bytes. */
function readVoteAccount(data: Uint8Array): { node: string; newest: bigint } {
  const view = new DataView(data.buffer, data.byteOffset);
  expect(view.getUint32(0, true)).toBe(3);
  const count = Number(view.getBigUint64(145, true));
  const newestAt = 153 + 13 * (count - 1);
  return {
    node: encodeBase58(data.subarray(4, 36)),
    newest: view.getBigUint64(newestAt + 1, true),
  };
}

describe("background traffic", () => {
  it("has the configured rate, lands, and tips the configured addresses", async () => {
    const tipAddress = addressOf(erin);
    const run = await ChainRun.open({
      background: { transactionsPerSecond: 50, tipAddresses: [tipAddress], tipShare: 0.5 },
    });
    const before = run.chain.account(tipAddress)?.lamports ?? 0n;
    run.slots(25); // 10 seconds
    const executed = run.eventsOf("executed").map(({ transaction }) => transaction);
    expect(executed.length).toBe(500);
    expect(executed.filter(({ err }) => err !== null)).toEqual([]);
    expect(new Set(executed.map(({ signature }) => signature)).size).toBe(500);
    const tips = run.chain.signaturesFor(tipAddress).length;
    expect(tips).toBeGreaterThan(150);
    expect(tips).toBeLessThan(350);
    const gained = (run.chain.account(tipAddress)?.lamports ?? 0n) - before;
    expect(gained).toBeGreaterThanOrEqual(10_000n * BigInt(tips));
  });
});

describe("opening", () => {
  it("rejects options out of range", async () => {
    const wrong = [
      { validators: 0 },
      { slotMs: 0 },
      { intervalsPerSlot: 5 },
      { slotsPerEpoch: 42 },
      { firstSlot: 0n },
      { rootedDepth: 200 },
      { hashesPerTick: 3 },
      { seed: 0.5 },
      { background: { tipAddresses: ["nobody"] } },
      { background: { transactionsPerSecond: -1 } },
      { funded: new Map([["nobody", 1n]]) },
      { intervalsPerSlot: 64, hashesPerTick: 4, transactionsPerIntervalMax: 512 },
    ];
    for (const options of wrong) {
      await expect(ChainRun.open(options)).rejects.toMatchObject({ reason: "value_invalid" });
    }
  });

  it("explains how to install a missing virtual machine", async () => {
    vi.doMock("litesvm/dist/internal.js", () => {
      throw new Error("Cannot find package 'litesvm'");
    });
    try {
      await expect(ChainRun.open()).rejects.toMatchObject({
        reason: "sandbox_missing",
        message: expect.stringContaining("npm install --include=optional"),
      });
    } finally {
      vi.doUnmock("litesvm/dist/internal.js");
    }
  });

  it("derives the time from slots, and the block time from the genesis", async () => {
    const run = await ChainRun.open({ genesisSeconds: 1000n, slotMs: 500, firstSlot: 77n });
    run.slots(5);
    expect(run.chain.block(76n)?.blockTime).toBe(1000n);
    expect([77n, 78n, 79n].map((slot) => run.chain.block(slot)?.blockTime)).toEqual([
      1000n,
      1000n,
      1001n,
    ]);
    expect(run.chain.block(77n)?.blockHeight).toBe(1n);
    expect(run.chain.firstKeptSlot()).toBe(76n);
    expect(run.chain.block(75n)).toBeUndefined();
    expect(run.chain.block(1000n)).toBeNull();
  });

  it("does not catch up after a long pause", async () => {
    const run = await ChainRun.open({ intervalsPerSlot: 1, catchUpSlotsMax: 10 });
    run.slots(5);
    expect(run.chain.currentSlot).toBe(6n);
    run.slots(1_000_000);
    expect(run.chain.currentSlot).toBe(17n);
    run.slots(3);
    expect(run.chain.currentSlot).toBe(20n);
    expect(run.eventsOf("skipped")).toEqual([]);
  });

  it("continues after an exception of a listener, and throws it at the end", async () => {
    const run = await ChainRun.open({ intervalsPerSlot: 1 });
    const stop = run.chain.subscribe(() => {
      throw new Error("listener");
    });
    expect(() => run.slots(3)).toThrow("listener");
    expect(run.chain.slot("processed")).toBe(4n);
    stop();
    run.slots(1);
    expect(run.eventsOf("block").length).toBe(4);
  });
});
