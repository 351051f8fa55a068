// PostgreSQL behind a bad network: slow, too slow, and silently disconnected.

import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import type { SqlDriver, SqlValue } from "../../../../src/platform/store/driver.ts";
import {
  PostgresDriver,
  type PostgresDriverOptions,
} from "../../../../src/platform/store/postgres/driver.ts";
import { closing } from "../../../support/closing.ts";
import { freePort } from "../../../support/network/free-ports.ts";
import { hasNamespaces, NetworkNamespace } from "../../../support/network/network-namespace.ts";
import { PostgresServer, postgresPrograms, superuser } from "../../../support/postgres/postgres.ts";
import { PostgresProxy } from "../../../support/postgres/postgres-proxy.ts";
import { serverOfBlock } from "../block-server.ts";
import { Files, silent, until } from "../files.ts";

const files = new Files();
const things = "CREATE TABLE IF NOT EXISTS things (id bigint PRIMARY KEY)";
const insert = "INSERT INTO things (id) VALUES ($1)";
/** Longer than a commit on a busy machine. */
const shortTimeouts = { answerMs: 1500, connectMs: 2000, waitMs: 1000, outcomeMs: 2000 };

function add(driver: SqlDriver, id: bigint, news?: readonly string[]) {
  return driver.transaction([{ sql: insert, params: [id] }], "durable", news);
}

async function ids(driver: SqlDriver): Promise<SqlValue[]> {
  const rows = await driver.query("SELECT id FROM things ORDER BY id", []);
  return rows.map(([id = null]) => id);
}

async function open(
  url: string,
  times: NonNullable<PostgresDriverOptions["times"]>,
): Promise<PostgresDriver> {
  const common = { clock: systemClock, log: silent };
  const driver = files.closing(await PostgresDriver.open({ ...common, url, times }));
  await driver.transaction([{ sql: things, params: [] }], "durable");
  return driver;
}

/** The reported result of each: stored, not stored, or unknown. */
function wordsOf(ends: readonly PromiseSettledResult<unknown>[]): string[] {
  return ends.map((end) => {
    if (end.status === "fulfilled") return "kept";
    expect(end.reason).toMatchObject({ reason: "store_failed" });
    return String(end.reason).includes("may be kept or not") ? "unknown" : "not kept";
  });
}

describe.skipIf(postgresPrograms === null)("a distant database", () => {
  const server = serverOfBlock(files);

  async function proxied(): Promise<PostgresProxy> {
    return files.closing(await PostgresProxy.open(server()));
  }

  it("answers late and works: commits are shared, notifications arrive, locks stay", async () => {
    const proxy = await proxied();
    const url = proxy.url("postgres");
    const [driver, other] = [await open(url, {}), await open(url, {})];
    let lost = 0;
    await other.tryLock("tiers", () => lost++);
    const notifications: unknown[] = [];
    other.onForeignChange((news) => notifications.push(news));
    proxy.delayMs = 100;
    const waiting = Array.from({ length: 500 }, (_, i) => add(driver, BigInt(i), [`thing ${i}`]));
    expect(new Set(wordsOf(await Promise.allSettled(waiting)))).toEqual(new Set(["kept"]));
    await until(() => notifications.flat().length === 500);
    expect(await ids(other)).toHaveLength(500);
    expect(lost).toBe(0);
  });

  it("that is too slow rejects with a clear error, stores no rejected write, and recovers", async () => {
    const proxy = await proxied();
    const driver = await open(proxy.url("postgres"), shortTimeouts);
    proxy.delayMs = 3000;
    const wait = [2000n, 2001n].map((id) => add(driver, id));
    const [reading, ...writing] = await Promise.allSettled([ids(driver), ...wait]);
    expect(reading).toMatchObject({
      reason: { message: expect.stringContaining("the connection to the server was lost") },
    });
    proxy.delayMs = 0;
    await add(driver, 2002n);
    const there = await ids(driver);
    for (const [i, word] of wordsOf(writing).entries()) {
      if (word !== "unknown") expect(there.includes(2000n + BigInt(i))).toBe(word === "kept");
    }
  });
});

describe.skipIf(postgresPrograms === null || !hasNamespaces)("a network partition", () => {
  afterEach(() => files.clean());

  it("rejects new writes, loses no stored one, and recovers", async () => {
    const namespace = closing(NetworkNamespace.open());
    const port = String(await freePort());
    const server = await PostgresServer.start({
      command: namespace.command,
      settings: { listen_addresses: namespace.there, port },
      access: ["local all all trust", `host all all ${namespace.here}/32 trust`],
    });
    closing({ close: () => server.remove() });
    const url = `postgres://${superuser}@${namespace.there}:${port}/postgres`;
    const cut = await open(url, shortTimeouts);
    const beside = await open(server.url(), {});
    const notifications: (readonly string[] | null)[] = [];
    cut.onForeignChange((news) => notifications.push(news));
    await add(cut, 1n);
    const under = Array.from({ length: 20 }, (_, i) => add(cut, 100n + BigInt(i)));
    namespace.connect(false);
    const ends = [...under, add(cut, 2n), ids(cut)];
    const words = wordsOf(await Promise.allSettled(ends));
    expect(words.slice(-2)).toEqual(["not kept", "not kept"]);
    // The other side continues: the locks of the lost connection are released soon.
    await add(beside, 3n, ["missed"]);
    namespace.connect(true);
    // A connection that survived the partition has missed nothing.
    await until(() => notifications.includes(null) || notifications.flat().includes("missed"));
    await add(cut, 4n);
    await add(beside, 5n, ["heard"]);
    await until(() => notifications.flat().includes("heard"));
    const there = await ids(cut);
    expect(there).toEqual(await ids(beside));
    for (const [i, word] of words.slice(0, 20).entries()) {
      if (word !== "unknown") expect(there.includes(100n + BigInt(i))).toBe(word === "kept");
    }
    expect(there.filter((id) => Number(id) < 100)).toEqual([1n, 3n, 4n, 5n]);
  });
});
