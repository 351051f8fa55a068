import { base58 } from "@scure/base";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SqlDriver } from "../../../../src/platform/store/driver.ts";
import { SqlLandedTipStore } from "../../../../src/platform/store/tables/landed-tip-store.ts";
import type { LandedTip, TipQuarter, TipSnapshot } from "../../../../src/tips/tip-types.ts";
import { onEachDatabase } from "../databases.ts";
import { signatureCodec } from "../files.ts";

function tipOf(number: number, landedMs: number, lamports = 10_000n): LandedTip {
  return { signature: base58.encode(new Uint8Array(64).fill(number)), lamports, landedMs };
}

const snapshot: TipSnapshot = {
  timeMs: 1_767_226_500_000,
  percentiles: { p25: 1n, p50: 10_000n, p75: 2n ** 53n - 1n, p95: 2n ** 60n, p99: 2n ** 62n },
  emaP50: 9_876n,
  count: 1_000_000,
  windowStartMs: 1_767_225_600_000,
  isStale: false,
};

onEachDatabase((databases) => {
  async function opened(
    location?: string,
  ): Promise<{ driver: SqlDriver; store: SqlLandedTipStore }> {
    const driver = await databases.migrated(location);
    return { driver, store: new SqlLandedTipStore(driver, signatureCodec) };
  }

  describe("landed tips", () => {
    it("are read once each, in order, in pages", async () => {
      const tip = fc.record({
        number: fc.nat(12),
        landedMs: fc.nat(5),
        lamports: fc.bigInt(1n, 2n ** 53n - 1n),
      });
      const property = fc.asyncProperty(
        fc.array(tip, { maxLength: 40 }),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(5),
        async (created, limit, sinceMs) => {
          const { store } = await opened();
          const known = new Map<string, LandedTip>();
          for (const { number, landedMs, lamports } of created) {
            const one = tipOf(number, landedMs, lamports);
            await store.write([one], []);
            if (!known.has(one.signature)) known.set(one.signature, one);
          }
          const hex = ({ signature }: LandedTip) =>
            Buffer.from(base58.decode(signature)).toString("hex");
          const expected = [...known.values()]
            .filter(({ landedMs }) => landedMs >= sinceMs)
            .toSorted((a, b) => a.landedMs - b.landedMs || (hex(a) < hex(b) ? -1 : 1));
          const read: LandedTip[] = [];
          for (;;) {
            const page = await store.since(sinceMs, read.at(-1) ?? null, limit);
            read.push(...page);
            if (page.length < limit) break;
          }
          expect(read).toEqual(expected);
        },
      );
      await fc.assert(property, { numRuns: 8 });
    });

    it("are removed and added in one transaction", async () => {
      const { store } = await opened();
      await store.write([tipOf(1, 100), tipOf(2, 100)], []);
      await store.write([tipOf(2, 300)], [tipOf(1, 0).signature, tipOf(2, 0).signature]);
      expect(await store.since(0, null, 10)).toEqual([tipOf(2, 300)]);
      const wrong = { signature: "0OIl", lamports: 1n, landedMs: 1 };
      await expect(store.write([tipOf(3, 1), wrong], [])).rejects.toMatchObject({
        reason: "store_failed",
      });
      expect(await store.since(0, null, 10)).toHaveLength(1);
      await store.write([], []);
    });

    it("are deleted after their window", async () => {
      const { store } = await opened();
      const many = Array.from({ length: 6000 }, (_, i) => {
        const bytes = new Uint8Array(64);
        new DataView(bytes.buffer).setUint32(0, i + 1);
        return { signature: base58.encode(bytes), lamports: 1n, landedMs: i };
      });
      await store.write(many, []);
      await store.forgetBefore(5999);
      expect(await store.since(0, null, 10)).toEqual(many.slice(5999));
    });

    it("survive a restart of the driver", async () => {
      const path = databases.location();
      const first = await opened(path);
      await first.store.write([tipOf(1, 100)], []);
      await first.store.keepSnapshot(snapshot, 7);
      await first.driver.close();
      const second = await opened(path);
      expect(await second.store.since(0, null, 10)).toEqual([tipOf(1, 100)]);
      expect(await second.store.lastSnapshot()).toEqual(snapshot);
    });
  });

  describe("the history", () => {
    const { percentiles } = snapshot;
    const of = (quarter: number, count = 1): TipQuarter => ({
      quarter,
      timeMs: quarter * 900_000,
      count,
      percentiles: count > 0 ? percentiles : null,
    });

    it("has the first entry of each quarter hour after a restart, also those without tips", async () => {
      const path = databases.location();
      const stores = await Promise.all([opened(path), opened(path)]);
      for (let quarter = 10; quarter < 15; quarter++) {
        await stores[quarter % 2]?.store.keepQuarter(of(quarter, quarter - 11));
        await stores[(quarter + 1) % 2]?.store.keepQuarter(of(quarter, 99));
      }
      await Promise.all(stores.map(({ driver }) => driver.close()));
      const { store } = await opened(path);
      expect(await store.quarters(11, 13)).toEqual([of(11, 0), of(12, 1), of(13, 2)]);
      expect(await store.quarters(15, 20)).toEqual([]);
    });

    it("replaces an entry of a clock that was ahead, when its quarter hour comes", async () => {
      const path = databases.location();
      const { store } = await opened(path);
      const other = await opened(path);
      for (const quarter of [10, 13, 14, 11, 12]) await store.keepQuarter(of(quarter, quarter));
      await store.keepQuarter(of(13, 1));
      await other.store.keepQuarter(of(13, 2)); // another node: the first one stays
      await other.store.keepQuarter(of(14, 3));
      await store.keepQuarter(of(14, 4));
      expect(await store.quarters(1, 20)).toEqual(
        [10, 11, 12].map((quarter) => of(quarter, quarter)).concat([of(13, 1), of(14, 3)]),
      );
    });

    it("has bounded rows, and a wrong clock deletes nothing of the others", async () => {
      const { store, driver } = await opened();
      const rows = async () =>
        (await driver.query("SELECT COUNT(*), MIN(quarter) FROM tip_quarters", []))[0];
      const fill = (from: number, to: number) => {
        const sql = "INSERT INTO tip_quarters (quarter, time_ms, tip_count) VALUES ($1, 1, 0)";
        const each = (_: unknown, i: number) => ({ sql, params: [BigInt(from + i)] });
        return driver.transaction(Array.from({ length: to - from + 1 }, each), "durable");
      };
      await fill(1, 672);
      await store.keepQuarter(of(50_000));
      expect(await rows()).toEqual([673n, 1n]);
      await fill(673, 1342);
      await store.keepQuarter(of(1343));
      expect(await rows()).toEqual([1344n, 1n]);
      await store.keepQuarter(of(1344));
      expect(await rows()).toEqual([672n, 673n]);
    });

    it("is refused when somebody wrote nonsense", async () => {
      const { store, driver } = await opened();
      const sql = `INSERT INTO tip_quarters (quarter, time_ms, tip_count, p25, p50)
        VALUES (5, 1, 1, 1, -1)`;
      await driver.transaction([{ sql, params: [] }], "durable");
      await expect(store.quarters(1, 9)).rejects.toMatchObject({ reason: "store_failed" });
    });
  });

  describe("the last snapshot", () => {
    it("is the last one, complete", async () => {
      const { store } = await opened();
      expect(await store.lastSnapshot()).toBeNull();
      await store.keepSnapshot(snapshot, 7);
      expect(await store.lastSnapshot()).toEqual(snapshot);
      await store.keepSnapshot({ ...snapshot, count: 5, isStale: true }, 8);
      expect(await store.lastSnapshot()).toEqual({ ...snapshot, count: 5, isStale: true });
    });

    it("of several nodes is the first of its quarter hour, until the next one", async () => {
      const path = databases.location();
      const stores = await Promise.all([opened(path), opened(path)]);
      const of = (count: number): TipSnapshot => ({ ...snapshot, count });
      const last = async () => (await stores[0].store.lastSnapshot())?.count;
      for (let quarter = 10; quarter < 20; quarter++) {
        await Promise.all(stores.map(({ store }, i) => store.keepSnapshot(of(i + 1), quarter)));
        const first = await last();
        for (const { store } of stores) {
          await store.keepSnapshot(of(8), quarter); // a node that was disconnected and writes late
          await store.keepSnapshot(of(9), quarter - 1);
        }
        expect(await last()).toBe(first);
      }
      const rows = await stores[0].driver.query("SELECT COUNT(*) FROM tip_snapshots", []);
      expect(rows).toEqual([[1n]]);
    });

    it("is a single one again after nodes with different clocks started together", async () => {
      const { store, driver } = await opened();
      const sql = "INSERT INTO tip_snapshots (id, snapshot) VALUES ($1, '{}')";
      const both = [10n, 11n].map((id) => ({ sql, params: [id] }));
      await driver.transaction(both, "durable");
      await store.keepSnapshot(snapshot, 12);
      expect(await driver.query("SELECT id FROM tip_snapshots", [])).toEqual([[12n]]);
    });

    it("of a clock far ahead is replaced by the next one", async () => {
      const { store } = await opened();
      await store.keepSnapshot({ ...snapshot, count: 1 }, 500);
      await store.keepSnapshot({ ...snapshot, count: 2 }, 499); // clocks differ slightly
      expect((await store.lastSnapshot())?.count).toBe(1);
      await store.keepSnapshot({ ...snapshot, count: 3 }, 10);
      expect((await store.lastSnapshot())?.count).toBe(3);
    });

    it.each([
      "",
      "{",
      "5",
      "{}",
      JSON.stringify({ isStale: true }),
      '{"timeMs":9e15,"percentiles":{"p25":1,"p50":1,"p75":1,"p95":1,"p99":1},"emaP50":1,"count":1,"windowStartMs":1,"isStale":false}',
      '{"timeMs":1,"percentiles":{"p25":1.5,"p50":1,"p75":1,"p95":1,"p99":1},"emaP50":1,"count":1,"windowStartMs":1,"isStale":false}',
      '{"timeMs":1,"percentiles":{"p25":1,"p50":1,"p75":1,"p95":1},"emaP50":1,"count":1,"windowStartMs":1,"isStale":false}',
    ])("is refused when somebody wrote %s", async (text) => {
      const { store, driver } = await opened();
      const insert = "INSERT INTO tip_snapshots (id, snapshot) VALUES (1, $1)";
      await driver.transaction([{ sql: insert, params: [text] }], "durable");
      await expect(store.lastSnapshot()).rejects.toMatchObject({ reason: "store_failed" });
    });
  });
});
