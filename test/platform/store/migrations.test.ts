import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { migrate, migrations } from "../../../src/platform/store/migrations.ts";
import { childProgramWords } from "../../support/processes/child-program.ts";
import { onEachDatabase } from "./databases.ts";
import { untilTrue } from "./files.ts";
import { firstStep } from "./migrating-child.ts";

const versionOf = async (driver: SqlDriver) =>
  (await driver.query("SELECT version FROM schema_version", []))[0]?.[0];

onEachDatabase((databases) => {
  const { blobType, tables } = databases;
  describe("migrations", () => {
    it("lead an empty database to the newest version, and change nothing afterwards", async () => {
      const driver = await databases.driver();
      await migrate(driver, blobType);
      expect(await versionOf(driver)).toBe(BigInt(migrations.length));
      expect((await driver.query(tables, [])).flat()).toEqual([
        "accounts",
        "api_keys",
        "bundles",
        "claimed_registrations",
        "destinations",
        "landed_tips",
        "managed_nonces",
        "nodes",
        "public_key_events",
        "public_keys",
        "registrations",
        "schema_version",
        "signing_keys",
        "submissions",
        "tier_clock",
        "tier_events",
        "tier_states",
        "tip_quarters",
        "tip_snapshots",
      ]);
      await migrate(driver, blobType);
      expect(await versionOf(driver)).toBe(BigInt(migrations.length));
    });

    it("run once if several processes start at the same time", async () => {
      const location = databases.location();
      const drivers = await Promise.all([1, 2, 3, 4].map(() => databases.driver(location)));
      const counting = "INSERT INTO things (id) SELECT COUNT(*) FROM things";
      const steps = [firstStep, [counting], [counting], [counting]];
      await Promise.all(drivers.map((driver) => migrate(driver, blobType, steps)));
      const [driver] = drivers;
      expect(await driver?.query("SELECT COUNT(*) FROM things", [])).toEqual([[3n]]);
      expect(driver && (await versionOf(driver))).toBe(4n);
    });

    it("leave the previous version when a step fails", async () => {
      const driver = await databases.driver();
      const wrong = ["CREATE TABLE more (id bigint)", "CREATE TABLE things (id bigint)"];
      await expect(migrate(driver, blobType, [firstStep, wrong])).rejects.toMatchObject({
        reason: "store_failed",
      });
      expect(await versionOf(driver)).toBe(1n);
      expect((await driver.query(tables, [])).flat()).toEqual(["schema_version", "things"]);
    });

    it("leave the previous version when the process is killed in the middle", async () => {
      const location = databases.location();
      const program = fileURLToPath(new URL("./migrating-child.ts", import.meta.url));
      await databases.make(location);
      const words = [...(await childProgramWords(program)), location];
      const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
      const ended = once(child, "close");
      await once(child.stdout, "data");
      await untilTrue(() => databases.isStepUnderWay(location));
      child.kill("SIGKILL");
      await ended;
      const driver = await databases.driver(location);
      expect(await versionOf(driver)).toBe(1n);
      expect((await driver.query(tables, [])).flat()).toEqual(["schema_version", "things"]);
      expect(await driver.query("SELECT id FROM things", [])).toEqual([]);
      await migrate(driver, blobType, [firstStep, ["CREATE TABLE more (id bigint)"]]);
      expect(await versionOf(driver)).toBe(2n);
    });

    it("reject a database of a newer version without changing it", async () => {
      const location = databases.location();
      const store = await databases.store(location);
      await store.keys.ensureAccount("a", 1n);
      await store.close();
      const driver = await databases.driver(location);
      const newer = BigInt(migrations.length + 1);
      await driver.transaction(
        [{ sql: "UPDATE schema_version SET version = $1", params: [newer] }],
        "durable",
      );
      await expect(databases.store(location)).rejects.toMatchObject({
        reason: "store_newer",
        message: expect.stringContaining(`unsupported schema version ${newer}`),
      });
      expect(await versionOf(driver)).toBe(newer);
      expect(await driver.query("SELECT name FROM accounts", [])).toEqual([["a"]]);
    });
  });
});
