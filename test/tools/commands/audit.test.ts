// `shredway audit` on the database of a running sandbox, with its chain.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { databaseFileName } from "../../../src/platform/store/data-folder.ts";
import { migrate, migrations, versionOf } from "../../../src/platform/store/migrations.ts";
import { SqliteDriver } from "../../../src/platform/store/sqlite/driver.ts";
import { ClientHarness } from "../../client/client-harness.ts";
import { keepTip } from "../../platform/store/tiers.ts";
import { shredwayHere } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const patient = { timeout: 60_000 };

let sandbox: ReturnType<typeof open>;
beforeAll(() => {
  sandbox = open();
});
afterAll(async () => (await sandbox).harness.close());
const opened = (): typeof sandbox => sandbox;

async function open() {
  const harness = await ClientHarness.open();
  const client = harness.client();
  const addresses = await client.getShredTipAccounts();
  const [address = ""] = addresses;
  const rpc = `http://${harness.sandbox.endpoint.address}`;
  const config = join(harness.folder, "audit.yaml");
  const text = (
    settings = "",
  ): string => `relay: { shredVersion: 1, authentication: off, sources: [] }
http: { listen: "127.0.0.1:0" }
data: { directory: ${JSON.stringify(harness.folder)} }
tips: { addresses: [ ${JSON.stringify(address)} ], shredAddresses: ${JSON.stringify(addresses)} }
${settings}`;
  writeFileSync(config, text());
  return { harness, client, address, rpc, config, text };
}

it("finds no difference in a running service, and reports what the configuration contradicts", async () => {
  const { harness, client, address, rpc, config, text } = await opened();
  const wires = [200_000_000, 350_000_000].map((lamports) => harness.tip(lamports, address));
  const slot = harness.sandbox.chain.currentSlot;
  for (const wire of wires) harness.sandbox.chain.send(wire);
  await client.registerTips(wires.map((transaction) => ({ transaction, slot })));
  const states = async () => (await client.getRegistrations()).map(({ state }) => state);
  await expect.poll(states, patient).toEqual(["counted", "counted"]);
  const audit = (...args: readonly string[]) =>
    shredwayHere("audit", "--account", "sandbox", "--config", config, ...args);
  // The checkpoint of the tiers follows the registration.
  await expect
    .poll(async () => (await audit("--offline", "--json")).stdout, patient)
    .toContain('"tier":"tier-2"');
  const good = await audit("--rpc", rpc);
  expect([good.code, good.stderr, good.stdout]).toEqual([0, "", expect.any(String)]);
  expect(good.stdout).toMatch(/registrations: 2, 2 of them counted; 2 compared with the chain/);
  expect(good.stdout).toMatch(/result: no difference\n$/);
  const json = JSON.parse((await audit("--rpc", rpc, "--json", "--from", "2026-01-01")).stdout);
  expect(json).toMatchObject({ account: "sandbox", verdict: "no difference", differences: [] });
  // Other thresholds give another history.
  writeFileSync(config, text("tiers: { thresholdLamports: { tier-1: 100, tier-2: 900000000 } }"));
  const other = await audit("--rpc", rpc, "--json");
  expect(other.code).toBe(1);
  const { differences } = JSON.parse(other.stdout);
  expect(differences).toContainEqual(
    expect.objectContaining({
      kind: "tier_state",
      field: "tier",
      stored: "tier-2",
      expected: "tier-1",
    }),
  );
  const again = await audit("--rpc", rpc);
  writeFileSync(config, text());
  expect(again.stdout).toContain("DIFFERENT tier_state: tier is tier-2, expected tier-1");
});

it.each([
  [["--account", "sandbox"], "--config"],
  [["--config", "x.yaml"], "--account"],
  [["--account", "nobody", "--offline"], 'unknown account "nobody"; expected one of'],
  [["--account", "sandbox"], "no node: solana.rpc is not configured"],
  [["--account", "sandbox", "--offline", "--rpc", "http://127.0.0.1:1"], "--offline"],
  [
    ["--account", "sandbox", "--offline", "--from", "yesterday"],
    'invalid value "yesterday"; expected a UTC time',
  ],
])("refuses %j", async (args, message) => {
  const needsConfig = !message.startsWith("--config") && !message.startsWith("--account");
  const config = needsConfig ? ["--config", (await opened()).config] : [];
  const { code, stderr, stdout } = await shredwayHere("audit", ...args, ...config);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(message);
});

it("fails clearly if the node does not answer", async () => {
  const { config } = await opened();
  const node = ["--rpc", "http://127.0.0.1:9"];
  const { code, stderr } = await shredwayHere(
    "audit",
    "--account",
    "sandbox",
    "--config",
    config,
    ...node,
  );
  expect(code).toBe(1);
  expect(stderr).toContain("getFirstAvailableBlock at 127.0.0.1:9");
});

/** A service that does not run: its configuration, and how its database is opened. */
function stopped() {
  const directory = temporaryFolder();
  const config = join(directory, "shredway.yaml");
  const relay = 'relay: { listen: "127.0.0.1:0", authentication: off, shredVersion: 1 }';
  writeFileSync(config, `data: { directory: ${JSON.stringify(directory)} }\n${relay}\n`);
  const log = createLogger({ level: "silent" });
  const openDriver = () =>
    SqliteDriver.open({ path: join(directory, databaseFileName), clock: systemClock, log });
  return { config, openDriver };
}

it("names registrations ahead of the clock", async () => {
  const { config, openDriver } = stopped();
  const driver = await openDriver();
  await migrate(driver, "blob");
  const account = "INSERT INTO accounts (id, name, created_ns) VALUES ('a', 'alpha', 0)";
  await driver.transaction([{ sql: account, params: [] }], "durable");
  const nowMs = Number(systemClock.nowNs() / 1_000_000n);
  for (const [order, registeredMs] of [
    [1n, nowMs - 60_000],
    [2n, nowMs + 3_600_000],
  ] as const) {
    const times = { registeredMs, countedMs: registeredMs };
    await keepTip(driver, { order, accountId: "a", lamports: 5n, ...times });
  }
  await driver.close();
  const audit = (...more: readonly string[]) =>
    shredwayHere("audit", "--account", "alpha", "--config", config, "--offline", ...more);
  const { stdout, code } = await audit();
  expect(code).toBe(0);
  expect(stdout).toContain("registrations: 2, 2 of them counted; not compared with the chain");
  expect(stdout).toContain("1 of them is ahead of this machine's clock");
  const { ahead, registrations } = JSON.parse((await audit("--json")).stdout);
  const registered = new Date(nowMs + 3_600_000).toISOString();
  expect([registrations, ahead]).toEqual([2, [{ signature: expect.any(String), registered }]]);
  expect(stdout).toContain(`ahead of the clock ${ahead[0].signature}: registered at ${registered}`);
});

it("refuses a database of an older version, and does not migrate it", async () => {
  const { config, openDriver } = stopped();
  const before = await openDriver();
  const older = migrations.length - 1;
  await migrate(before, "blob", migrations.slice(0, older));
  await before.close();
  const { code, stderr } = await shredwayHere(
    "audit",
    "--account",
    "alpha",
    "--config",
    config,
    "--offline",
  );
  expect(stderr).toContain(
    `schema version ${older}; expected ${migrations.length}: use the version`,
  );
  expect(code).toBe(1);
  const after = await openDriver();
  expect(await versionOf(after)).toBe(older);
  await after.close();
});
