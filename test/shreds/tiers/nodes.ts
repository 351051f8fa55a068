// Random histories of several nodes on one database. Nodes register tips, leaders are killed, frozen or
// disconnected, and the database becomes unreachable. Invariants are checked at every step and at the
// end.

import assert from "node:assert/strict";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { PendingRegistrations } from "../../../src/shreds/registrations/pending-registrations.ts";
import { TipRegistrar } from "../../../src/shreds/registrations/registrar.ts";
import type { RegistrationEntry } from "../../../src/shreds/registrations/registration-types.ts";
import { AccountTiers } from "../../../src/shreds/tiers/account-tiers.ts";
import { TierLeadership } from "../../../src/shreds/tiers/tier-leadership.ts";
import type { CountedTip, TierRules } from "../../../src/shreds/tiers/types.ts";
import { silent } from "../../platform/store/files.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";
import type { NodeSetting, NodeStep } from "./node-steps.ts";
import { Link, NodeClock, type Rows, Simulation } from "./simulation.ts";
import { emptyState, type ModelTip, modelAccount } from "./tier-model.ts";

export const windowMs = 20_000;
const graceMs = 7_000;
export const accountIds = ["a", "b", "c"];
const amounts = [1n, 5n, 10n, 20n, 35n];
export const nodeRules: TierRules = {
  tiers: [
    { name: "tier-1", thresholdLamports: 10n },
    { name: "tier-2", thresholdLamports: 40n },
  ],
  windowMs,
  graceMs,
};

/** One process. */
class Node {
  readonly clock: NodeClock;
  readonly link: Link;
  readonly tiers: AccountTiers;
  readonly leadership: TierLeadership;
  readonly registrations: PendingRegistrations;
  readonly registrar: TipRegistrar;
  readonly notifications = new Map<string, string | null>();
  readonly notificationLog: [string, string | null][] = [];
  wasLeader = false;
  isReady = false;
  isOver = false;

