// Commands with a PostgreSQL database of the configuration.

import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { closing } from "../../support/closing.ts";
import { PostgresServer, postgresPrograms } from "../../support/postgres/postgres.ts";
import { shredway } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

function configAt(folder: string, postgres: string): string {
  const file = join(folder, "shredway.yaml");
  const lines = [
    'solana: { rpc: "http://127.0.0.1:9" }',
    `data: { directory: data, postgres: "${postgres}" }`,
    'relay: { listen: "127.0.0.1:0", authentication: off, shredVersion: 1 }',
  ];
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

describe("data.postgres", () => {
  it("is never printed with its password", async () => {
    const url = "postgres://user:hidden@db.example.com:5433/hidden?password=hidden";
    const config = configAt(temporaryFolder(), url);
    const { code, stdout } = await shredway("start", "--config", config, "--print-config");
    expect(code).toBe(0);
    expect(stdout).toContain("postgres: postgres://db.example.com:5433/masked");
    expect(stdout).not.toContain("hidden");
    for (const wrong of ["mysql://hidden", "hidden"]) {
      const refused = await shredway(
        "keys",
        "list",
        "--config",
        configAt(temporaryFolder(), wrong),
      );
      expect(refused.code).toBe(1);
      expect(refused.stderr).toMatch(/data.postgres: expected a URL of postgres, got another text/);
      expect(refused.stderr).not.toContain("hidden");
    }
  });

  it.skipIf(postgresPrograms === null)(
    "stores keys and destinations without a database file",
    async () => {
      const folder = temporaryFolder();
      const server = await PostgresServer.start();
      closing({ close: () => server.remove() });
      const config = configAt(folder, server.url());
      const run = (...args: readonly string[]) => shredway(...args, "--config", config, "--json");
      const nothing = await run("keys", "list");
      expect(nothing.stderr).toContain("expected a database with the tables of a service");
      expect(nothing.code).toBe(1);
      const created = await run("keys", "create", "--account", "trading");
      expect(created.code).toBe(0);
      expect(created.stderr).toContain("expected fsync and full_page_writes on"); // the test's has none
      const { id }: { id: string } = JSON.parse(created.stdout);
      expect((await run("keys", "revoke", id)).code).toBe(0);
      const listed = await run("keys", "list");
      expect(JSON.parse(listed.stdout)).toMatchObject({ keys: [{ id, account: "trading" }] });
      expect(JSON.parse((await run("destinations", "list")).stdout)).toEqual({ destinations: [] });
      expect(readdirSync(folder)).toEqual(["shredway.yaml"]);
      await server.kill();
      const away = await run("keys", "list");
      expect(away.code).toBe(1);
      expect(away.stderr).toContain("the connection to the server was lost");
    },
  );
});
