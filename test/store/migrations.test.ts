import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import type { SqlDriver } from "../../src/store/driver.ts";
import { migrate, migrations } from "../../src/store/migrations.ts";
import { Files, until } from "./files.ts";
import { firstStep } from "./migrating-child.ts";

const files = new Files();
afterEach(() => files.clean());

const tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
const versionOf = async (driver: SqlDriver) =>
  (await driver.query("SELECT version FROM schema_version", []))[0]?.[0];

describe("migrations", () => {
  it("lead an empty database to the newest version, and change nothing afterwards", async () => {
    const driver = await files.driver();
    await migrate(driver, "blob");
    expect(await versionOf(driver)).toBe(BigInt(migrations.length));
    expect((await driver.query(tables, [])).flat()).toEqual([
      "accounts",
      "api_keys",
      "destinations",
      "landed_tips",
      "managed_nonces",
      "registrations",
      "schema_version",
      "submissions",
      "tier_clock",
      "tier_events",
      "tier_states",
      "tip_snapshots",
    ]);
    await migrate(driver, "blob");
    expect(await versionOf(driver)).toBe(BigInt(migrations.length));
  });

  it("are taken once when several processes start at the same moment", async () => {
    const path = join(files.folder(), "a.db");
    const drivers = await Promise.all([1, 2, 3, 4].map(() => files.driver({ path })));
    const counting = "INSERT INTO things (id) SELECT COUNT(*) FROM things";
    const steps = [firstStep, [counting], [counting], [counting]];
    await Promise.all(drivers.map((driver) => migrate(driver, "blob", steps)));
    const [driver] = drivers;
    expect(await driver?.query("SELECT COUNT(*) FROM things", [])).toEqual([[3n]]);
    expect(driver && (await versionOf(driver))).toBe(4n);
  });

  it("leave the version before when a step fails", async () => {
    const driver = await files.driver();
    const wrong = ["CREATE TABLE more (id bigint)", "CREATE TABLE things (id bigint)"];
    await expect(migrate(driver, "blob", [firstStep, wrong])).rejects.toMatchObject({
      reason: "store_failed",
    });
    expect(await versionOf(driver)).toBe(1n);
    expect((await driver.query(tables, [])).flat()).toEqual(["schema_version", "things"]);
  });

  it("leave the version before when the process is killed in the middle", async () => {
    const path = join(files.folder(), "a.db");
    const program = fileURLToPath(new URL("./migrating-child.ts", import.meta.url));
    const child = spawn(process.execPath, ["--import", "tsx", program, path], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(child, "close");
    await once(child.stdout, "data");
    // In the middle: pages of the unfinished step are in the log already.
    await until(() => (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 4_000_000);
    child.kill("SIGKILL");
    await ended;
    const driver = await files.driver({ path });
    expect(await versionOf(driver)).toBe(1n);
    expect((await driver.query(tables, [])).flat()).toEqual(["schema_version", "things"]);
    expect(await driver.query("SELECT id FROM things", [])).toEqual([]);
    await migrate(driver, "blob", [firstStep, ["CREATE TABLE more (id bigint)"]]);
    expect(await versionOf(driver)).toBe(2n);
  });

  it("refuse a database that a newer version wrote, and leave it as it is", async () => {
    const directory = files.folder();
    const store = await files.store(directory);
    await store.keys.ensureAccount("a", 1n);
    await store.close();
    const driver = await files.driver({ path: join(directory, "shredway.db") });
    const newer = BigInt(migrations.length + 1);
    await driver.transaction(
      [{ sql: "UPDATE schema_version SET version = $1", params: [newer] }],
      "durable",
    );
    await expect(files.store(directory)).rejects.toMatchObject({
      reason: "store_newer",
      message: expect.stringContaining(`got version ${newer}`),
    });
    expect(await versionOf(driver)).toBe(newer);
    expect(await driver.query("SELECT name FROM accounts", [])).toEqual([["a"]]);
  });
});
