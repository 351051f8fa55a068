// Several servers in one URL: a replica takes over, and the service continues automatically.

import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import type { SqlDriver, SqlValue } from "../../../../src/platform/store/driver.ts";
import {
  PostgresDriver,
  type PostgresDriverOptions,
} from "../../../../src/platform/store/postgres/driver.ts";
import { ManualClock } from "../../../support/clocks/manual-clock.ts";
import { closing } from "../../../support/closing.ts";
import { PostgresServer, postgresPrograms, superuser } from "../../../support/postgres/postgres.ts";
import { Files, silent, until, untilTrue } from "../files.ts";

const files = new Files();
afterEach(() => files.clean());

const things = "CREATE TABLE things (id bigint PRIMARY KEY)";
const insert = "INSERT INTO things (id) VALUES ($1)";
/** Longer than any operation on a busy machine. */
const longTimeouts = {
  connectMs: 120_000, // shared by the two servers
  answerMs: 60_000,
  waitMs: 60_000,
  outcomeMs: 60_000,
  lostMs: 60_000,
  silenceMs: 90_000,
};
/** Longer than `answerMs` with its second of grace, and than `outcomeMs`. */
const givesUpMs = 70_000;

function add(driver: SqlDriver, id: bigint, news: readonly string[] = []) {
  return driver.transaction([{ sql: insert, params: [id] }], "durable", news);
}

async function ids(driver: SqlDriver): Promise<SqlValue[]> {
  const rows = await driver.query("SELECT id FROM things ORDER BY id", []);
  return rows.map(([id = null]) => id);
}

/** In the order of the URL. */
function urlOf(servers: readonly PostgresServer[]): string {
  const hosts = servers.map(({ folder }) => encodeURIComponent(folder)).join(",");
  return `postgres:///postgres?host=${hosts}&user=${superuser}`;
}

async function open(
  url: string,
  options: Pick<Partial<PostgresDriverOptions>, "clock" | "times"> = {},
) {
  const { clock = systemClock, times } = options;
  return files.closing(
    await PostgresDriver.open({ url, clock, log: silent, times: { ...longTimeouts, ...times } }),
  );
}

async function startPair(): Promise<[PostgresServer, PostgresServer]> {
  const primary = await PostgresServer.start();
  closing({ close: () => primary.remove() });
  await primary.run(things);
  const replica = await PostgresServer.start({ primary });
  closing({ close: () => replica.remove() });
  await primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'");
  await primary.reload();
  // Commits wait for replicas after the checkpointer has read the setting, which it does before a
  // checkpoint. The signal may arrive just after that, so it is sent twice.
  await primary.run("CHECKPOINT");
  await primary.run("CHECKPOINT");
  const sync = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
  await untilTrue(async () => (await primary.run(sync)).length === 1);
  return [primary, replica];
}

/** Waits until a session that is not `known` waits for the replica with its commit, and adds it. */
async function anotherWaits(primary: PostgresServer, known: Set<unknown>): Promise<void> {
  const waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
  await untilTrue(async () => {
    const pids = (await primary.run(waiting)).map(([pid]) => pid);
    const another = pids.find((pid) => !known.has(pid));
    if (another !== undefined) known.add(another);
    return another !== undefined;
  });
}

/** Adds rows from `first` on until it is stopped; `kept`: the acknowledged ones. */
function keepAdding(driver: SqlDriver, first: bigint) {
  const persisted: bigint[] = [];
  let next = first;
  const ending = new AbortController();
  const lane = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      const id = next++;
      await add(driver, id, [`registrations ${id}`]);
      persisted.push(id);
    }
  };
  const lanes = Promise.all(Array.from({ length: 5 }, lane));
  const end = async (): Promise<void> => {
    ending.abort();
    await lanes;
  };
  return { persisted, end };
}

const sorted = (list: readonly bigint[]) => list.toSorted((a, b) => Number(a - b));

describe.skipIf(postgresPrograms === null)("several servers", () => {
  it("fail over: no acknowledged write is lost, and the service recovers", async () => {
    const [primary, replica] = await startPair();
    // The replica is first in the URL: it is skipped while it is read-only.
    const url = urlOf([replica, primary]);
    const [driver, listener] = [await open(url), await open(url)];
    const clock = ManualClock.running();
    const guard = await open(url, { clock, times: { waitMs: 1000 } });
    const notifications: (readonly string[] | null)[] = [];
    listener.onForeignChange((news) => notifications.push(news));
    let lost = 0;
    expect(await listener.tryLock("tiers", () => lost++)).not.toBeNull();
    const adding = keepAdding(driver, 1n);
    await until(() => adding.persisted.length > 50 && notifications.length > 5);

    replica.pause(); // without the replica, it is not acknowledged
    const known = new Set<unknown>();
    await anotherWaits(primary, known); // the driver's commit
    const refusal = expect(add(guard, 0n)).rejects.toMatchObject({ details: { code: "UNKNOWN" } });
    await anotherWaits(primary, known); // the guard's commit
    clock.move(givesUpMs);
    await anotherWaits(primary, known); // the guard's query for the result of that commit
    clock.move(givesUpMs);
    await refusal;
    replica.resume();
    expect(notifications).not.toContain(null);

    await primary.kill();
    await replica.promote();
    const before = adding.persisted.length;
    await until(() => adding.persisted.length > before + 50);
    await until(() => notifications.includes(null) && notifications.at(-1) !== null && lost === 1);
    expect(await guard.tryLock("tiers", () => {})).not.toBeNull();
    expect(await listener.tryLock("tiers", () => {})).toBeNull();
    await adding.end();
    const there = (await ids(listener)).filter((id) => id !== 0n);
    expect(there).toEqual(sorted(adding.persisted));

    // The former primary returns unchanged, and no client uses it as the primary.
    await primary.start();
    await replica.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'shredway%'",
    );
    await add(driver, 1_000_000n);
    expect(await replica.run("SELECT 1 FROM things WHERE id = 1000000")).toHaveLength(1);
    await replica.stop();
    // The first call may find the guard's old connection closed before it selects another server.
    await add(guard, 1_000_001n).catch(() => {});
    await expect(add(guard, 1_000_001n)).rejects.toMatchObject({
      reason: "store_failed",
      message: expect.stringContaining("another server took over from it"),
    });
    await replica.start();
    await add(guard, 1_000_001n);
    expect((await ids(driver)).slice(-2)).toEqual([1_000_000n, 1_000_001n]);
  });

  it("that switch roles repeatedly are followed by writers, readers and listeners", async () => {
    const first = await PostgresServer.start();
    closing({ close: () => first.remove() });
    await first.run(things);
    const second = await PostgresServer.start({ primary: first });
    closing({ close: () => second.remove() });
    await second.promote();
    const driver = await open(urlOf([first, second]), { times: { askMs: 200 } });
    await add(driver, 1n);
    await first.run("ALTER SYSTEM SET default_transaction_read_only = on");
    await first.reload();
    await add(driver, 2n);
    expect(await second.run("SELECT id FROM things")).toEqual([["2"]]);
    await second.kill();
    await expect(open(urlOf([first, second]))).rejects.toThrow(
      /the server is read-only.*a replica, or set to read-only; .*25006/,
    );
  });
});
