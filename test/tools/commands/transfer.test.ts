// `shredway migrate`, `export` and `import` as users and programs call them.

import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { migrations } from "../../../src/platform/store/migrations.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { closing } from "../../support/closing.ts";
import { PostgresServer, postgresPrograms } from "../../support/postgres/postgres.ts";
import { shredway, shredwayHere } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const newest = migrations.length;

function configAt(folder: string, postgres?: string): string {
  const file = join(folder, "shredway.yaml");
  const place = postgres === undefined ? "" : `, postgres: "${postgres}"`;
  const lines = [
    'solana: { rpc: "http://127.0.0.1:9" }',
    `data: { directory: data, node: north${place} }`,
    'relay: { listen: "127.0.0.1:0", authentication: off, shredVersion: 1 }',
  ];
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

describe("shredway migrate", () => {
  it("checks with --check and migrates to the newest version", async () => {
    const folder = temporaryFolder();
    const config = configAt(folder);
    const check = () => shredwayHere("migrate", "--config", config, "--check", "--json");
    const before = await check();
    expect(before.stderr).toBe("");
    expect(JSON.parse(before.stdout)).toEqual({ from: 0, to: 0, newest });
    expect(before.code).toBe(1);
    expect(existsSync(join(folder, "data"))).toBe(false);
    const done = await shredwayHere("migrate", "--config", config);
    expect(done.stdout).toContain(
      `data/shredway.db: schema set up at version ${newest}, the newest`,
    );
    expect(done.code).toBe(0);
    const after = await check();
    expect(JSON.parse(after.stdout)).toEqual({ from: newest, to: newest, newest });
    expect(after.code).toBe(0);
    const repeated = await shredwayHere("migrate", "--config", config);
    expect(repeated.stdout).toContain(`schema version ${newest}, the newest`);
  });

  it.skipIf(postgresPrograms === null)(
    "lets the owner migrate for a role with minimal rights",
    async () => {
      const folder = temporaryFolder();
      const server = await PostgresServer.start();
      closing({ close: () => server.remove() });
      const owner = configAt(join(folder, "owner"), server.url());
      await server.run("CREATE ROLE least LOGIN");
      const service = configAt(join(folder, "service"), server.url("postgres", "least"));
      const refused = await shredwayHere("migrate", "--config", service);
      expect(refused.stderr).toContain("the role lacks a privilege");
      expect(refused.code).toBe(1);
      const done = await shredwayHere("migrate", "--config", owner, "--json");
      expect(JSON.parse(done.stdout)).toEqual({ from: 0, to: newest, newest });
      await server.run(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO least",
      );
      const check = await shredwayHere("migrate", "--config", service, "--check");
      expect(check.stdout).toContain(`schema version ${newest}, the newest`);
      expect(check.code).toBe(0);
      // The same role may fill an empty database.
      const created = await shredwayHere(
        "keys",
        "create",
        "--account",
        "a",
        "--data",
        join(folder, "data"),
      );
      expect(created.code).toBe(0);
      const path = join(folder, "a.export");
      await shredway("export", "--data", join(folder, "data"), "--output", path);
      const imported = await shredwayHere("import", "--config", service, "--input", path);
      expect(imported.stderr).toContain("expected fsync and full_page_writes on"); // the test's has none
      expect(imported.code).toBe(0);
      const listed = await shredwayHere("keys", "list", "--config", service, "--json");
      expect(JSON.parse(listed.stdout)).toMatchObject({ keys: [{ account: "a" }] });
    },
  );
});

describe("shredway export and import", () => {
  it("transfer a database through a file of its owner while a service uses it", async () => {
    const folder = temporaryFolder();
    const config = configAt(folder);
    const log = createLogger({ level: "silent" });
    const directory = join(folder, "data");
    const service = await Store.open({ directory, clock: systemClock, log, isService: true });
    const created = await shredwayHere(
      "keys",
      "create",
      "--account",
      "trading",
      "--config",
      config,
      "--json",
    );
    const { key, id }: { key: string; id: string } = JSON.parse(created.stdout);
    const path = join(folder, "all.export");
    const exported = await shredwayHere("export", "--config", config, "--output", path, "--json");
    expect(exported.stderr).toBe("");
    expect(exported.code).toBe(0);
    expect(JSON.parse(exported.stdout)).toMatchObject({
      schemaVersion: newest,
      rows: { accounts: 1, api_keys: 1, submissions: 0 },
      bytes: statSync(path).size,
      output: path,
    });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).toSorted()).toEqual(["all.export", "data", "shredway.yaml"]);
    const text = readFileSync(path, "utf8");
    expect(text).not.toContain(key);
    expect(JSON.parse(text.split("\n")[0] ?? "")).toMatchObject({
      format: "shredway-export",
      formatVersion: 1,
      schemaVersion: newest,
      node: "north",
    });
    const piped = await shredway("export", "--config", config);
    expect(piped.stdout.split("\n").slice(1, -2)).toEqual(text.split("\n").slice(1, -2));
    expect(piped.stderr).toMatch(/^exported 2 rows of \d+ tables/);

    const other = join(folder, "other");
    const busy = await shredwayHere("import", "--config", config, "--input", path);
    expect(busy.stderr).toContain("another service uses the data folder");
    expect(busy.code).toBe(1);
    await service.close();
    const full = await shredwayHere("import", "--config", config, "--input", path);
    expect(full.stderr).toContain(
      "expected an empty database, got one with rows in accounts, api_keys",
    );
    expect(full.code).toBe(1);
    const imported = await shredwayHere("import", "--data", other, "--input", path);
    expect(imported.stdout).toMatch(
      /other\/shredway.db: imported 2 rows of \d+ tables, exported by north/,
    );
    expect(imported.code).toBe(0);
    expect(statSync(join(other, "shredway.db")).mode & 0o777).toBe(0o600);
    const listed = await shredwayHere("keys", "list", "--data", other, "--json");
    expect(JSON.parse(listed.stdout)).toMatchObject({ keys: [{ id, account: "trading" }] });
  });

  it.skipIf(postgresPrograms === null)("refuse a PostgreSQL database in use", async () => {
    const folder = temporaryFolder();
    const server = await PostgresServer.start();
    closing({ close: () => server.remove() });
    const config = configAt(folder, server.url());
    const log = createLogger({ level: "silent" });
    const postgres = server.url();
    const place = { directory: folder, postgres };
    const service = await Store.open({ ...place, clock: systemClock, log });
    const path = join(folder, "all.export");
    expect((await shredwayHere("export", "--config", config, "--output", path)).code).toBe(0);
    const busy = await shredwayHere("import", "--config", config, "--input", path);
    expect(busy.stderr).toContain("another service or command has the database open");
    expect(busy.code).toBe(1);
    await service.close();
    const imported = await shredwayHere("import", "--config", config, "--input", path, "--json");
    expect(JSON.parse(imported.stdout)).toMatchObject({
      newest,
      node: "north",
      rows: { accounts: 0 },
    });
  });

  it("replace no device or pipe, and the target of a link", async () => {
    const folder = temporaryFolder();
    const data = join(folder, "data");
    await shredwayHere("migrate", "--data", data);
    const pipe = join(folder, "pipe");
    spawnSync("mkfifo", [pipe]);
    const refused = await shredwayHere("export", "--data", data, "--output", pipe);
    expect(refused.stderr).toContain(`cannot write ${pipe}: expected a regular file`);
    expect(refused.code).toBe(1);
    expect(statSync(pipe).isFIFO()).toBe(true);
    const [link, target] = [join(folder, "link"), join(folder, "target")];
    writeFileSync(target, "an earlier export");
    symlinkSync(target, link);
    expect((await shredwayHere("export", "--data", data, "--output", link)).code).toBe(0);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, "utf8")).toContain('{"format":"shredway-export"');
  });

  it("leave nothing behind on failure and report the reason", async () => {
    const folder = temporaryFolder();
    const data = join(folder, "data");
    const nothing = await shredwayHere("export", "--data", data, "--output", join(folder, "a"));
    expect(nothing.stderr).toContain("shredway.db: expected a database, got no file");
    expect(nothing.code).toBe(1);
    await shredwayHere("migrate", "--data", data);
    const nowhere = await shredwayHere(
      "export",
      "--data",
      data,
      "--output",
      join(folder, "no", "a"),
    );
    expect(nowhere.stderr).toMatch(/cannot write .*no\/a: ENOENT/);
    expect(nowhere.code).toBe(1);
    expect(readdirSync(folder)).toEqual(["data"]);
    const none = await shredwayHere("export", "--data", data, "--output", folder);
    expect(none.stderr).toContain("expected a regular file or a new name, got a device, pipe");
    expect(none.code).toBe(1);
    expect(readdirSync(folder)).toEqual(["data"]);
    const missing = await shredwayHere("import", "--data", data, "--input", join(folder, "none"));
    expect(missing.stderr).toContain("ENOENT");
    expect(missing.code).toBe(1);
    const option = await shredwayHere("import", "--data", data);
    expect(option.stderr).toContain("missing option --input");
    expect(option.code).toBe(2);
    const both = await shredwayHere("migrate", "--data", data, "--config", "a.yaml");
    expect(both.stderr).toContain("at most one of --config, --data");
    expect(both.code).toBe(2);
    writeFileSync(join(folder, "cut"), '{"format":"shredway-export"');
    const cut = await shredwayHere(
      "import",
      "--data",
      join(folder, "new"),
      "--input",
      join(folder, "cut"),
    );
    expect(cut.stderr).toContain("cut, line 1: the file ends within a line");
    expect(cut.code).toBe(1);
    expect(existsSync(join(folder, "new"))).toBe(false); // checked before anything is made
  });
});