  constructor(simulation: Simulation, setting: NodeSetting, random: SeededRandom, landed: Landed) {
    const skewMs = setting.skewMs === 0 ? 0 : random.below(2 * setting.skewMs) - setting.skewMs;
    this.clock = new NodeClock(simulation.clock, skewMs);
    const delayMs = (): number =>
      setting.delayMaxMs === 0 ? 0 : random.below(setting.delayMaxMs + 1);
    this.link = new Link(simulation, this.clock, delayMs);
    const { tiers, registrations } = this.link.stores;
    const { clock } = this;
    this.registrations = new PendingRegistrations({
      clock,
      log: silent,
      store: registrations,
      sources: setting.countsAtOnce ? null : landed.requests(simulation.clock),
      limits: { pendingMax: 1000, pendingPerAccountMax: 1000 },
    });
    this.tiers = new AccountTiers({
      rules: nodeRules,
      store: tiers,
      clock,
      log: silent,
      headMax: 3,
      pageMax: 2,
    });
    this.leadership = new TierLeadership({
      store: tiers,
      locks: this.link,
      tiers: this.tiers,
      registrations: this.registrations,
      clock,
      log: silent,
      random: () => random.below(1000) / 1000,
    });
    this.registrar = new TipRegistrar({
      log: silent,
      reader: {
        inspect: (wire) => {
          const number = Buffer.from(wire).readUInt32LE();
          return { ...fakeFacts(number), tipLamports: amounts[number % amounts.length] ?? 1n };
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
    this.tiers.onChange((accountId, tier) => {
      assert.notEqual(
        tier,
        this.notifications.get(accountId) ?? null,
        `told ${accountId} ${tier} twice`,
      );
      this.notifications.set(accountId, tier);
      this.wasLeader ||= this.leadership.isLeader;
      this.notificationLog.push([accountId, tier]);
    });
  }

  async start(): Promise<void> {
    for (;;) {
      try {
        await this.leadership.start();
        break;
      } catch {
        // The service would be restarted.
        await this.clock.sleep(500);
      }
    }
    for (const accountId of accountIds) {
      const tier = this.tiers.tierOf(accountId);
      if (tier !== null) this.notifications.set(accountId, tier);
    }
    this.isReady = true;
  }

  async close(): Promise<void> {
    await this.leadership.close();
    await this.registrations.close();
  }
}

/** Some land, some fail, some expire. */
class Landed {
  requests(clock: ManualClock) {
    return {
      observations: null,
      decode: () => null,
      addresses: () => new Set<string>(),
      landed: {
        landingStates: async (signatures: readonly string[]) => {
          await clock.sleep(5);
          const states = signatures.map((each) =>
            numberOf(each) % 7 === 0 ? ("absent" as const) : ("landed" as const),
          );
          return { slot: 1n, states };
        },
        landedTransaction: async (signature: string) => {
          await clock.sleep(5);
          const number = numberOf(signature);
          return { slot: 1n, err: number % 11 === 0 ? "failed" : null, gainLamports: 1000n };
        },
      },
      outcomes: {
        blockhashState: () => Promise.resolve({ isValid: true, slot: 1n }),
        nonceValue: () => Promise.resolve(null),
      },
    };
  }
}

export class NodesHistory {
  readonly #setting: NodeSetting;
  readonly #random: SeededRandom;
  readonly #clock = new ManualClock();
  readonly #simulation: Simulation;
  readonly #nodes: Node[] = [];
  readonly #landed = new Landed();
  readonly #counted: () => Promise<readonly CountedTip[]>;
  readonly #acknowledged = new Map<string, string>();
  readonly #work = new Set<Promise<void>>();
  #number = 0;
  #wrong: Error | undefined;
  readonly seen = { terms: 0, settled: 0, exact: 0, views: 0, followers: 0 };

  constructor(setting: NodeSetting, rows: Rows, counted: () => Promise<readonly CountedTip[]>) {
    this.#setting = setting;
    this.#random = new SeededRandom(setting.seed);
    this.#simulation = new Simulation(this.#clock, rows);
    this.#counted = counted;
  }

  async run(steps: readonly NodeStep[]): Promise<void> {
    for (let i = 0; i < this.#setting.nodes; i++) this.#join(i);
    await this.#pass(1000);
    for (const one of steps) {
      this.#take(one);
      await this.#pass(one.kind === "wait" ? one.ms : 1);
    }
    this.#simulation.away(false);
    for (const [i, node] of this.#nodes.entries()) {
      if (node.isOver) this.#join(i);
      node.clock.thaw();
      node.link.cut(false);
    }
    await this.#pass(60_000);
    for (let i = 0; this.#work.size > 0 && i < 100; i++) await this.#pass(1000);
    assert.equal(this.#work.size, 0, "work that never ends");
    await this.#compare();
    for (const node of this.#nodes) await this.#during(node.close());
    await this.#clock.advance(1000); // the last notifications arrive
    for (const { clock } of this.#nodes) assert.equal(clock.pending, 0, "timers left behind");
    if (this.#wrong) throw this.#wrong;
  }

  #join(i: number): void {
    const node = new Node(this.#simulation, this.#setting, this.#random, this.#landed);
    this.#nodes[i] = node;
    this.#do(node.start());
  }

  /** A killed process never completes its operations, so only live ones are awaited. */
  #do(work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => {
        this.#wrong ??= error instanceof Error ? error : new Error(String(error));
      })
      .finally(() => this.#work.delete(done));
    this.#work.add(done);
  }

  #nodeAt(at: number): Node | undefined {
    const leader = this.#nodes.find((node) => !node.isOver && node.leadership.isLeader);
    return at === 3 ? leader : this.#nodes[at];
  }

  #take(one: NodeStep): void {
    if (one.kind === "wait") return;
    if (one.kind === "register") {
      for (let i = 0; i < one.count; i++) this.#register(one.places, one.repeated);
      return;
    }
    if (!("place" in one)) {
      this.#simulation.away(one.kind === "away");
      return;
    }
    const i =
      one.place === 3 ? this.#nodes.findIndex(({ leadership }) => leadership.isLeader) : one.place;
    const node = this.#nodes[i];
    if (!node) return;
    if (one.kind === "join") {
      if (node.isOver) this.#join(i);
      return;
    }
    if (node.isOver) return;
    const { link, clock } = node;
    if (one.kind === "thaw") {
      clock.thaw();
      link.cut(false);
    }
    if (one.kind === "freeze") clock.freeze();
    if (one.kind === "cut") link.cut(true);
    if (one.kind === "lose answer") link.losesAnswer = true;
    if (one.kind === "lose lock") this.#simulation.dropLock(link);
    if (one.kind === "kill") this.#kill(node);
    if (one.kind === "close" && !clock.isFrozen && node.isReady && !link.isCut) {
      node.isOver = true;
      this.#do(node.close().then(() => void this.#simulation.links.delete(link)));
    }
    if ("lockMs" in one && one.lockMs !== null && one.kind !== "close") {
      this.#clock.after(one.lockMs, () => this.#simulation.dropLock(link));
    }
  }

  #kill(node: Node): void {
    node.isOver = true;
    node.clock.end();
    this.#simulation.links.delete(node.link);
    // Its promises never settle.
    this.#work.clear();
  }

  /** The same signature on each node, in one turn. */
  #register(places: readonly number[], repeated: boolean): void {
    const number = repeated && this.#number > 0 ? this.#random.below(this.#number) : this.#number++;
    const accountId = accountIds[number % accountIds.length] ?? "a";
    const wire = Buffer.alloc(8);
    wire.writeUInt32LE(number);
    const entry = { transaction: wire.toString("base64"), slot: 1n };
    for (const at of new Set(places)) {
      const node = this.#nodeAt(at);
      if (!node?.isReady || node.isOver || node.clock.isFrozen) continue;
      this.#do(this.#registerAt(node, accountId, entry));
    }
  }

  async #registerAt(node: Node, accountId: string, entry: RegistrationEntry): Promise<void> {
    const [result] = await node.registrar.register(accountId, [entry], false);
    if (!result?.accepted) return;
    assert.ok(!this.#acknowledged.has(result.signature), "acknowledged twice");
    this.#acknowledged.set(result.signature, accountId);
  }

  async #pass(ms: number): Promise<void> {
    await this.#quiet();
    // In separate steps, because every database operation ends in one of them.
    for (let left = ms; left > 0; left -= 250) {
      await this.#clock.advance(Math.min(left, 250));
      await this.#quiet();
      for (const node of this.#nodes) node.wasLeader ||= node.leadership.isLeader;
    }
    for (const node of this.#nodes) {
      if (!node.isReady || node.isOver) continue;
      for (const accountId of accountIds) {
        assert.equal(
          node.notifications.get(accountId) ?? null,
          node.tiers.tierOf(accountId),
          "not told",
        );
      }
    }
    if (this.#wrong) throw this.#wrong;
  }

  async #quiet(): Promise<void> {
    for (let i = 0; i < 4; i++) {
      await this.#simulation.rows.idle();
      await this.#clock.advance(0);
    }
  }

  async #during(work: Promise<void>): Promise<void> {
    const end = { isReached: false };
    const done = work.finally(() => {
      end.isReached = true;
    });
    while (!end.isReached) {
      await this.#quiet();
      await this.#clock.advance(end.isReached ? 0 : 10);
    }
    await done;
  }

  async #compare(): Promise<void> {
    const leaders = this.#nodes.filter(({ leadership }) => leadership.isLeader);
    assert.equal(leaders.length, 1, `expected one leader, got ${leaders.length}`);
    const [leader] = leaders;
    if (!leader) return;
    const { accepted } = this.#simulation;
    this.seen.terms += new Set(accepted.map(({ epoch }) => epoch)).size;
    for (const [i, { epoch }] of accepted.entries()) {
      assert.ok(
        epoch >= (accepted[i - 1]?.epoch ?? 0n),
        "a checkpoint of an earlier term was kept",
      );
    }
    const tips = await this.#counted();
    this.seen.settled += tips.length;
    await this.#compareRegistrations(leader);
    for (const accountId of accountIds) this.#compareAccount(leader, accountId, tips);
    await this.#compareTrails(leader);
    const viewOf = (node: Node) => accountIds.map((accountId) => node.tiers.view(accountId));
    const nodes = this.#nodes.filter(({ isOver }) => !isOver);
    // Sums are written about once a second.
    for (let i = 0; i < 100; i++) {
      const wanted = JSON.stringify(viewOf(leader), inText);
      if (nodes.every((node) => JSON.stringify(viewOf(node), inText) === wanted)) break;
      await this.#pass(100);
    }
    for (const node of nodes) assert.deepEqual(viewOf(node), viewOf(leader));
  }

  async #compareRegistrations({ link }: Node): Promise<void> {
    const owners = await this.#answer(() =>
      link.stores.registrations.owners([...this.#acknowledged.keys()]),
    );
    for (const [signature, accountId] of this.#acknowledged) {
      assert.equal(owners.get(signature), accountId, "acknowledged and lost");
    }
    const pending = await this.#answer(() => link.stores.registrations.pending(null, 1000));
    const expected = this.#setting.countsAtOnce ? 0 : pending.filter(neverLands).length;
    assert.equal(pending.length, expected, "registrations that nobody counted");
  }

  #compareAccount(leader: Node, accountId: string, tips: readonly CountedTip[]): void {
    const nowMs = leader.tiers.nowMs();
    const own: ModelTip[] = tips
      .filter((tip) => tip.accountId === accountId)
      .map((tip) => ({ ...tip, effectiveMs: tip.countedMs }));
    // In the order in which they took effect.
    let lastMs = 0;
    const model = own
      .toSorted((a, b) => Number(a.order - b.order))
      .map((tip) => {
        lastMs = Math.max(lastMs, tip.effectiveMs);
        return { ...tip, effectiveMs: lastMs };
      })
      .filter((tip) => tip.effectiveMs < tip.registeredMs + windowMs);
    const { state } = modelAccount(nodeRules, accountId, model, nowMs);
    const { tier, sumLamports, graceSinceMs } = leader.tiers.view(accountId);
    const expected = state ?? emptyState(accountId);
    assert.equal(sumLamports, expected.sumLamports, `sum of ${accountId}`);
    this.seen.views++;
    if (this.#isAmbiguous(model)) return;
    this.seen.exact++;
    const { tier: wanted, graceSinceMs: since } = expected;
    assert.deepEqual(
      { accountId, tier, graceSinceMs },
      { accountId, tier: wanted, graceSinceMs: since },
    );
  }

  /** A tip takes effect between its counting and the first checkpoint that contains it. */
  #isAmbiguous(tips: readonly ModelTip[]): boolean {
    const moves = tips.flatMap(({ registeredMs }) =>
      [0, 1, 2].map((i) => registeredMs + windowMs + i * graceMs),
    );
    return tips.some(({ order, countedMs }: ModelTip & { countedMs?: number }) => {
      const fromMs = countedMs ?? 0;
      const persisted = this.#simulation.accepted.find(
        ({ checkpoint }) => checkpoint.countedOrder >= order,
      );
      const untilMs = persisted?.checkpoint.evaluatedMs ?? Number.POSITIVE_INFINITY;
      return moves.some((atMs) => atMs >= fromMs && atMs <= untilMs);
    });
  }

