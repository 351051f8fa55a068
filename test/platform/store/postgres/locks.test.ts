// Locks on PostgreSQL: one holder, which is notified of a loss before another one acquires the lock.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import type { HeldLock } from "../../../../src/platform/store/driver.ts";
import {
  PostgresDriver,
  type PostgresDriverOptions,
} from "../../../../src/platform/store/postgres/driver.ts";
import { closing } from "../../../support/closing.ts";
import { freePort } from "../../../support/network/free-ports.ts";
import { hasNamespaces, NetworkNamespace } from "../../../support/network/network-namespace.ts";
import { PostgresServer, postgresPrograms, superuser } from "../../../support/postgres/postgres.ts";
import { PostgresProxy } from "../../../support/postgres/postgres-proxy.ts";
import { childProgramWords } from "../../../support/processes/child-program.ts";
import { serverOfBlock } from "../block-server.ts";
import { Files, silent, until, untilTrue } from "../files.ts";

const files = new Files();
const child = fileURLToPath(new URL("../locking-child.ts", import.meta.url));
/** A third of the production values. */
const quick = { askMs: 200, lostMs: 1500, silenceMs: 2500 };
/** A session of that kind ends with its process, or never. */
const endless = { ...quick, silenceMs: 600_000 };

describe.skipIf(postgresPrograms === null)("locks on PostgreSQL", () => {
  const server = serverOfBlock(files);

  async function open(options: Partial<PostgresDriverOptions> = {}): Promise<PostgresDriver> {
    const common = { clock: systemClock, log: silent, url: server().url() };
    return files.closing(await PostgresDriver.open({ ...common, ...options }));
  }

  async function behindProxy(): Promise<{ proxy: PostgresProxy; driver: PostgresDriver }> {
    const proxy = files.closing(await PostgresProxy.open(server()));
    return { proxy, driver: await open({ url: proxy.url("postgres"), times: quick }) };
  }

  /** Time of the notification on the monotonic clock. */
  async function hold(driver: PostgresDriver, name: string) {
    const lost: bigint[] = [];
    const lock = await driver.tryLock(name, () => lost.push(systemClock.monotonicNs()));
    if (!lock) throw new Error(`expected the lock ${name}, got none`);
    return { lock, lost };
  }

  /** Retries until it acquires the lock; returns the time after that. */
  async function take(driver: PostgresDriver, name: string): Promise<bigint> {
    for (;;) {
      const beforeNs = systemClock.monotonicNs();
      if (await driver.tryLock(name, () => {})) return beforeNs;
      await systemClock.sleep(5);
    }
  }

  function lockConnections(database = "postgres"): Promise<unknown[][]> {
    const sql = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'shredway locks %'";
    return server().run(sql, database);
  }

  it("have one holder each in the database, within and between processes", async () => {
    const [first, second] = [await open(), await open()];
    const { lock } = await hold(first, "tiers");
    expect(await first.tryLock("tiers", () => {})).toBeNull();
    expect(await second.tryLock("tiers", () => {})).toBeNull();
    const { lock: other } = await hold(second, "node a");
    expect(await lockConnections()).toHaveLength(2);
    await lock.release();
    const repeated = await hold(second, "tiers");
    await lock.release(); // no effect any more
    expect(await first.tryLock("tiers", () => {})).toBeNull();
    await other.release();
    await second.close();
    expect(repeated.lost).toEqual([]);
    await hold(first, "tiers");
    const url = server().url("elsewhere");
    await server().ensureDatabase(url);
    await hold(await open({ url }), "tiers");
  });

  it("go to exactly one of concurrent calls", async () => {
    const drivers = await Promise.all(Array.from({ length: 5 }, () => open()));
    const all = [...drivers, ...drivers].map((driver) => driver.tryLock("tiers", () => {}));
    const held = (await Promise.all(all)).filter((lock): lock is HeldLock => lock !== null);
    expect(held).toHaveLength(1);
  });

  describe("held by a process", () => {
    async function run(name: string, times: PostgresDriverOptions["times"]) {
      const args = [
        ...(await childProgramWords(child)),
        server().url(),
        name,
        JSON.stringify(times),
      ];
      const running = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      const ended = once(running, "close");
      files.closing({
        close: async () => {
          running.kill("SIGKILL");
          await ended;
        },
      });
      const lines: string[] = [];
      createInterface({ input: running.stdout }).on("line", (line) => lines.push(line));
      await until(() => lines.length > 0);
      expect(lines).toEqual(["held"]);
      return { process: running, lines };
    }

    it("that is killed are released immediately; of a frozen one later, and it is notified", async () => {
      const starting = [run("a", endless), run("b", quick)] as const;
      const [killed, stopped, driver] = await Promise.all([...starting, open()]);
      expect(await driver.tryLock("a", () => {})).toBeNull();
      killed.process.kill("SIGKILL");
      await take(driver, "a");
      stopped.process.kill("SIGSTOP");
      expect(await driver.tryLock("b", () => {})).toBeNull();
      await take(driver, "b");
      stopped.process.kill("SIGCONT");
      await until(() => stopped.lines.length > 1);
      expect(stopped.lines).toEqual(["held", "lost"]);
    });
  });

  it("on a silent connection are lost here before another node acquires them", async () => {
    const { proxy, driver } = await behindProxy();
    const other = await open();
    const { lost } = await hold(driver, "tiers");
    await systemClock.sleep(Math.random() * quick.askMs);
    proxy.isSilent = true;
    await take(other, "tiers");
    expect(lost).toHaveLength(1); // before it was acquired
  });

  it("lost on a silent connection are reacquired immediately if the server still has it", async () => {
    const { proxy, driver } = await behindProxy();
    const first = await hold(driver, "tiers");
    const before = await lockConnections();
    proxy.isSilent = true;
    await until(() => first.lost.length > 0);
    expect(await lockConnections()).toEqual(before);
    proxy.isSilent = false;
    const second = await hold(driver, "tiers");
    expect(await lockConnections()).not.toEqual(before);
    await first.lock.release(); // no effect any more
    expect(await driver.tryLock("tiers", () => {})).toBeNull();
    proxy.cut();
    await until(() => second.lost.length > 0);
    expect(first.lost).toHaveLength(1);
  });

  it("are all lost with their connection, reported once, and not reacquired automatically", async () => {
    const [driver, other] = [await open(), await open()];
    const first = await hold(driver, "tiers");
    const second = await hold(driver, "node a");
    const given = await hold(driver, "given back");
    await given.lock.release();
    const failing = await driver.tryLock("failing", () => {
      throw new Error("a holder's own fault");
    });
    expect(failing).not.toBeNull();
    await server().run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'shredway locks %'",
    );
    await until(() => first.lost.length + second.lost.length === 2);
    await hold(other, "tiers");
    expect(await driver.tryLock("tiers", () => {})).toBeNull();
    await first.lock.release(); // no effect any more
    expect(await driver.tryLock("tiers", () => {})).toBeNull();
    await hold(driver, "node a");
    expect([first, second, given].map(({ lost }) => lost.length)).toEqual([1, 1, 0]);
  });

  it("on an unreachable server are rejected with a retryable error, and acquired later", async () => {
    const driver = await open();
    const { lost } = await hold(driver, "tiers");
    await server().kill();
    await until(() => lost.length === 1);
    await expect(driver.tryLock("tiers", () => {})).rejects.toMatchObject({
      reason: "store_failed",
      message: expect.stringContaining("the connection to the server was lost"),
    });
    await server().start();
    await hold(driver, "tiers");
    await driver.close();
    await expect(driver.tryLock("tiers", () => {})).rejects.toThrow(/the store is closed/);
  });

  it("on a frozen server are released, and free when it continues", async () => {
    const [driver, other] = [await open({ times: quick }), await open()];
    const { lost } = await hold(driver, "tiers");
    server().pause();
    await until(() => lost.length === 1);
    server().resume();
    await take(other, "tiers");
  });

  it("on a server that became read-only are released", async () => {
    const driver = await open({ times: quick });
    const { lost } = await hold(driver, "tiers");
    const set = async (words: string): Promise<void> => {
      await server().run(`ALTER SYSTEM ${words}`);
      await server().reload();
    };
    files.closing({ close: () => set("RESET default_transaction_read_only") });
    await set("SET default_transaction_read_only = on");
    await until(() => lost.length === 1);
    await expect(driver.tryLock("tiers", () => {})).rejects.toThrow(/the server is read-only/);
  });

  describe.skipIf(!hasNamespaces)("over a network", () => {
    it("that is cut silently are lost here before another node acquires them, within ten seconds", async () => {
      const namespace = closing(NetworkNamespace.open());
      const port = String(await freePort());
      const remote = await PostgresServer.start({
        command: namespace.command,
        settings: { listen_addresses: namespace.there, port },
        access: ["local all all trust", `host all all ${namespace.here}/32 trust`],
      });
      closing({ close: () => remote.remove() });
      const url = `postgres://${superuser}@${namespace.there}:${port}/postgres`;
      const realTimeouts = { connectMs: 1000 };
      const driver = await open({ url, times: realTimeouts });
      const other = await open({ url: remote.url() });
      const { lost } = await hold(driver, "tiers");
      namespace.connect(false);
      await take(other, "tiers");
      expect(lost).toHaveLength(1); // before it was acquired
      namespace.connect(true);
      await untilTrue(
        async () => (await driver.query("SELECT '1'", []).catch(() => [])).length > 0,
      );
      await other.close();
      await hold(driver, "tiers");
    });
  });
});
