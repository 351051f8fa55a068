import { describe, expect, it } from "vitest";
import { createLogger } from "../../../src/core/log.ts";
import { PendingRegistrations } from "../../../src/shreds/registrations/pending-registrations.ts";
import { TipRegistrar } from "../../../src/shreds/registrations/registrar.ts";
import type { RegistrationResult } from "../../../src/shreds/registrations/registration-types.ts";
import { AccountTiers } from "../../../src/shreds/tiers/account-tiers.ts";
import { FollowerTiers } from "../../../src/shreds/tiers/follower-tiers.ts";
import { TierLeadership } from "../../../src/shreds/tiers/tier-leadership.ts";
import type {
  TierChanges,
  TierNews,
  TierRules,
  TierState,
} from "../../../src/shreds/tiers/types.ts";
import { silent } from "../../platform/store/files.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";
import { MemoryRows } from "./memory-rows.ts";
import { Link, NodeClock, Simulation } from "./simulation.ts";

const rules: TierRules = {
  tiers: [
    { name: "tier-1", thresholdLamports: 200n },
    { name: "tier-2", thresholdLamports: 500n },
  ],
  windowMs: 60_000,
  graceMs: 60_000,
};

/** Without a Solana node, a registration counts immediately. */
class Node {
  readonly clock: NodeClock;
  readonly link: Link;
  readonly tiers: AccountTiers;
  readonly leadership: TierLeadership;
  readonly registrations: PendingRegistrations;
  readonly notifications: [string, string | null][] = [];
  readonly lines: string[] = [];
  readonly #registrar: TipRegistrar;

  constructor(simulation: Simulation, skewMs = 0) {
    this.clock = new NodeClock(simulation.clock, skewMs);
    this.link = new Link(simulation, this.clock, () => 1);
    const { tiers, registrations } = this.link.stores;
    const { clock } = this;
    const log = createLogger({
      stream: { write: (line: string) => void this.lines.push(line) },
    });
    this.registrations = new PendingRegistrations({
      clock,
      log,
      store: registrations,
      sources: null,
      limits: { pendingMax: 3, pendingPerAccountMax: 2 },
    });
    this.tiers = new AccountTiers({ rules, store: tiers, clock, log });
    this.leadership = new TierLeadership({
      store: tiers,
      locks: this.link,
      tiers: this.tiers,
      registrations: this.registrations,
      clock,
      log,
      random: () => 0.5,
    });
    this.tiers.onChange((accountId, tier) => this.notifications.push([accountId, tier]));
    this.#registrar = new TipRegistrar({
      log,
      reader: {
        inspect: (wire) => {
          const view = Buffer.from(wire);
          const tipLamports = BigInt(view.readUInt32LE(4));
          return { ...fakeFacts(view.readUInt32LE()), tipLamports };
        },
        decode: () => null,
      },
      verifier: { verify: () => Promise.resolve(true) },
      store: registrations,
      tiers: this.tiers,
      pending: this.registrations,
      present: () => ({ slot: null, slotNs: null }),
      addresses: () => new Set(),
    });
  }

  async register(number: number, lamports: number, accountId = "a"): Promise<RegistrationResult> {
    const wire = Buffer.alloc(8);
    wire.writeUInt32LE(number);
    wire.writeUInt32LE(lamports, 4);
    const entry = { transaction: wire.toString("base64"), slot: 1n };
    const [result] = await this.#registrar.register(accountId, [entry], false);
    if (!result) throw new Error("expected a result");
    return result;
  }
}

class LeadershipHarness {
  readonly clock = new ManualClock();
  readonly rows = new MemoryRows();
  readonly simulation = new Simulation(this.clock, this.rows);

  async start(skewMs = 0): Promise<Node> {
    const node = new Node(this.simulation, skewMs);
    await this.done(node.leadership.start());
    return node;
  }

  async done<T>(work: Promise<T>): Promise<T> {
    const end = { isReached: false };
    const done = work.finally(() => {
      end.isReached = true;
    });
    while (!end.isReached) await this.clock.advance(1);
    return done;
  }

