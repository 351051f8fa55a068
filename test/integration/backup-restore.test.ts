// Recovery of a lost machine according to docs/backup.md: into a fresh folder or database. A service
// starts on it, and customers' keys are unchanged, even after a kill.

import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "@photostructure/sqlite";
import { expect, it } from "vitest";
import { closing } from "../support/closing.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";
import { Shredway, shredway } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tip = "2gPG8fL2EV11ziLGpr1rDSrhhhGj2TgNNr9HVk8MyzbU";

/** A configuration with its own folder; `data` is the line of the section data. */
function configAt(folder: string, data = "directory: data"): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "shredway.yaml");
  const lines = [
    'relay: { listen: "127.0.0.1:0", authentication: off, shredVersion: 1 }',
    'http: { listen: "127.0.0.1:0", webSocketListen: [] }',
    `tips: { addresses: [${tip}] }`,
    `data: { ${data}, node: restored }`,
  ];
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

async function started(config: string): Promise<{ service: Shredway; url: string }> {
  const service = Shredway.run("start", "--config", config, "--stats", "0");
  closing({ close: () => service.kill() });
  const [, address] = await service.printed(/^ready .* http=(\S+)/m);
  return { service, url: `http://${address}/` };
}

/** HTTP status of a call with this key. */
async function statusOf(url: string, key: string): Promise<number> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getTipAccounts", params: [] });
  const answer = await fetch(url, { method: "POST", body, headers: { "api-key": key } });
  await answer.arrayBuffer();
  return answer.status;
}

interface Keys {
  readonly good: string;
  readonly revoked: string;
}

async function makeKeys(config: string): Promise<Keys> {
  const make = async () => {
    const created = await shredway(
      "keys",
      "create",
      "--account",
      "a",
      "--config",
      config,
      "--json",
    );
    expect(created.code).toBe(0);
    const { key, id }: { key: string; id: string } = JSON.parse(created.stdout);
    return { key, id };
  };
  const good = await make();
  const revoked = await make();
  const { code } = await shredway("keys", "revoke", revoked.id, "--config", config);
  expect(code).toBe(0);
  return { good: good.key, revoked: revoked.key };
}

/** The service of `config` knows the state of both keys, also after a kill. */
async function expectKeys(config: string, { good, revoked }: Keys): Promise<void> {
  for (let run = 0; run < 2; run++) {
    const { service, url } = await started(config);
    expect(await statusOf(url, good)).toBe(200);
    expect(await statusOf(url, revoked)).toBe(401);
    await service.kill();
  }
}

it("is restored from a copy and an export made while it ran", {
  timeout: 300_000,
}, async () => {
  const folder = temporaryFolder();
  const config = configAt(join(folder, "lost"));
  const { service } = await started(config);
  const keys = await makeKeys(config);
  const source = new DatabaseSync(join(folder, "lost/data/shredway.db"), { readOnly: true });
  await backup(source, join(folder, "copy.db")); // the effect of sqlite3's .backup
  source.close();
  const exported = join(folder, "all.export");
  expect((await shredway("export", "--config", config, "--output", exported)).code).toBe(0);
  await service.kill();

  const fromCopy = configAt(join(folder, "from-copy"));
  mkdirSync(join(folder, "from-copy/data"), { mode: 0o700 });
  copyFileSync(join(folder, "copy.db"), join(folder, "from-copy/data/shredway.db"));
  const fromExport = configAt(join(folder, "from-export"));
  const imported = await shredway("import", "--config", fromExport, "--input", exported);
  expect(imported.stderr).not.toContain("expected");
  expect(imported.code).toBe(0);
  await Promise.all([expectKeys(fromCopy, keys), expectKeys(fromExport, keys)]);
});

it.skipIf(postgresPrograms === null)(
  "is restored from a dump of PostgreSQL",
  { timeout: 300_000 },
  async () => {
    const folder = temporaryFolder();
    const server = await PostgresServer.start();
    closing({ close: () => server.remove() });
    const lost = server.url("lost");
    await server.ensureDatabase(lost);
    const config = configAt(join(folder, "lost"), `postgres: "${lost}"`);
    const { service } = await started(config);
    const keys = await makeKeys(config);
    server.copyByDump("lost", "restored");
    await service.kill();
    await expectKeys(configAt(join(folder, "new"), `postgres: "${server.url("restored")}"`), keys);
  },
);
