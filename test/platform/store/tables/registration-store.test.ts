import { base58 } from "@scure/base";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import type { SqlDriver } from "../../../../src/platform/store/driver.ts";
import { SqlRegistrationStore } from "../../../../src/platform/store/tables/registration-store.ts";
import { SqlTierStore } from "../../../../src/platform/store/tables/tier-store.ts";
import {
  proofKinds,
  type Registration,
  registrationReasons,
  registrationStates,
  type SettledTip,
  type Settlement,
} from "../../../../src/shreds/registrations/registration-types.ts";
import { onEachDatabase } from "../databases.ts";
import { recordNotifications } from "../notification-recorder.ts";

const codec = {
  encode: (bytes: Uint8Array) => base58.encode(bytes),
  decode: (text: string) => base58.decode(text),
};

function signatureOf(number: number): string {
  const bytes = new Uint8Array(64).fill(3);
  new DataView(bytes.buffer).setUint32(0, number);
  return base58.encode(bytes);
}

function registrationOf(number: number, changes: Partial<Registration> = {}): Registration {
  return {
    signature: signatureOf(number),
    accountId: "a_1",
    lamports: 5n,
    slot: 7n,
    registeredMs: 1_767_225_600_000 + number,
    lifetime: new Uint8Array(32).fill(9),
    nonceAccount: null,
    state: "pending",
    settledMs: null,
    countedLamports: null,
    countedOrder: null,
    reason: null,
    proof: null,
    ...changes,
  };
}

function tipOf(signature: string, accountId = "a_1"): SettledTip {
  return { signature, accountId, registeredMs: 1_767_225_600_000 };
}

function countedAs(order: bigint, lamports = 5n): Settlement {
  return {
    state: "counted",
    settledMs: 1_767_225_700_000,
    countedLamports: lamports,
    countedOrder: order,
    reason: null,
  };
}

const dropped: Settlement = {
  state: "dropped",
  settledMs: 1,
  countedLamports: null,
  countedOrder: null,
  reason: "expired",
};

const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });
const i63 = fc.bigInt(0n, 2n ** 63n - 1n);
const ms = fc.integer({ min: 0, max: 2 ** 50 });
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
const anyRegistration: fc.Arbitrary<Registration> = fc.record({
  signature: fc.uint8Array({ minLength: 64, maxLength: 64 }).map((bytes) => base58.encode(bytes)),
  accountId: fc.constantFrom("a_1", "a_2"),
  lamports: i63,
  slot: fc.bigInt(0n, 2n ** 64n - 1n),
  registeredMs: ms,
  lifetime: bytes32,
  nonceAccount: orNull(bytes32),
  state: fc.constantFrom(...registrationStates),
  settledMs: orNull(ms),
  countedLamports: orNull(i63),
  countedOrder: fc.constant(null),
  reason: orNull(fc.constantFrom(...registrationReasons)),
  proof: orNull(fc.constantFrom(...proofKinds)),
});

const newestFirst = (all: readonly Registration[]) =>
  all.toSorted(
    (a, b) =>
      b.registeredMs - a.registeredMs ||
      Buffer.compare(base58.decode(a.signature), base58.decode(b.signature)),
  );