  /** In separate steps, because an operation may need several turns. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) await this.clock.advance(Math.min(left, 50));
  }
}

describe("a node", () => {
  it("becomes the leader without one, and a follower with one", async () => {
    const harness = new LeadershipHarness();
    const leader = await harness.start();
    const follower = await harness.start();
    expect([leader.leadership.isLeader, follower.leadership.isLeader]).toEqual([true, false]);
    expect(await harness.done(leader.register(1, 200))).toMatchObject({ state: "counted" });
    await harness.pass(10);
    expect(follower.notifications).toEqual([["a", "tier-1"]]);
    // Sums and grace periods are read afterwards.
    await harness.pass(1500);
    expect(follower.tiers.view("a")).toEqual(leader.tiers.view("a"));
    const trail = await harness.done(follower.tiers.history("a", null, 9));
    expect(trail).toMatchObject([{ kind: "upgraded", number: 1n }]);
    const late = await harness.start();
    expect(late.tiers.tierOf("a")).toBe("tier-1");
    expect(late.notifications).toEqual([["a", "tier-1"]]);
  });

  it("registers tips as pending as a follower, and the leader counts them immediately", async () => {
    const harness = new LeadershipHarness();
    const leader = await harness.start();
    const follower = await harness.start();
    expect(await harness.done(follower.register(1, 500))).toMatchObject({ state: "pending" });
    await harness.pass(20);
    expect([leader.notifications, follower.notifications]).toEqual([
      [["a", "tier-2"]],
      [["a", "tier-2"]],
    ]);
    expect(harness.rows.counted).toMatchObject([{ order: 1n, lamports: 500n }]);
    expect([leader.registrations.counts.places, follower.registrations.counts.places]).toEqual([
      0, 0,
    ]);
    const both = await harness.done(
      Promise.all([leader.register(2, 5), follower.register(2, 5), leader.register(2, 5)]),
    );
    expect(both.filter(({ accepted }) => accepted)).toHaveLength(1);
  });

  it("takes over after the leader ended, and no account loses a tier meanwhile", async () => {
    const harness = new LeadershipHarness();
    const leader = await harness.start();
    const follower = await harness.start();
    await harness.done(leader.register(1, 200));
    await harness.pass(1500);
    leader.clock.end();
    harness.simulation.links.delete(leader.link);
    // Registered while no node counts.
    expect(await harness.done(follower.register(2, 300))).toMatchObject({ state: "pending" });
    await harness.pass(5000);
    expect(follower.leadership.isLeader).toBe(false);
    expect(follower.notifications).toEqual([["a", "tier-1"]]);
    harness.simulation.dropLock(leader.link);
    await harness.pass(1200);
    expect(follower.leadership.isLeader).toBe(true);
    expect(follower.notifications).toEqual([
      ["a", "tier-1"],
      ["a", "tier-2"],
    ]);
    expect(harness.rows.epoch).toBe(2n);
  });

  it("continues in memory while the database is unreachable, and in the same term afterwards", async () => {
    const harness = new LeadershipHarness();
    const leader = await harness.start();
    const follower = await harness.start();
    await harness.done(leader.register(1, 200));
    await harness.pass(1500);
    harness.simulation.away(true);
    await harness.pass(10_000);
    expect(leader.leadership.isLeader).toBe(true);
    expect([leader, follower].map(({ tiers }) => tiers.tierOf("a"))).toEqual(["tier-1", "tier-1"]);
    for (const node of [leader, follower]) {
      const refused = await harness.done(node.register(2, 300));
      expect(refused).toMatchObject({ accepted: false, reason: "store_failed" });
    }
    // The window and the grace period continue.
    await harness.pass(2 * rules.windowMs);
    expect([leader, follower].map(({ tiers }) => tiers.tierOf("a"))).toEqual([null, "tier-1"]);
    const follow = harness.simulation.tryLock(follower.link, () => {});
    harness.simulation.away(false);
    await harness.pass(3000);
    // Another process holds the lock without a term: the leader continues and retains everything.
    expect(leader.leadership.isLeader).toBe(true);
    expect(harness.rows.epoch).toBe(1n);
    await follow?.release();
    await harness.pass(3000);
    expect([leader, follower].filter(({ leadership }) => leadership.isLeader)).toHaveLength(1);
    expect(follower.tiers.tierOf("a")).toBeNull();
    expect(await harness.done(follower.register(2, 300))).toMatchObject({ accepted: true });
  });

  it("that was superseded steps down, writes nothing more, and reports differences once", async () => {
    const harness = new LeadershipHarness();
    const old = await harness.start();
    const next = await harness.start();
    await harness.done(old.register(1, 200));
    await harness.pass(1500);
    old.clock.freeze();
    harness.simulation.dropLock(old.link);
    await harness.pass(1500);
    expect(next.leadership.isLeader).toBe(true);
    await harness.done(next.register(2, 300));
    await harness.pass(100);
    const { checkpoint } = harness.rows;
    const late = old.register(3, 5, "b");
    old.clock.thaw();
    expect(await harness.done(late)).toMatchObject({ accepted: true, state: "pending" });
    await harness.pass(3000);
    expect(old.leadership.isLeader).toBe(false);
    expect(old.notifications).toEqual([
      ["a", "tier-1"],
      ["a", "tier-2"],
    ]);
    expect(harness.rows.epoch).toBe(2n);
    expect(harness.rows.checkpoint).toBeGreaterThan(checkpoint);
    expect(harness.simulation.accepted.filter(({ epoch }) => epoch === 1n).at(-1)).toBe(
      harness.simulation.accepted.findLast(({ epoch }) => epoch === 1n),
    );
    expect(harness.rows.counted.map(({ order }) => order)).toEqual([1n, 2n, 3n]);
    expect(old.registrations.counts.places).toBe(0);
  });

  it("that does not know of its lost lock learns of the next leader", async () => {
    const harness = new LeadershipHarness();
    const old = await harness.start();
    const next = await harness.start();
    harness.simulation.forgetLock();
    await harness.pass(1500);
    expect([old, next].map(({ leadership }) => leadership.isLeader)).toEqual([false, true]);
    await harness.done(next.register(1, 200));
    await harness.pass(100);
    expect(old.notifications).toEqual([["a", "tier-1"]]);
  });

  it("with a counted tip of unknown result reads all state again", async () => {
    const harness = new LeadershipHarness();
    const leader = await harness.start();
    leader.link.losesAnswer = true;
    const refused = await harness.done(leader.register(1, 200));
    expect(refused).toMatchObject({ accepted: false, reason: "store_failed" });
    await harness.pass(3000);
    expect(leader.leadership.isLeader).toBe(true);
    expect(leader.notifications).toEqual([["a", "tier-1"]]);
    expect(leader.tiers.view("a").sumLamports).toBe(200n);
  });

  it("counts tips of a node whose clock is ahead or behind, each for its own 24 hours", async () => {
    const harness = new LeadershipHarness();
    const leader = await harness.start();
    const ahead = await harness.start(3000);
    const behind = await harness.start(-3000);
    await harness.done(ahead.register(1, 200, "ahead"));
    await harness.done(behind.register(2, 200, "behind"));
    await harness.pass(100);
    expect(["ahead", "behind"].map((id) => leader.tiers.tierOf(id))).toEqual(["tier-1", "tier-1"]);
    const leaveMs = (id: string): number =>
      (harness.rows.counted.find(({ accountId }) => accountId === id)?.registeredMs ?? 0) +
      rules.windowMs;
    await harness.pass(rules.windowMs + 10_000);
    expect(leader.tiers.view("ahead").graceSinceMs).toBe(leaveMs("ahead"));
    expect(leader.tiers.view("behind").graceSinceMs).toBe(leaveMs("behind"));
    expect(leaveMs("ahead") - leaveMs("behind")).toBeGreaterThan(5900);
  });

  it("as a follower has a bounded capacity, released when the leader settles", async () => {
    const harness = new LeadershipHarness();
    const leader = await harness.start();
    const follower = await harness.start();
    leader.clock.freeze();
    const accounts = ["a", "a", "a", "b", "b"];
    const results = await Promise.all(
      accounts.map((accountId, i) => harness.done(follower.register(i, 1, accountId))),
    );
    expect(results.map((one) => (one.accepted ? one.state : one.reason))).toEqual([
      "pending",
      "pending",
      "overloaded",
      "pending",
      "overloaded",
    ]);
    leader.clock.thaw();
    await harness.pass(50);
    expect(harness.rows.counted).toHaveLength(3);
    expect(follower.registrations.counts.places).toBe(0);
    // Changes reported during the disconnect are detected too.
    leader.clock.freeze();
    await harness.done(follower.register(7, 1));
    follower.link.cut(true);
    leader.clock.thaw();
    await harness.pass(50);
    expect(follower.registrations.counts.places).toBe(1);
    follower.link.cut(false);
    await harness.pass(50);
    expect(follower.registrations.counts.places).toBe(0);
  });

  it("leaves no timer, and releases its lock", async () => {
    const harness = new LeadershipHarness();
    const [leader, follower] = [await harness.start(), await harness.start()];
    await harness.done(follower.register(1, 200));
    for (const node of [leader, follower]) {
      await harness.done(node.leadership.close());
      await harness.done(node.registrations.close());
    }
    await harness.pass(10);
    expect([leader.clock.pending, follower.clock.pending]).toEqual([0, 0]);
    expect(harness.simulation.holder).toBeNull();
  });

  it("does not start if it cannot read the store", async () => {
    const harness = new LeadershipHarness();
    await harness.start();
    const node = new Node(harness.simulation);
    node.link.cut(true);
    await expect(harness.done(node.leadership.start())).rejects.toMatchObject({
      reason: "store_failed",
    });
  });
});

describe("followed tiers", () => {
  function stateOf(tier: string | null, eventCount: bigint, sumLamports = 1n): TierState {
    return { accountId: "a", tier, graceSinceMs: null, sumLamports, eventCount };
  }
  function newsOf(tier: string | null, eventCount: bigint): TierNews[] {
    return [{ accountId: "a", tier, eventCount }];
  }

  /** Answers when the test chooses. */
  class Reads {
    readonly requests: (bigint | null)[] = [];
    #answers: ((changes: TierChanges) => void)[] = [];
    readonly clock = new ManualClock();
    readonly notifications: (string | null)[] = [];
    readonly followed = new FollowerTiers({
      rules,
      clock: this.clock,
      log: silent,
      onChange: (_, tier) => this.notifications.push(tier),
      store: {
        statesChangedAfter: (number) => {
          this.requests.push(number);
          return new Promise((resolve) => this.#answers.push(resolve));
        },
      },
    });

    async answer(checkpoint: bigint, states: TierState[], epoch = 1n): Promise<void> {
      this.#answers.shift()?.({ epoch, checkpoint, states });
      await this.clock.advance(0);
    }
  }

