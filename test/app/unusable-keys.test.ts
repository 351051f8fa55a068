// A stored key that this version cannot use: it is refused and named, and every other change of keys applies.

import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { openGateway } from "../../src/app/compose-gateway.ts";
import { inspectDatabaseFile } from "../../src/app/database-inspection.ts";
import { checksOf } from "../../src/app/readiness.ts";
import { systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { checkDatabaseFile } from "../../src/platform/doctor/database-checks.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { databaseFileName } from "../../src/platform/store/data-folder.ts";
import { Files } from "../platform/store/files.ts";
import { closing } from "../support/closing.ts";
import { createdKey } from "../support/gateway/created-key.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { runningFacts } from "./running-facts.ts";

const files = new Files();
afterEach(() => files.clean());

it("a key with the scope of a newer version affects only itself", async () => {
  const directory = temporaryFolder();
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => lines.push(line) } });
  const config = completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0", webSocketListen: [] },
    data: { directory },
    tips: { addresses: [pubkeyOf(new Uint8Array(32).fill(5))] },
  });
  const gateway = closing(await openGateway({ config, log, clock: systemClock }));
  const texts = [
    await createdKey(gateway),
    await createdKey(gateway),
    await createdKey(gateway),
  ] as const;
  await gateway.start();
  const answer = (key: string) =>
    new RpcClient(`http://${gateway.addresses[0]}/relay?api-key=${key}`)
      .call("getTipAccounts")
      .then(
        () => "served",
        () => "refused",
      );
  const answers = async () => [
    await answer(texts[0]),
    await answer(texts[1]),
    await answer(texts[2]),
  ];
  expect(await answers()).toEqual(["served", "served", "served"]);
  const ids = (await gateway.keys.keys()).map(({ id }) => id);
  const edit = {
    sql: "UPDATE api_keys SET scopes = 'newer' WHERE id = $1",
    params: [ids[0] ?? ""],
  };
  const driver = await files.driver({ path: join(directory, databaseFileName) });
  await driver.transaction([edit], "durable");
  await gateway.keys.revokeKey(ids[1] ?? "", systemClock.nowNs());
  for (let i = 0; i < 2; i++) await gateway.refreshKeys();

  expect(await answers()).toEqual(["refused", "refused", "served"]);
  const named = lines.filter((line) => line.includes(`API key \\"${ids[0]}\\"`));
  expect(named).toHaveLength(1);
  const { api_keys: check } = Object.fromEntries(
    checksOf({ ...runningFacts, gateway: gateway.readiness() }).map((each) => [each.name, each]),
  );
  expect(check).toMatchObject({ ok: false, critical: false });
  expect(check?.detail).toContain(`API key "${ids[0]}" of account`);
  expect(check?.detail).toContain('got "newer"');

  const fact = await inspectDatabaseFile(config);
  const findings = fact ? checkDatabaseFile(fact) : [];
  expect(findings.map(({ check: name, level }) => `${name} ${level}`)).toEqual([
    "database ok",
    "keys warn",
  ]);
  expect(findings[1]?.finding).toContain(`API key "${ids[0]}" of account`);

  // After a revocation, the row needs no attention.
  await gateway.keys.revokeKey(ids[0] ?? "", systemClock.nowNs());
  await gateway.refreshKeys();
  expect(gateway.readiness().unusableKeys).toEqual([]);
});
