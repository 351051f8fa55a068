// Notifications between processes on one PostgreSQL: their content and order, and the effect of gaps.

import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../../src/core/clock.ts";
import {
  PostgresDriver,
  type PostgresDriverOptions,
} from "../../../../src/platform/store/postgres/driver.ts";
import { newsOf, payloadsOf } from "../../../../src/platform/store/postgres/payloads.ts";
import { postgresPrograms } from "../../../support/postgres/postgres.ts";
import { PostgresProxy } from "../../../support/postgres/postgres-proxy.ts";
import { serverOfBlock } from "../block-server.ts";
import { Files, silent, until } from "../files.ts";

const files = new Files();
const insert = "INSERT INTO things (id) VALUES ($1)";
const own = "0123456789abcdef";
const other = "fedcba9876543210";

type NotificationRecord = readonly string[] | null;

function listenTo(driver: PostgresDriver): NotificationRecord[] {
  const notifications: NotificationRecord[] = [];
  driver.onForeignChange((news) => notifications.push(news));
  return notifications;
}

/** The system's clock, except that the test ends the pauses of 100 ms between full changes. */
function withoutPauses(pauses: (() => void)[]): Clock {
  const after: Clock["after"] = (delayMs, action) => {
    if (delayMs !== 100) return systemClock.after(delayMs, action);
    pauses.push(action);
    return { cancel: () => undefined };
  };
  return Object.assign(Object.create(systemClock), { after });
}

function add(driver: PostgresDriver, id: bigint, news?: readonly string[]) {
  return driver.transaction([{ sql: insert, params: [id] }], "durable", news);
}

function addWithNews(driver: PostgresDriver, id: bigint, news?: readonly string[]) {
  return driver.transaction([{ sql: insert, params: [id] }], "survives-kill", news);
}

describe("payloads", () => {
  const durable = (news?: readonly string[]) => ({ isDurable: true, news });
  const read = (payloads: readonly string[]) => payloads.map((payload) => newsOf(payload, own));

  it("contain the changes in order, each below the server's limit", () => {
    const long = Array.from({ length: 200 }, (_, i) => `registrations ${i} ${'é\n"\\'.repeat(60)}`);
    const payloads = payloadsOf(other, [durable(["keys"]), durable(long), durable(["nonces"])]);
    expect(payloads.length).toBeGreaterThan(5);
    for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8000);
    expect(read(payloads).flat()).toEqual(["keys", ...long, "nonces"]);
  });

  it("merge equal changes, skip empty ones, and report unnamed ones as a full change", () => {
    const both = [durable(["keys"]), { isDurable: false, news: ["nonces", "keys"] }];
    expect(read(payloadsOf(other, both))).toEqual([["keys", "nonces"]]);
    expect(payloadsOf(other, [durable([]), { isDurable: false }])).toEqual([]);
    expect(read(payloadsOf(other, [durable(["keys"]), durable()]))).toEqual([["keys"], null]);
  });

  it("report a full change if there are too many changes or one is too long", () => {
    const many = Array.from({ length: 64 * 16 }, (_, i) => `a ${String(i).padEnd(490, "x")}`);
    expect(read(payloadsOf(other, [durable(many.slice(0, 64 * 15))]))).toHaveLength(64);
    expect(read(payloadsOf(other, [durable(many)]))).toEqual([null]);
    expect(read(payloadsOf(other, [durable(["a", "x".repeat(8000)])]))).toEqual([null]);
  });

  it("of other nodes are parsed as far as possible, own ones are recognised", () => {
    expect(newsOf(`${own}["keys"]`, own)).toBe("own");
    expect(newsOf(own, own)).toBe("own");
    for (const payload of [other, `${other}{`, `${other}[1]`, `${other}{"a":1}`, "", "by hand"]) {
      expect(newsOf(payload, own)).toBeNull();
    }
  });
});