  it("apply as soon as they are reported, and reads are never older", async () => {
    const reads = new Reads();
    const loading = reads.followed.load();
    await reads.answer(3n, [stateOf(null, 0n)]);
    await loading;
    reads.followed.receive(newsOf("tier-1", 1n));
    expect(reads.notifications).toEqual(["tier-1"]); // before any read
    expect(reads.requests).toEqual([null, 3n]);
    reads.followed.receive(newsOf("tier-2", 2n));
    await reads.answer(4n, [stateOf("tier-1", 1n, 200n)]); // too early for the second one
    expect(reads.followed.tierOf("a")).toBe("tier-2");
    expect(reads.requests).toEqual([null, 3n, 4n]);
    await reads.answer(5n, [stateOf("tier-2", 2n, 500n)]);
    reads.followed.receive(newsOf("tier-1", 1n)); // late
    await reads.answer(5n, []);
    expect(reads.followed.view("a")).toMatchObject({ tier: "tier-2", sumLamports: 500n });
    expect(reads.notifications).toEqual(["tier-1", "tier-2"]);
  });

  it("are those of the next term, including changes reported during the read", async () => {
    const reads = new Reads();
    const loading = reads.followed.load();
    reads.followed.receive(newsOf("tier-1", 4n));
    await reads.answer(3n, [stateOf(null, 3n)]);
    await loading;
    expect(reads.followed.tierOf("a")).toBe("tier-1");
    await reads.answer(9n, [stateOf("tier-2", 9n)], 2n); // the changes alone are not sufficient
    expect(reads.requests).toEqual([null, 3n, null]);
    await reads.answer(9n, [stateOf("tier-2", 3n)], 2n);
    expect(reads.followed.tierOf("a")).toBe("tier-2");
    reads.followed.receive(null);
    await reads.answer(8n, [], 2n); // an older copy of the database
    expect(reads.requests.slice(3)).toEqual([9n, null]);
    await reads.answer(8n, [stateOf(null, 2n)], 2n);
    expect(reads.notifications).toEqual(["tier-1", "tier-2", null]);
  });

  it("of another configuration are ignored", async () => {
    const reads = new Reads();
    const loading = reads.followed.load();
    await reads.answer(3n, [stateOf("tier-9", 1n)]);
    await loading;
    expect(reads.followed.tierOf("a")).toBeNull();
    expect([...reads.followed.tiers()]).toEqual([]);
  });
});
