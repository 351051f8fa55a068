import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SqlDriver } from "../../../../src/platform/store/driver.ts";
import {
  SqlTierStore,
  selectCounted,
  selectLeaving,
} from "../../../../src/platform/store/tables/tier-store.ts";
import {
  type CountedTip,
  type TierCheckpoint,
  type TierEvent,
  type TierState,
  tierEventKinds,
} from "../../../../src/shreds/tiers/types.ts";
import { History, settings, stepsOf } from "../../../shreds/tiers/histories.ts";
import { onEachDatabase } from "../databases.ts";
import { recordNotifications } from "../notification-recorder.ts";
import { keepTip, SqlHistoryStore } from "../tiers.ts";

const ms = fc.maxSafeNat();
const amount = fc.bigInt(0n, 2n ** 63n - 1n);
const text = fc.string({ unit: "grapheme", maxLength: 20 });
const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });
const accountId = fc.constantFrom("a_1", "a_2", "a_3");
const state: fc.Arbitrary<TierState> = fc.record({
  accountId,
  tier: orNull(text),
  graceSinceMs: orNull(ms),
  sumLamports: amount,
  eventCount: amount,
});
const event: fc.Arbitrary<TierEvent> = fc.record({
  accountId,
  number: fc.bigInt(1n, 20n),
  atMs: ms,
  kind: fc.constantFrom(...tierEventKinds),
  from: orNull(text),
  to: orNull(text),
  sumLamports: amount,
});
const checkpoint: fc.Arbitrary<TierCheckpoint> = fc.record({
  evaluatedMs: ms,
  countedOrder: amount,
  tiers: fc.array(fc.record({ name: text, thresholdLamports: amount }), { maxLength: 3 }),
  states: fc.array(state, { maxLength: 4 }),
  events: fc.array(event, { maxLength: 8 }),
});

function eventOf(number: bigint, changes: Partial<TierEvent> = {}): TierEvent {
  return {
    accountId: "a_1",
    number,
    atMs: 1000 + Number(number),
    kind: "upgraded",
    from: null,
    to: "tier-1",
    sumLamports: 200n,
    ...changes,
  };
}

function tipOf(order: bigint, registeredMs: number): CountedTip {
  return {
    order,
    accountId: "a_1",
    lamports: order * 10n,
    registeredMs,
    countedMs: registeredMs + 7,
  };
}

const tiers = [{ name: "tier-1", thresholdLamports: 200n }];
const emptyCheckpoint: TierCheckpoint = {
  evaluatedMs: 1000,
  countedOrder: 5n,
  tiers,
  states: [],
  events: [],
};