onEachDatabase((databases) => {
  async function openStore(): Promise<{ driver: SqlDriver; store: SqlRegistrationStore }> {
    const driver = await databases.migrated();
    await new SqlTierStore(driver).takeOver(); // epoch 1
    return { driver, store: new SqlRegistrationStore(driver, codec) };
  }

  describe("registrations", () => {
    it("are returned as added, even at the limits of their ranges", async () => {
      const { store } = await openStore();
      const model: Registration[] = [];
      await fc.assert(
        fc.asyncProperty(fc.array(anyRegistration, { maxLength: 5 }), async (added) => {
          const results = await Promise.all(added.map((one) => store.add(one)));
          model.push(...added.filter((_, i) => results[i]));
          for (const account of ["a_1", "a_2"]) {
            const own = newestFirst(model.filter(({ accountId }) => accountId === account));
            expect(await store.ofAccount(account, null, 10_000)).toEqual(own);
          }
          const pending = newestFirst(model.filter(({ state }) => state === "pending"));
          const found = await store.pending(null, 10_000);
          expect(newestFirst(found)).toEqual(pending);
        }),
        { numRuns: 40 },
      );
    });

    it("belong to the first account, even among concurrent calls", async () => {
      const { store } = await openStore();
      const tries = Array.from({ length: 60 }, (_, i) =>
        store.add(registrationOf(i % 3, { accountId: `a_${i}`, lamports: BigInt(i) })),
      );
      const results = await Promise.all(tries);
      expect(results.flatMap((isTaken, i) => (isTaken ? [i] : []))).toEqual([0, 1, 2]);
      expect(await store.add(registrationOf(1, { accountId: "a_9", lamports: 99n }))).toBe(false);
      const owners = await store.owners([0, 1, 2, 3].map(signatureOf));
      expect(Object.fromEntries(owners)).toEqual({
        [signatureOf(0)]: "a_0",
        [signatureOf(1)]: "a_1",
        [signatureOf(2)]: "a_2",
      });
      expect(await store.ofAccount("a_1", null, 9)).toMatchObject([{ lamports: 1n }]);
    });

    it("of one batch share a commit; a failing one does not affect the others", async () => {
      const { driver, store } = await openStore();
      const sent: number[] = [];
      const counting = new SqlRegistrationStore(
        {
          ...driver,
          query: (sql, params) => driver.query(sql, params),
          transaction: (statements, durability) => {
            sent.push(statements.length);
            expect(durability).toBe("durable");
            return driver.transaction(statements, durability);
          },
          onForeignChange: (listener) => driver.onForeignChange(listener),
          close: () => driver.close(),
        },
        codec,
      );
      const added = [
        counting.add(registrationOf(1)),
        counting.add(registrationOf(2, { lamports: 2n ** 63n })), // no database has such an integer
        counting.add(registrationOf(3)),
      ];
      expect(sent).toEqual([1, 1, 1]); // before the first await, so they share a batch
      const ends = await Promise.allSettled(added);
      expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      await expect(added[1]).rejects.toMatchObject({ reason: "store_failed" });
      expect((await store.pending(null, 9)).map(({ signature }) => signature)).toEqual([
        signatureOf(1),
        signatureOf(3),
      ]);
    });

    it("are settled once, and only while pending", async () => {
      const { store } = await openStore();
      await Promise.all([1, 2, 3].map((number) => store.add(registrationOf(number))));
      await store.add(registrationOf(4, { ...countedAs(4n) }));
      const signature = signatureOf(1);
      const tries = [
        store.settle(tipOf(signature), countedAs(1n), 1n),
        store.settle(tipOf(signature), dropped, 1n),
      ];
      expect(await Promise.all(tries)).toEqual([true, false]);
      expect(await store.settle(tipOf(signatureOf(2)), dropped, 1n)).toBe(true);
      expect(await store.settle(tipOf(signatureOf(4)), dropped, 1n)).toBe(false);
      expect(await store.settle(tipOf(signatureOf(5)), dropped, 1n)).toBe(false);
      expect(await store.ofAccount("a_1", null, 9)).toMatchObject([
        { signature: signatureOf(4), state: "counted", countedOrder: 4n },
        { signature: signatureOf(3), state: "pending", settledMs: null },
        { signature: signatureOf(2), state: "dropped", reason: "expired", settledMs: 1 },
        { signature, state: "counted", countedOrder: 1n, countedLamports: 5n },
      ]);
      expect((await store.pending(null, 9)).length).toBe(1);
    });

    it("of an ended term are neither counted nor settled, with a distinct result", async () => {
      const { driver, store } = await openStore();
      await store.add(registrationOf(1));
      await store.add(registrationOf(2));
      const [signature, other] = [signatureOf(1), signatureOf(2)];
      expect(await new SqlTierStore(driver).takeOver()).toBe(2n);
      expect(await store.settle(tipOf(signature), countedAs(1n), 1n)).toBeNull();
      expect(await store.settle(tipOf(signature), dropped, 3n)).toBeNull();
      expect(await store.settle(tipOf(signatureOf(9)), dropped, 1n)).toBeNull();
      expect(await store.addCounted(registrationOf(3, countedAs(1n)), 1n)).toBeNull();
      expect(await store.addCounted(registrationOf(1, countedAs(1n)), 1n)).toBeNull();
      expect(await store.lastOrder()).toBe(0n);
      expect((await store.owners([signatureOf(3)])).size).toBe(0);
      const both = [
        store.settle(tipOf(signature), countedAs(7n), 1n),
        store.settle(tipOf(other), countedAs(8n), 2n),
        store.settle(tipOf(other), countedAs(9n), 2n),
        store.addCounted(registrationOf(4, countedAs(10n)), 2n),
        store.addCounted(registrationOf(4, countedAs(11n)), 2n),
        store.addCounted(registrationOf(5, countedAs(12n)), 1n),
      ];
      expect(await Promise.all(both)).toEqual([null, true, false, true, false, null]);
      expect(await new SqlTierStore(driver).epoch()).toBe(2n);
      expect((await store.pending(null, 9)).map((one) => one.signature)).toEqual([signature]);
    });

    it("are settled before a takeover or not at all", async () => {
      const location = databases.location();
      const old = await databases.migrated(location);
      const next = await databases.driver(location);
      await new SqlTierStore(old).takeOver();
      const store = new SqlRegistrationStore(old, codec);
      // Far more than are settled until the takeover, on any machine.
      const numbers = Array.from({ length: 3000 }, (_, i) => i + 1);
      await Promise.all(numbers.map((number) => store.add(registrationOf(number))));
      const reader = new SqlRegistrationStore(next, codec);
      const work = (async () => {
        const ends: (boolean | null)[] = [];
        for (const number of numbers) {
          ends.push(await store.settle(tipOf(signatureOf(number)), countedAs(BigInt(number)), 1n));
          if (ends.at(-1) === null) break;
        }
        return ends;
      })();
      while ((await reader.lastOrder()) < 20n);
      await new SqlTierStore(next).takeOver();
      const last = await reader.lastOrder();
      const ends = await work;
      expect(ends.lastIndexOf(true)).toBe(Number(last) - 1);
      expect(ends.indexOf(null)).toBe(Number(last));
      expect(await reader.lastOrder()).toBe(last);
    });

    it("delay a takeover until their settlement is committed", async () => {
      const location = databases.location();
      const old = await databases.migrated(location);
      const next = await databases.driver(location);
      await new SqlTierStore(old).takeOver();
      const store = new SqlRegistrationStore(old, codec);
      await store.add(registrationOf(1));
      // Shares the commit of calls in the same turn, and takes as long.
      const slow = `UPDATE tip_snapshots SET snapshot = '' WHERE id = (WITH RECURSIVE numbers (number) AS (
        SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 1500000)
        SELECT MAX(number) FROM numbers)`;
      const settled = store.settle(tipOf(signatureOf(1)), countedAs(1n), 1n);
      const shared = old.transaction([{ sql: slow, params: [] }], "durable", []);
      await systemClock.sleep(100);
      await new SqlTierStore(next).takeOver();
      const seen = await new SqlRegistrationStore(next, codec).lastOrder();
      await shared;
      expect({ settled: await settled, seen }).toEqual(
        seen === 1n ? { settled: true, seen } : { settled: null, seen: 0n },
      );
    });

    it("of other nodes are reported, and read by signature while pending", async () => {
      const { driver: database } = await openStore();
      const { driver, notifications, notify } = recordNotifications(database);
      const store = new SqlRegistrationStore(driver, codec);
      const all = Array.from({ length: 60 }, (_, i) => registrationOf(i));
      for (const one of all) await store.add(one);
      expect(notifications.at(-1)).toEqual([`registrations ${signatureOf(59)}`]);
      await store.settle(tipOf(signatureOf(3)), dropped, 1n);
      expect(notifications.at(-1)).toEqual([`registrations ${signatureOf(3)}`]);
      await store.addCounted(registrationOf(70, countedAs(1n)), 1n);
      expect(notifications.at(-1)).toEqual([]);
      const signatures = [
        ...all.map(({ signature }) => signature),
        signatureOf(70),
        signatureOf(99),
      ];
      const found = await store.pendingOf(signatures);
      const wanted = all.filter(({ signature }) => signature !== signatureOf(3));
      expect(newestFirst(found)).toEqual(newestFirst(wanted));
      expect(await store.pendingOf([])).toEqual([]);
      const published: unknown[] = [];
      store.onNews((news) => published.push(news));
      notify(["tiers a_1 tier-1 3", "registrations x", "registrations y"]);
      notify(["keys"]);
      notify(null);
      expect(published).toEqual([["x", "y"], null]);
    });

    it("never share an order number", async () => {
      const { store } = await openStore();
      await store.add(registrationOf(1, countedAs(5n)));
      await store.add(registrationOf(2));
      await expect(store.add(registrationOf(3, countedAs(5n)))).rejects.toMatchObject({
        reason: "store_failed",
      });
      await expect(store.settle(tipOf(signatureOf(2)), countedAs(5n), 1n)).rejects.toMatchObject({
        reason: "store_failed",
      });
      expect(await store.settle(tipOf(signatureOf(2)), countedAs(6n), 1n)).toBe(true);
    });

    it("return the largest order number", async () => {
      const { store } = await openStore();
      expect(await store.lastOrder()).toBe(0n);
      await store.add(registrationOf(1));
      expect(await store.lastOrder()).toBe(0n);
      for (const order of [3n, 2n ** 62n, 9n])
        await store.add(registrationOf(Number(order % 1000n), countedAs(order)));
      expect(await store.lastOrder()).toBe(2n ** 62n);
    });

    it("are read page by page without gaps or duplicates, even within one millisecond", async () => {
      const { store } = await openStore();
      const all = Array.from({ length: 100 }, (_, i) =>
        registrationOf(i * 7919, { registeredMs: 1000 + Math.floor(i / 30) }),
      );
      await Promise.all(all.map((one) => store.add(one)));
      const found: Registration[] = [];
      for (;;) {
        const page = await store.pending(found.at(-1) ?? null, 7);
        if (page.length === 0) break;
        expect(page.length).toBeLessThanOrEqual(7);
        found.push(...page);
      }
      expect(found.map(({ signature }) => signature)).toEqual(
        all.map(({ signature }) => signature),
      );
      const notifications: Registration[] = [];
      for (;;) {
        const page = await store.ofAccount("a_1", notifications.at(-1)?.registeredMs ?? null, 7);
        if (page.length === 0) break;
        notifications.push(...page);
      }
      expect(notifications).toEqual(newestFirst(all));
    });

    it("with manual damage do not prevent startup", async () => {
      const { driver, store } = await openStore();
      await Promise.all([1, 2].map((number) => store.add(registrationOf(number))));
      const corrupt = "UPDATE registrations SET reason = 'spoilt' WHERE signature = $1";
      const params = [base58.decode(signatureOf(1))];
      await driver.transaction([{ sql: corrupt, params }], "durable");
      expect((await store.pending(null, 9)).map(({ signature }) => signature)).toEqual([
        signatureOf(2),
      ]);
      await expect(store.ofAccount("a_1", null, 9)).rejects.toMatchObject({
        reason: "store_failed",
      });
    });

    it("have signatures of exactly 64 bytes", async () => {
      const { store } = await openStore();
      const short = registrationOf(1, { signature: base58.encode(new Uint8Array(63)) });
      await expect(store.add(short)).rejects.toMatchObject({ reason: "store_failed" });
      await expect(store.settle(tipOf(""), dropped, 1n)).rejects.toMatchObject({
        reason: "store_failed",
      });
    });
  });
});
