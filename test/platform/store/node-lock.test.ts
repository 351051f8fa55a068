// The node lock: held by one service at a time, and acquired again after every loss.

import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import type { HeldLock } from "../../../src/platform/store/driver.ts";
import { NodeLock } from "../../../src/platform/store/node-lock.ts";
import { PostgresDriver } from "../../../src/platform/store/postgres/driver.ts";
import { Store, type StoreOptions } from "../../../src/platform/store/store.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { PostgresServer, postgresPrograms } from "../../support/postgres/postgres.ts";
import { onEachDatabase } from "./databases.ts";
import { Files, silent, untilTrue } from "./files.ts";

const files = new Files();
afterEach(() => files.clean());

/** Locks of several processes, as in a database. */
class Locks {
  isAway = false;
  holder: { name: string; onLost: () => void } | null = null;
  requests = 0;

  tryLock(name: string, onLost: () => void): Promise<HeldLock | null> {
    this.requests++;
    if (this.isAway) return Promise.reject(new Error("away"));
    if (this.holder) return Promise.resolve(null);
    const holder = { name, onLost };
    this.holder = holder;
    const release = (): Promise<void> => {
      if (this.holder === holder) this.holder = null;
      return Promise.resolve();
    };
    return Promise.resolve({ release });
  }

  /** The connection is lost; `next` acquires the lock. */
  lose(next: Locks["holder"] = null): void {
    const before = this.holder;
    this.holder = next;
    before?.onLost();
  }
}

const another = { name: "node a", onLost: () => {} };

describe("the name of a node", () => {
  function parts() {
    const clock = new ManualClock();
    const locks = new Locks();
    const lines: string[] = [];
    const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
    return { clock, locks, lines, options: { driver: locks, node: "a", clock, log } };
  }

  it("is awaited for a limited time, then rejected with instructions", async () => {
    const { clock, locks, options } = parts();
    locks.holder = another;
    const refused = expect(NodeLock.take({ ...options, waitMs: 1000 })).rejects.toMatchObject({
      reason: "store_failed",
      message: expect.stringMatching(
        /^data.node: another service .* uses the name "a"; expected a unique name/,
      ),
    });
    await clock.advance(2000);
    await refused;
    const taking = NodeLock.take({ ...options, waitMs: 1000 });
    await clock.advance(500);
    locks.holder = null; // the rest of this node's previous service has ended
    await clock.advance(500);
    const lock = await taking;
    expect(locks.holder).toMatchObject({ name: "node a" });
    await lock.close();
    expect(locks.holder).toBeNull();
    expect(clock.pending).toBe(0);
  });

  it("is acquired again after each loss, and another holder is logged once", async () => {
    const { clock, locks, lines, options } = parts();
    const lock = await NodeLock.take(options);
    locks.isAway = true;
    locks.lose();
    await clock.advance(60_000);
    expect(lines).toEqual([]);
    locks.isAway = false;
    await clock.advance(1000);
    expect(locks.holder).toMatchObject({ name: "node a" });
    locks.lose(another);
    await clock.advance(10_000);
    expect(lines).toEqual([]); // it may be a test of the lock
    await clock.advance(600_000);
    expect(lines.filter((line) => line.includes("another service now uses"))).toHaveLength(1);
    locks.holder = null;
    await clock.advance(1000);
    expect(locks.holder).toMatchObject({ name: "node a" });
    expect(lines.join("")).toContain("is free again");
    locks.lose(another);
    await clock.advance(5000);
    await lock.close();
    const { requests } = locks;
    await clock.advance(60_000);
    expect(locks.requests).toBe(requests);
    expect(locks.holder).toBe(another);
  });
});

onEachDatabase((databases) => {
  it("a store has the locks of its database, and a node name if the database is shared", async () => {
    const store = await databases.store();
    expect(store.node === "").toBe(databases.blobType === "blob"); // a file belongs to one service
    const lock = await store.locks.tryLock("tiers", () => {});
    expect(lock).not.toBeNull();
    expect(await store.locks.tryLock("tiers", () => {})).toBeNull();
    await lock?.release();
  });
});

describe.skipIf(postgresPrograms === null)("services on one PostgreSQL", () => {
  it("have a name each, and acquire it again after a lost connection", async () => {
    const server = await PostgresServer.start();
    closing({ close: () => server.remove() });
    const open = async (options: Partial<StoreOptions>) => {
      const common = { directory: "/nowhere", clock: systemClock, log: silent };
      return files.closing(await Store.open({ ...common, postgres: server.url(), ...options }));
    };
    const [a, b] = await Promise.all(["a", "b"].map((node) => open({ isService: true, node })));
    expect([a?.node, b?.node]).toEqual(["a", "b"]);
    const command = await open({}); // has no name to hold
    await command.keys.ensureAccount("a", 1n);
    const common = { clock: systemClock, log: silent, waitMs: 300 };
    const driver = files.closing(await PostgresDriver.open({ url: server.url(), ...common }));
    const take = (node: string) => NodeLock.take({ driver, node, ...common });
    await expect(take("a")).rejects.toThrow(/data.node: another service .* uses the name/);
    const held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
    expect(await server.run(held)).toEqual([["2"]]);
    await server.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'shredway%'",
    );
    // Acquired again without any write.
    await untilTrue(async () => (await server.run(held))[0]?.[0] === "2");
    await expect(take("a")).rejects.toThrow(/data.node: another service/);
    await a?.close();
    await (await take("a")).close();
  });

  it("continue with a restored dump", async () => {
    const server = await PostgresServer.start();
    closing({ close: () => server.remove() });
    const open = async (name: string) => {
      const common = { directory: "/nowhere", clock: systemClock, log: silent, isService: true };
      return files.closing(await Store.open({ ...common, postgres: server.url(name) }));
    };
    await server.ensureDatabase(server.url("before"));
    const store = await open("before");
    const account = await store.keys.ensureAccount("a", 1n);
    server.copyByDump("before", "after"); // while the service runs
    const restored = await open("after");
    expect(await restored.keys.accounts()).toEqual([account]);
    await restored.keys.ensureAccount("b", 2n);
    expect(await store.keys.accounts()).toHaveLength(1);
  });
});