onEachDatabase((databases) => {
  async function open(): Promise<{ driver: SqlDriver; store: SqlTierStore }> {
    const driver = await databases.migrated();
    const store = new SqlTierStore(driver);
    expect(await store.takeOver()).toBe(1n);
    return { driver, store };
  }

  describe("checkpoints of tiers", () => {
    it("are returned as stored: the newest state per account, the first event per number", async () => {
      const { store, driver } = await open();
      const clear = ["tier_clock", "tier_states", "tier_events"].map((table) => ({
        sql: `DELETE FROM ${table}`,
        params: [],
      }));
      await fc.assert(
        fc.asyncProperty(fc.array(checkpoint, { maxLength: 4 }), async (checkpoints) => {
          await driver.transaction(clear, "survives-kill");
          const epoch = await store.takeOver();
          const states = new Map<string, TierState>();
          const events = new Map<string, TierEvent>();
          for (const each of checkpoints) {
            await store.checkpoint(each, epoch);
            for (const one of each.states) states.set(one.accountId, one);
            for (const one of each.events) {
              const name = `${one.accountId} ${one.number}`;
              if (!events.has(name)) events.set(name, one);
            }
          }
          const last = checkpoints.at(-1);
          const loaded = await store.load();
          if (!last) {
            expect(loaded).toBeNull();
            return;
          }
          const byId = (a: TierState, b: TierState) => (a.accountId < b.accountId ? -1 : 1);
          const { evaluatedMs, countedOrder, tiers: stored } = last;
          expect(loaded).toEqual({
            evaluatedMs,
            countedOrder,
            tiers: stored,
            states: [...states.values()].toSorted(byId),
          });
          for (const id of ["a_1", "a_2", "a_3"]) {
            const expected = [...events.values()]
              .filter((one) => one.accountId === id)
              .toSorted((a, b) => Number(b.number - a.number));
            expect(await store.events(id, null, 100)).toEqual(expected);
          }
        }),
        { numRuns: 60 },
      );
    });

    it("are stored completely or not at all", async () => {
      const { store } = await open();
      await store.checkpoint(emptyCheckpoint, 1n);
      const tooLarge = eventOf(2n ** 64n);
      const one = {
        accountId: "a_1",
        tier: null,
        graceSinceMs: null,
        sumLamports: 1n,
        eventCount: 1n,
      };
      const wrong = { ...emptyCheckpoint, evaluatedMs: 2000, states: [one], events: [tooLarge] };
      await expect(store.checkpoint(wrong, 1n)).rejects.toMatchObject({ reason: "store_failed" });
      expect(await store.load()).toEqual({
        evaluatedMs: 1000,
        countedOrder: 5n,
        tiers,
        states: [],
      });
    });

    it("limit a sum to the largest value", async () => {
      const { store } = await open();
      const huge = {
        accountId: "a_1",
        tier: null,
        graceSinceMs: null,
        sumLamports: 2n ** 70n,
        eventCount: 0n,
      };
      await store.checkpoint({ ...emptyCheckpoint, states: [huge] }, 1n);
      expect((await store.load())?.states).toMatchObject([{ sumLamports: 2n ** 63n - 1n }]);
    });

    it("contain more states than one read returns", async () => {
      const { store } = await open();
      const states = Array.from({ length: 12_001 }, (_, i) => ({
        accountId: `a_${String(i).padStart(6, "0")}`,
        tier: i % 2 === 0 ? "tier-1" : null,
        graceSinceMs: i % 3 === 0 ? i : null,
        sumLamports: BigInt(i),
        eventCount: 1n,
      }));
      await store.checkpoint({ ...emptyCheckpoint, states }, 1n);
      expect((await store.load())?.states).toEqual(states);
      await store.checkpoint({ ...emptyCheckpoint, states: states.slice(0, 10_000) }, 1n);
      expect((await store.load())?.states).toHaveLength(12_001);
    });

    it("reject an unknown event", async () => {
      const { store, driver } = await open();
      await store.checkpoint({ ...emptyCheckpoint, events: [eventOf(1n)] }, 1n);
      await driver.transaction(
        [{ sql: "UPDATE tier_events SET kind = 'x'", params: [] }],
        "durable",
      );
      await expect(store.events("a_1", null, 10)).rejects.toMatchObject({
        reason: "store_failed",
        message: expect.stringContaining('got "x"'),
      });
    });
  });

  describe("terms", () => {
    const stateOf = (id: string, changes: Partial<TierState> = {}): TierState => ({
      accountId: id,
      tier: null,
      graceSinceMs: null,
      sumLamports: 1n,
      eventCount: 0n,
      ...changes,
    });

    it("have unique epochs, even if several nodes take over at once", async () => {
      const location = databases.location();
      const first = new SqlTierStore(await databases.migrated(location));
      const second = new SqlTierStore(await databases.driver(location));
      expect(await first.epoch()).toBe(0n);
      const stores = [first, second, first, second, first, second];
      const epochs = await Promise.all(stores.map((store) => store.takeOver()));
      expect(epochs.toSorted((a, b) => Number(a - b))).toEqual([1n, 2n, 3n, 4n, 5n, 6n]);
      expect(await second.epoch()).toBe(6n);
      expect(await first.load()).toBeNull();
    });

    it("that ended store no checkpoint, and do not affect the later term", async () => {
      const { store } = await open();
      const states = [stateOf("a_1", { tier: "tier-1" })];
      expect(await store.checkpoint({ ...emptyCheckpoint, states }, 1n)).toBe(true);
      expect(await store.takeOver()).toBe(2n);
      const late = {
        evaluatedMs: 9000,
        countedOrder: 9n,
        tiers: [],
        states: [stateOf("a_1"), stateOf("a_2")],
        events: [eventOf(1n)],
      };
      expect(await store.checkpoint(late, 1n)).toBe(false);
      expect(await store.checkpoint(late, 3n)).toBe(false);
      expect(await store.load()).toEqual({ evaluatedMs: 1000, countedOrder: 5n, tiers, states });
      expect(await store.events("a_1", null, 9)).toEqual([]);
      const [old, present] = await Promise.all([
        store.checkpoint(late, 1n),
        store.checkpoint({ ...emptyCheckpoint, evaluatedMs: 2000 }, 2n),
      ]);
      expect([old, present]).toEqual([false, true]);
      expect(await store.load()).toEqual({ evaluatedMs: 2000, countedOrder: 5n, tiers, states });
    });

    it("continue from a checkpoint of a version without terms", async () => {
      const { store, driver } = await open();
      const sql = "UPDATE tier_clock SET evaluated_ms = 7, counted_order = 0, epoch = 0";
      await driver.transaction([{ sql, params: [] }], "durable");
      const old = { evaluatedMs: 7, countedOrder: 0n, tiers: null, states: [] };
      expect(await store.load()).toEqual(old);
      expect(await store.takeOver()).toBe(1n);
      expect(await store.load()).toEqual(old);
    });

    it("return the changes since a checkpoint, or all states", async () => {
      const { store } = await open();
      const put = (...states: TierState[]) => store.checkpoint({ ...emptyCheckpoint, states }, 1n);
      expect(await store.statesChangedAfter(null)).toEqual({
        epoch: 1n,
        checkpoint: 0n,
        states: [],
      });
      await put(stateOf("a_1"), stateOf("a_2"));
      await put(stateOf("a_3"));
      await put();
      await put(stateOf("a_2", { sumLamports: 2n, tier: "tier-1" }));
      const changed = async (number: bigint | null) => {
        const { states, ...term } = await store.statesChangedAfter(number);
        expect(term).toEqual({ epoch: 1n, checkpoint: 4n });
        return states.map((one) => `${one.accountId} ${one.sumLamports}`);
      };
      expect(await changed(null)).toEqual(["a_1 1", "a_2 2", "a_3 1"]);
      expect(await changed(0n)).toEqual(["a_1 1", "a_3 1", "a_2 2"]);
      expect(await changed(1n)).toEqual(["a_3 1", "a_2 2"]);
      expect(await changed(2n)).toEqual(["a_2 2"]);
      expect(await changed(3n)).toEqual(["a_2 2"]);
      expect(await changed(4n)).toEqual([]);
    });

    it("return more changed states than one read contains", async () => {
      const { store } = await open();
      const ids = Array.from({ length: 6001 }, (_, i) => `a_${String(i).padStart(5, "0")}`);
      await store.checkpoint({ ...emptyCheckpoint, states: [stateOf("b")] }, 1n);
      const states = ids.map((id) => stateOf(id));
      await store.checkpoint({ ...emptyCheckpoint, states }, 1n);
      await store.checkpoint({ ...emptyCheckpoint, states: [stateOf("a_00000")] }, 1n);
      const changed = await store.statesChangedAfter(1n);
      expect(changed.states.map((one) => one.accountId)).toEqual([...ids.slice(1), ids[0]]);
    });

    it("notify other nodes of changed tiers with the checkpoint", async () => {
      const { driver: database } = await open();
      const { driver, notifications, notify } = recordNotifications(database);
      const store = new SqlTierStore(driver);
      const moved = eventOf(3n, { from: null, to: "tier-1" });
      const grace = eventOf(1n, { accountId: "a_2", from: "tier-1", to: "tier-1" });
      const downgraded = eventOf(8n, { accountId: "a_3", from: "tier-1", to: null });
      const odd = eventOf(1n, { accountId: "a 4", from: null, to: "tier-1" });
      const states = [
        stateOf("a_1", { tier: "tier-1", eventCount: 3n }),
        stateOf("a_2", { tier: "tier-1", eventCount: 1n }),
        stateOf("a_3", { eventCount: 8n }),
      ];
      await store.checkpoint(
        { ...emptyCheckpoint, states, events: [moved, grace, downgraded] },
        1n,
      );
      await store.checkpoint({ ...emptyCheckpoint, states, events: [grace] }, 1n);
      const unread = [stateOf("a 4", { tier: "tier-1", eventCount: 1n })];
      await store.checkpoint({ ...emptyCheckpoint, states: unread, events: [odd] }, 1n);
      await store.takeOver();
      expect(notifications).toEqual([
        ["tiers a_1 tier-1 3", "tiers a_3 - 8"],
        ["tiers"],
        ["tiers"],
        ["tiers"],
      ]);
      const published: unknown[] = [];
      store.onNews((news) => published.push(news));
      notify(["keys", "tiers a_1 tier-1 3", "registrations x", "tiers a_3 - 8"]);
      notify(["keys", "tiersx a_1 tier-1 3"]);
      notify(["tiers"]);
      notify(["tiers nonsense"]);
      notify(null);
      expect(published).toEqual([
        [
          { accountId: "a_1", tier: "tier-1", eventCount: 3n },
          { accountId: "a_3", tier: null, eventCount: 8n },
        ],
        [],
        [],
        null,
      ]);
    });
  });

  describe("the audit trail", () => {
    it("is returned newest first, in contiguous pages", async () => {
      const { store } = await open();
      const events = Array.from({ length: 25 }, (_, i) => eventOf(BigInt(i + 1)));
      const other = eventOf(99n, { accountId: "a_2" });
      await store.checkpoint({ ...emptyCheckpoint, events: [...events, other] }, 1n);
      const notifications: TierEvent[] = [];
      for (let before: bigint | null = null; ; ) {
        const piece = await store.events("a_1", before, 10);
        if (piece.length === 0) break;
        notifications.push(...piece);
        before = piece.at(-1)?.number ?? null;
      }
      expect(notifications).toEqual(events.toReversed());
    });
  });

  describe("counted tips", () => {
    it("are returned by order number, after a given one, up to a limit", async () => {
      const { store, driver } = await open();
      for (const order of [9n, 2n, 5n, 7n])
        await keepTip(driver, tipOf(order, 1000 - Number(order)));
      expect(await store.countedAfter(2n, 2)).toEqual([tipOf(5n, 995), tipOf(7n, 993)]);
      expect(await store.countedAfter(7n, 10)).toEqual([tipOf(9n, 991)]);
      expect(await store.countedAfter(9n, 10)).toEqual([]);
    });

    it("expire by registration time, then by order number", async () => {
      const { store, driver } = await open();
      const tips = [tipOf(4n, 10), tipOf(1n, 20), tipOf(3n, 20), tipOf(8n, 20), tipOf(2n, 30)];
      for (const tip of tips.toReversed()) await keepTip(driver, tip);
      const ordersAfter = async (
        registeredMs: number,
        order: bigint,
        untilMs: number,
        limit = 10,
      ) => {
        const found = await store.leavingAfter({ registeredMs, order }, untilMs, limit);
        return found.map((tip) => tip.order);
      };
      expect(await ordersAfter(-5, 0n, 100)).toEqual([4n, 1n, 3n, 8n, 2n]);
      expect(await ordersAfter(10, 4n, 100)).toEqual([1n, 3n, 8n, 2n]);
      expect(await ordersAfter(10, 3n, 100)).toEqual([4n, 1n, 3n, 8n, 2n]);
      expect(await ordersAfter(20, 1n, 100)).toEqual([3n, 8n, 2n]);
      expect(await ordersAfter(20, 3n, 20)).toEqual([8n]);
      expect(await ordersAfter(20, 2n ** 63n - 1n, Number.MAX_SAFE_INTEGER)).toEqual([2n]);
      expect(await ordersAfter(0, 0n, 100, 2)).toEqual([4n, 1n]);
      expect(await ordersAfter(0, 0n, 9)).toEqual([]);
      expect(await store.leavingAfter({ registeredMs: 29, order: 0n }, 30, 1)).toEqual([
        tipOf(2n, 30),
      ]);
    });

    it("exclude pending and dropped tips", async () => {
      const { store, driver } = await open();
      await keepTip(driver, tipOf(1n, 10), "pending");
      await keepTip(driver, tipOf(2n, 10), "dropped");
      expect(await store.countedAfter(0n, 10)).toEqual([]);
      expect(await store.leavingAfter({ registeredMs: 0, order: 0n }, 100, 10)).toEqual([]);
    });

    it("are found by an index without sorting; expiring ones by a covering index", async () => {
      const { driver } = await open();
      const planOf = async (sql: string, count: number) => {
        const params = Array.from({ length: count }, () => 1n);
        const rows = await driver.query(`${databases.explain} ${sql}`, params);
        return rows.map((row) => row.at(-1)).join("\n");
      };
      for (const sql of databases.fillForPlans) {
        await driver.transaction([{ sql, params: [] }], "survives-kill");
      }
      const leaving = await planOf(selectLeaving, 4);
      const counted = await planOf(selectCounted, 2);
      expect(leaving).toMatch(/(COVERING INDEX|Index Only Scan using) registrations_leaving/);
      expect(counted).toMatch(/(USING INDEX|Index Scan using) registrations_counted/);
      // No sort, and no access to the table.
      expect([leaving, counted].join()).not.toMatch(/B-TREE|SCAN|Seq Scan|Sort|Bitmap/);
    });
  });

  describe("the tier engine over the database", () => {
    it("agrees with the model over restarts", async () => {
      const driver = await databases.migrated();
      await fc.assert(
        fc.asyncProperty(settings, stepsOf(25), async (setting, steps) => {
          const store = await SqlHistoryStore.empty(driver);
          await new History({ ...setting, pauseMax: 0 }, store).run(steps);
        }),
        { numRuns: 25 },
      );
    }, 60_000);
  });
});