describe.skipIf(postgresPrograms === null)("change notifications on PostgreSQL", () => {
  const server = serverOfBlock(files);
  let created = 0;

  function open(options: Partial<PostgresDriverOptions> & { url: string }) {
    return PostgresDriver.open({ clock: systemClock, log: silent, ...options }).then((driver) =>
      files.closing(driver),
    );
  }

  async function two(
    listenerClock: Clock = systemClock,
  ): Promise<[PostgresDriver, PostgresDriver, string]> {
    const name = `news_${++created}`;
    const url = server().url(name);
    await server().ensureDatabase(url);
    const driver = await open({ url });
    const table = "CREATE TABLE things (id bigint PRIMARY KEY)";
    await driver.transaction([{ sql: table, params: [] }], "durable", []);
    return [driver, await open({ url, clock: listenerClock }), name];
  }

  it("arrive per commit at other nodes and never at the sender", async () => {
    const [teller, listener] = await two();
    const notifications = listenTo(listener);
    const echoes = listenTo(teller);
    const expected: string[] = [];
    for (let id = 1n; id <= 50n; id++) {
      expected.push(`registrations ${id}`);
      const write = id % 2n === 0n ? add : addWithNews;
      await write(teller, id, [`registrations ${id}`]);
    }
    // A pause of 100 ms between two of them would take five seconds.
    await until(() => notifications.length === 50);
    expect(notifications).toEqual(expected.map((text) => [text]));
    await add(listener, 51n, ["keys"]);
    await until(() => echoes.length === 1);
    expect(echoes).toEqual([["keys"]]);
    expect(notifications).toHaveLength(50);
  });

  it("of transactions in one commit arrive together, and never of failed ones", async () => {
    const [teller, listener] = await two();
    const notifications = listenTo(listener);
    await add(teller, 1n, []);
    const absent = { sql: "DELETE FROM things WHERE id = 99", params: [], mustChange: true };
    const ends = await Promise.allSettled([
      add(teller, 2n, ["keys"]),
      add(teller, 1n, ["never, for the id is taken"]),
      teller.transaction([absent], "durable", ["never, for there is no such id"]),
      addWithNews(teller, 3n, ["tiers a_1 tier-1 3"]),
      addWithNews(teller, 4n),
      add(teller, 5n, ["keys"]),
    ]);
    expect(ends.map(({ status }) => status).join()).toMatch(
      /^fulfilled,rejected,(fulfilled,?){4}$/,
    );
    await until(() => notifications.length > 0);
    await add(teller, 6n, ["last"]);
    await until(() => notifications.length > 1);
    expect(notifications).toEqual([["keys", "tiers a_1 tier-1 3"], ["last"]]);
  });

  it("are a full change for an unnamed durable commit, and absent for others", async () => {
    const pauses: (() => void)[] = [];
    const [teller, listener] = await two(withoutPauses(pauses));
    const notifications = listenTo(listener);
    await addWithNews(teller, 1n);
    await add(teller, 2n, []);
    await add(teller, 3n);
    await until(() => notifications.length === 1);
    await add(teller, 4n);
    await add(teller, 5n, ["keys"]); // does not wait for the pause of unspecified changes
    await until(() => notifications.length === 2);
    for (const end of pauses.splice(0)) end();
    await until(() => notifications.length === 3);
    expect(notifications).toEqual([null, ["keys"], null]);
  });

  it("are a full change above the listener's limit", async () => {
    const [teller, listener] = await two();
    const notifications = listenTo(listener);
    const many = Array.from({ length: 1500 }, (_, i) => `registrations ${String(i).padEnd(480)}`);
    await Promise.all(many.map((text, i) => add(teller, BigInt(i), [text])));
    await add(teller, 5000n, ["last"]);
    await until(() => notifications.flat().includes("last"));
    expect(notifications).toContain(null);
  });

  it("are a full change after a lost connection", async () => {
    const [teller, , name] = await two();
    const proxy = files.closing(await PostgresProxy.open(server()));
    const listener = await open({ url: proxy.url(name) });
    const notifications = listenTo(listener);
    await add(teller, 1n, ["first"]);
    await until(() => notifications.length === 1);
    proxy.isClosed = true;
    proxy.cut();
    await add(teller, 2n, ["missed"]);
    expect(notifications).toEqual([["first"]]);
    proxy.isClosed = false;
    await until(() => notifications.length === 2);
    await add(teller, 3n, ["third"]);
    await until(() => notifications.length === 3);
    expect(notifications).toEqual([["first"], null, ["third"]]);
  });

  it("of another version, or sent manually, are a full change", async () => {
    const [, listener, name] = await two();
    const notifications = listenTo(listener);
    await server().run("NOTIFY shredway, 'fedcba9876543210'", name);
    await until(() => notifications.length === 1);
    expect(notifications).toEqual([null]);
  });
});
