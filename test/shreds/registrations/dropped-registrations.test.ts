// The deletion of dropped registrations, on each database.

import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { SqlDroppedRegistrationStore } from "../../../src/platform/store/tables/dropped-registration-store.ts";
import { SqlRegistrationStore } from "../../../src/platform/store/tables/registration-store.ts";
import { SqlTierStore } from "../../../src/platform/store/tables/tier-store.ts";
import { DroppedRegistrations } from "../../../src/shreds/registrations/dropped-registrations.ts";
import type {
  Registration,
  SettledTip,
  Settlement,
} from "../../../src/shreds/registrations/registration-types.ts";
import { onEachDatabase } from "../../platform/store/databases.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { registrationOf } from "./confirmation-harness.ts";
import { codec, tip } from "./harness.ts";

const day = 24 * 3_600_000;
const epoch = 1n;

onEachDatabase((databases) => {
  class Run {
    readonly clock = new ManualClock();
    readonly warnings: unknown[] = [];
    readonly driver: SqlDriver;
    readonly store: SqlRegistrationStore;
    isLeader = true;
    isDown = false;
    #amount = 1n;

    constructor(driver: SqlDriver) {
      this.driver = driver;
      this.store = new SqlRegistrationStore(driver, codec);
    }

    static async open(): Promise<Run> {
      const driver = await databases.migrated();
      await new SqlTierStore(driver).takeOver();
      return new Run(driver);
    }

    get nowMs(): number {
      return Number(this.clock.nowNs() / 1_000_000n);
    }

    /** A process whose first deletion has ended. */
    async started(keptMax?: number): Promise<DroppedRegistrations> {
      const store = new SqlDroppedRegistrationStore(this.driver);
      const registrations = new DroppedRegistrations({
        clock: this.clock,
        log: { warn: (...words: unknown[]) => void this.warnings.push(words) },
        store: {
          nextAccount: async (...given) => {
            if (this.isDown) throw new Error("the disk is gone");
            return store.nextAccount(...given);
          },
          deleteSome: (...given) => store.deleteSome(...given),
        },
        nowMs: () => this.nowMs,
        isLeader: () => this.isLeader,
        ...(keptMax !== undefined && { keptMax }),
      });
      registrations.start();
      closing(registrations);
      return registrations;
    }

    /** Number of registrations in both tables. */
    async count(): Promise<number> {
      const sql = `SELECT (SELECT COUNT(*) FROM registrations)
        + (SELECT COUNT(*) FROM claimed_registrations)`;
      return Number((await this.driver.query(sql, []))[0]?.[0]);
    }

    async add(changes: Partial<Registration> = {}): Promise<Registration> {
      const wire = tip(5n, this.#amount++);
      const added = registrationOf(wire, { registeredMs: this.nowMs, ...changes });
      if (!(await this.store.add(added))) throw new Error("expected a new signature");
      return added;
    }

    async settle(which: SettledTip, order: bigint | null): Promise<void> {
      const isCounted = order !== null;
      const settlement: Settlement = {
        state: isCounted ? "counted" : "dropped",
        settledMs: this.nowMs,
        countedLamports: isCounted ? 5n : null,
        countedOrder: order,
        reason: isCounted ? null : "expired",
      };
      const isSettled = await this.store.settle(which, settlement, epoch);
      if (isSettled !== true) throw new Error("expected a pending registration");
    }

    async dropped(accountId = "a_1"): Promise<Registration> {
      const added = await this.add({ accountId });
      await this.settle(added, null);
      return added;
    }

    async signaturesOf(accountId: string): Promise<string[]> {
      return (await this.store.ofAccount(accountId, null, 1000)).map(({ signature }) => signature);
    }
  }

  describe("dropped registrations", () => {
    /** Waits until the deletions leave `count` registrations. */
    const left = async (run: Run, count: number) => {
      await expect.poll(() => run.count(), { timeout: 20_000 }).toBe(count);
    };

    it("are deleted after 30 days; counted and pending ones stay for ever", async () => {
      const run = await Run.open();
      const [old] = [await run.dropped(), await run.dropped("a_2")];
      const counted = await run.add();
      await run.settle(counted, 1n);
      const pending = await run.add();
      await run.clock.advance(30 * day - 1);
      const young = await run.dropped();
      const registrations = await run.started();
      await registrations.close();
      expect(await run.count()).toBe(5);
      await run.clock.advance(1);
      await run.started();
      await left(run, 3);
      expect(new Set(await run.signaturesOf("a_1"))).toEqual(
        new Set([counted.signature, pending.signature, young.signature]),
      );
      expect(await run.signaturesOf("a_2")).toEqual([]);
      // The signature is free again.
      expect(await run.store.add(old)).toBe(true);
    });

    it("of an account are bounded in number, and those of others are not affected", async () => {
      const run = await Run.open();
      const added: string[] = [];
      for (let i = 0; i < 12; i++) {
        added.push((await run.dropped()).signature);
        await run.clock.advance(1);
      }
      const other = await run.dropped("a_0");
      const counted = await run.add();
      await run.settle(counted, 1n);
      await run.started(5);
      await left(run, 7);
      const newest = [counted.signature, ...added.slice(-5).toReversed()];
      expect(await run.signaturesOf("a_1")).toEqual(newest);
      expect(await run.signaturesOf("a_0")).toEqual([other.signature]);
      await run.dropped("a_2");
      await run.dropped();
      await run.clock.advance(5 * 60_000);
      await left(run, 8);
    });

    it("are deleted in many slices", async () => {
      const run = await Run.open();
      const signature = databases.blobType === "blob" ? "randomblob(64)" : "sha512(i::text::bytea)";
      const sql = `INSERT INTO registrations (signature, account_id, lamports, slot, registered_ms,
          lifetime, state, settled_ms, reason)
        WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < 1700)
        SELECT ${signature}, 'a_1', 1, 1, i, $1, 'dropped', i, 'expired' FROM numbers`;
      await run.driver.transaction([{ sql, params: [new Uint8Array(32)] }], "durable");
      await run.started();
      await left(run, 0);
      expect(await run.signaturesOf("a_1")).toEqual([]);
    });

    it("that another account claimed are deleted, unless they had counted before", async () => {
      const run = await Run.open();
      const [lost, replaced] = [await run.dropped(), await run.add()];
      await run.settle(replaced, 1n);
      const claims = [lost, replaced].map((one) => ({ ...one, accountId: "a_2" }));
      for (const claim of claims) {
        const proven = { ...claim, proof: "memo", registeredMs: run.nowMs } as const;
        expect(await run.store.claim(proven, 0)).toBe("claimed");
      }
      const [claim, countedClaim] = await run.store.pending(null, 9);
      if (!claim || !countedClaim) throw new Error("expected two claims");
      const isFirstLost = claim.signature === lost.signature;
      await run.settle(isFirstLost ? claim : countedClaim, null);
      await run.settle(isFirstLost ? countedClaim : claim, 2n);
      expect(await run.count()).toBe(4);
      await run.clock.advance(30 * day);
      await run.started();
      await left(run, 2);
      expect(await run.signaturesOf("a_1")).toEqual([replaced.signature]);
      expect(await run.signaturesOf("a_2")).toEqual([replaced.signature]);
    });

    it("can be registered and claimed again, also before their old claim is deleted", async () => {
      const run = await Run.open();
      const added = await run.dropped();
      const claim = { ...added, accountId: "a_2", proof: "memo" } as const;
      expect(await run.store.claim({ ...claim, registeredMs: run.nowMs }, 0)).toBe("claimed");
      await run.settle(claim, null);
      await run.clock.advance(1);
      // A newer one of "a_2" takes the place.
      await run.dropped("a_2");
      await run.started(1);
      await left(run, 2);
      const again = { ...added, accountId: "a_3", registeredMs: run.nowMs };
      expect(await run.store.add(again)).toBe(true);
      const proven = { ...again, accountId: "a_4", proof: "memo" } as const;
      expect(await run.store.claim(proven, 0)).toBe("claimed");
      expect(await run.signaturesOf("a_3")).toEqual([added.signature]);
      expect(await run.signaturesOf("a_1")).toEqual([]);
    });

    it("that are claimed during their deletion stay", async () => {
      const location = databases.location();
      const run = new Run(await databases.migrated(location));
      await new SqlTierStore(run.driver).takeOver();
      const added = await run.dropped();
      const other = new SqlDroppedRegistrationStore(await databases.driver(location));
      // Shares the commit of calls in the same turn, and takes as long.
      const slow = `UPDATE tip_snapshots SET snapshot = '' WHERE id = (WITH RECURSIVE numbers (number) AS (
        SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 1500000)
        SELECT MAX(number) FROM numbers)`;
      const claim = { ...added, accountId: "a_2", proof: "memo" } as const;
      const claimed = run.store.claim(claim, 0);
      const shared = run.driver.transaction([{ sql: slow, params: [] }], "durable", []);
      await systemClock.sleep(100);
      await other.deleteSome("own", "a_1", run.nowMs);
      await shared;
      expect(["claimed", "added"]).toContain(await claimed);
      expect((await run.store.pending(null, 9)).map(({ accountId }) => accountId)).toEqual(["a_2"]);
    });

    it("are deleted by the leader only, and later if the database fails", async () => {
      const run = await Run.open();
      await run.dropped();
      await run.clock.advance(31 * day);
      run.isLeader = false;
      const registrations = await run.started();
      await registrations.close();
      expect(await run.count()).toBe(1);
      [run.isLeader, run.isDown] = [true, true];
      await run.started();
      await expect.poll(() => run.warnings.length).toBe(1);
      run.isDown = false;
      await run.clock.advance(5 * 60_000);
      await left(run, 0);
    });
  });
});
