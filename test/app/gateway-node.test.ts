// A gateway on PostgreSQL is a node with a name: it resumes its own submissions.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openGateway } from "../../src/app/compose-gateway.ts";
import type { GatewayService } from "../../src/app/gateway-service.ts";
import { systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { keyRandomBytes } from "../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../src/gateway/accounts/create-key.ts";
import { migrate } from "../../src/platform/store/migrations.ts";
import { PostgresDriver } from "../../src/platform/store/postgres/driver.ts";
import { SqlSubmissionStore } from "../../src/platform/store/tables/submission-store.ts";
import { Feed } from "../platform/portal/harness.ts";
import { recordOf, signatureCodec, silent, until } from "../platform/store/files.ts";
import { closing } from "../support/closing.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";

/** The default is a folder of the present directory, which may have the sandbox's data. */
const directory = mkdtempSync(join(tmpdir(), "shredway-test-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A gateway that sells shreds; `changes` to the configuration by section. */
function configOf(postgres: string, node: string, region: string, addresses: readonly number[]) {
  return completeConfig({
    relay: {
      shredVersion: 1,
      authentication: "off",
      sources: [{ name: "one", address: "192.0.2.1", tier: "tier-1" }],
    },
    http: { listen: "127.0.0.1:0", webSocketListen: [] },
    tips: {
      addresses: [pubkeyOf(new Uint8Array(32).fill(5))],
      shredAddresses: addresses.map((byte) => pubkeyOf(new Uint8Array(32).fill(byte))),
    },
    delivery: { region },
    data: { postgres, node, directory },
  });
}

/** The portal's live feed of an operator. */
async function operatorFeed(gateway: GatewayService): Promise<Feed> {
  const settings = {
    accountName: "operator",
    label: "",
    scopes: ["operate"] as const,
    requestsPerSecond: null,
    burst: null,
    allowedRanges: [],
  };
  const random = new Uint8Array(randomBytes(keyRandomBytes));
  const { text } = await createKey(gateway.keys, settings, { random, nowNs: 1n });
  await gateway.start();
  const [host = ""] = gateway.addresses;
  const origin = `http://${host}`;
  const answer = await fetch(`${origin}/portal/api/session`, {
    method: "POST",
    headers: { "content-type": "application/json", origin },
    body: JSON.stringify({ key: text }),
  });
  expect(answer.status).toBe(200);
  const cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  return closing(new Feed(host, { origin, cookie }));
}

describe.skipIf(postgresPrograms === null)("a gateway on PostgreSQL", () => {
  let server: PostgresServer | undefined;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.remove());

  it("resumes its own submissions, and those without a node name", async () => {
    const url = server?.url("node") ?? "";
    await server?.ensureDatabase(url);
    const driver = closing(await PostgresDriver.open({ url, clock: systemClock, log: silent }));
    await migrate(driver, "bytea");
    // Their bytes are unreadable, so the node that resumes them ends them.
    for (const node of ["fra-1", "fra-2", ""]) {
      await new SqlSubmissionStore(driver, signatureCodec, node).put([recordOf(`of ${node}`)]);
    }
    const config = completeConfig({
      relay: { shredVersion: 1, authentication: "off" },
      http: { listen: "127.0.0.1:0", webSocketListen: [] },
      tips: { addresses: [pubkeyOf(new Uint8Array(32).fill(5))] },
      data: { postgres: url, node: "fra-1" },
    });
    const gateway = closing(await openGateway({ config, log: silent, clock: systemClock }));
    await gateway.start();
    const rows = await driver.query(
      "SELECT signature, node, state FROM submissions ORDER BY 1",
      [],
    );
    expect(rows).toEqual([
      ["of ", "fra-1", "expired"],
      ["of fra-1", "fra-1", "expired"],
      ["of fra-2", "fra-2", "open"],
    ]);
  });

  it("reports differences between the nodes, and refuses to start with grave ones", async () => {
    const postgres = server?.url("nodes") ?? "";
    await server?.ensureDatabase(postgres);
    const open = (...options: [node: string, region: string, addresses: readonly number[]]) =>
      openGateway({ config: configOf(postgres, ...options), log: silent, clock: systemClock });
    const fra = closing(await open("fra", "frankfurt", [7]));
    await expect(open("nyc", "frankfurt", [7])).rejects.toMatchObject({
      reason: "config_invalid",
      message: expect.stringMatching(/^delivery.region differs from node fra: both nodes send/),
    });
    const nyc = closing(await open("nyc", "new-york", [7, 8]));
    const differences = () =>
      [fra, nyc].map((gateway) => gateway.readiness().nodeDifferences?.length);
    await until(() => differences().join() === "1,1");
    expect(fra.readiness().nodeDifferences?.join()).toMatch(/^tips.shredAddresses differs/);
    const feed = await operatorFeed(nyc);
    const shows = (text: string) => feed.topics.service?.warnings.join("\n").includes(text);
    await until(() => shows("nodes: tips.shredAddresses differs from node fra") === true);
    // The rollout ends with the last node's reload.
    fra.prepare(configOf(postgres, "fra", "frankfurt", [7, 8])).apply();
    await until(() => differences().join() === "0,0");
    await until(() => shows("nodes: tips") === false);
    expect(() => fra.prepare(configOf(postgres, "fra", "new-york", [7, 8]))).toThrow(
      "delivery.region differs from node nyc",
    );
  });
});