  async #compareTrails(leader: Node): Promise<void> {
    for (const accountId of accountIds) {
      const newest = await this.#answer(() => leader.tiers.history(accountId, null, 10_000));
      const trail = newest.toReversed();
      let tier: string | null = null;
      let atMs = 0;
      for (const [i, event] of trail.entries()) {
        assert.equal(event.number, BigInt(i + 1), "the trail has a gap");
        assert.equal(event.from, tier, "the trail does not join");
        assert.ok(event.atMs >= atMs, "the trail goes back");
        ({ to: tier, atMs } = event);
      }
      assert.equal(tier, leader.tiers.tierOf(accountId), "the trail ends elsewhere");
      for (const node of this.#nodes) {
        if (!node.wasLeader)
          this.#compareNotifications(
            node,
            accountId,
            trail.map(({ to }) => to),
          );
      }
    }
  }

  /** A node that was always a follower reported only persisted changes, in order. */
  #compareNotifications(node: Node, accountId: string, tiers: readonly (string | null)[]): void {
    this.seen.followers++;
    let at = 0;
    for (const [id, tier] of node.notificationLog) {
      if (id !== accountId) continue;
      const found = tiers.indexOf(tier, at);
      assert.ok(found >= 0, `a follower told ${accountId} ${tier}, which was not kept then`);
      at = found;
    }
  }

  async #answer<T>(ask: () => Promise<T>): Promise<T> {
    const answers: T[] = [];
    await this.#during(ask().then((answer) => void answers.push(answer)));
    const [answer] = answers;
    if (answer === undefined) throw new Error("expected an answer");
    return answer;
  }
}

function inText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

function numberOf(signature: string): number {
  return Buffer.from(signature).reduce((sum, byte) => sum + byte, 0);
}

function neverLands({ signature }: { readonly signature: string }): boolean {
  return numberOf(signature) % 7 === 0;
}
