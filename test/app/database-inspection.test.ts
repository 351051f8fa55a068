// The inspection of a real PostgreSQL reports what the start of a service refuses there, and changes
// nothing.

import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inspectDatabase } from "../../src/app/database-inspection.ts";
import { nodeSettingsOf, writeNodeSettings } from "../../src/app/node-settings.ts";
import { systemClock } from "../../src/core/clock.ts";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { migrations } from "../../src/platform/store/migrations.ts";
import { Store } from "../../src/platform/store/store.ts";
import { silent } from "../platform/store/files.ts";
import { closing } from "../support/closing.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tip = "2gPG8fL2EV11ziLGpr1rDSrhhhGj2TgNNr9HVk8MyzbU";
const otherTip = "9ESoaSwsbS43Qg1D7BHPFyyt6yVhXkyDgGJWZchPtSxk";
const newest = migrations.length;

describe.skipIf(postgresPrograms === null)("the inspection of a database", () => {
  let server: PostgresServer;
  let made = 0;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.remove());

  async function database(): Promise<string> {
    const name = `inspected_${++made}`;
    await server.run(`CREATE DATABASE ${name}`);
    return name;
  }

  function configOf(url: string, more = "", directory = temporaryFolder()) {
    return parseConfig(
      `relay: { listen: "127.0.0.1:0", shredVersion: 9, authentication: off }
tips: { addresses: [${tip}], shredAddresses: [${otherTip}] }
http: { listen: "127.0.0.1:0" }
data: { postgres: "${url}", directory: "${directory}", node: fra }
${more}`,
      "/etc/shredway.yaml",
    );
  }

  async function start(url: string, node = "fra", directory = temporaryFolder()): Promise<Store> {
    const options = { directory, postgres: url, node, isService: true };
    return closing(await Store.open({ ...options, clock: systemClock, log: silent }));
  }

  /** The inspection's problems; the start must refuse with the same text. */
  async function refusals(url: string, directory = temporaryFolder()): Promise<string[]> {
    const found = await inspectDatabase(configOf(url, "", directory), systemClock);
    const texts = found?.problems.map(({ text }) => text) ?? [];
    if (texts[0] === undefined) throw new Error("expected a problem");
    await expect(start(url, "fra", directory)).rejects.toThrow(texts[0]);
    return texts;
  }

  it("accepts an empty database, and leaves it empty", async () => {
    const name = await database();
    const found = await inspectDatabase(configOf(server.url(name)), systemClock);
    expect(found).toMatchObject({ problems: [], version: 0, newest, isNameTaken: false });
    expect(await server.run("SELECT 1 FROM pg_tables WHERE schemaname = 'public'", name)).toEqual(
      [],
    );
  });

  it("names a role that may not create the tables of an empty database", async () => {
    const name = await database();
    await server.run("CREATE ROLE poor LOGIN");
    const [text] = await refusals(server.url(name, "poor"));
    expect(text).toContain("the database has no tables, and the role poor may not create tables");
  });

  it("names each table on which the role lacks a privilege", async () => {
    const name = await database();
    await (await start(server.url(name))).close();
    await server.run("CREATE ROLE reader LOGIN");
    await server.run(
      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO reader",
      name,
    );
    const url = server.url(name, "reader");
    expect(await inspectDatabase(configOf(url), systemClock)).toMatchObject({ problems: [] });
    await (await start(url)).close();
    await server.run("REVOKE INSERT, DELETE ON api_keys FROM reader", name);
    const [text] = await refusals(url);
    expect(text).toContain("the role reader lacks privileges on tables: api_keys (INSERT, DELETE)");
  });

  it("names a newer schema", async () => {
    const name = await database();
    await (await start(server.url(name))).close();
    await server.run(`UPDATE schema_version SET version = ${newest + 3}`, name);
    const [text] = await refusals(server.url(name));
    expect(text).toContain(`unsupported schema version ${newest + 3}; expected ${newest} or older`);
  });

  it("names a schema that waits for the owner's migration", async () => {
    const name = await database();
    await (await start(server.url(name))).close();
    await server.run("DROP TABLE bundles", name); // the newest migration
    await server.run(`UPDATE schema_version SET version = ${newest - 1}`, name);
    expect(await inspectDatabase(configOf(server.url(name)), systemClock)).toMatchObject({
      problems: [],
      version: newest - 1,
    });
    await server.run("CREATE ROLE worker LOGIN");
    await server.run(
      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO worker",
      name,
    );
    const [text] = await refusals(server.url(name, "worker"));
    expect(text).toContain(`must be migrated to version ${newest}, and the role worker may not`);
  });

  it("names an import that was omitted", async () => {
    const name = await database();
    const directory = temporaryFolder();
    const own = { directory, clock: systemClock, log: silent };
    await (await Store.open(own)).close();
    expect(readdirSync(directory)).toContain("shredway.db");
    const [text] = await refusals(server.url(name), directory);
    expect(text).toContain("is empty and");
  });

  it("knows the running nodes: their names, and how their settings differ", async () => {
    const name = await database();
    const url = server.url(name);
    const store = await start(url, "fra");
    const other = configOf(url, "tiers: { thresholdLamports: { tier-1: 5, tier-2: 9 } }");
    await store.nodes.put({ name: "nyc", settings: writeNodeSettings(nodeSettingsOf(other)) });
    const inspected = () => inspectDatabase(configOf(url), systemClock);
    expect(await inspected()).toMatchObject({ isNameTaken: true, differences: [] });
    const nyc = await start(url, "nyc");
    const [difference, ...rest] = (await inspected())?.differences ?? [];
    expect(rest).toEqual([]);
    expect(difference?.isGrave).toBe(true);
    expect(difference?.text).toContain(
      "tiers.thresholdLamports differs from node nyc: this node sells",
    );
    await store.close();
    await nyc.close();
    expect(await inspected()).toMatchObject({ isNameTaken: false, differences: [] });
  });

  it("says that the server asked for a password", async () => {
    const asking = await PostgresServer.start({
      access: ["local all shredway trust", "local all all scram-sha-256"],
    });
    closing({ close: () => asking.remove() });
    await asking.run("SET password_encryption = 'scram-sha-256'");
    await asking.run("CREATE ROLE asked LOGIN PASSWORD 'x'");
    const found = await inspectDatabase(configOf(asking.url("postgres", "asked")), systemClock);
    expect(found?.problems[0]?.text).toContain(
      "the server asked for a password, got none; set it in",
    );
  });

  it("reports a server that does not answer as a problem", async () => {
    const found = await inspectDatabase(configOf("postgres://u@127.0.0.1:9/d"), systemClock);
    expect(found?.problems[0]?.text).toMatch(
      /^data.postgres: could not use 127.0.0.1:9: .*ECONNREFUSED.* start it, or correct the URL/,
    );
  });
});
