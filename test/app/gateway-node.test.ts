// A gateway on PostgreSQL is a node with a name: it resumes its own submissions.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openGateway } from "../../src/app/compose-gateway.ts";
import { systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { migrate } from "../../src/platform/store/migrations.ts";
import { PostgresDriver } from "../../src/platform/store/postgres/driver.ts";
import { SqlSubmissionStore } from "../../src/platform/store/tables/submission-store.ts";
import { recordOf, silent, until } from "../platform/store/files.ts";
import { closing } from "../support/closing.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";

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
    data: { postgres, node },
  });
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
      await new SqlSubmissionStore(driver, node).put([recordOf(`of ${node}`)]);
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
    // The rollout ends with the last node's reload.
    fra.prepare(configOf(postgres, "fra", "frankfurt", [7, 8]))();
    await until(() => differences().join() === "0,0");
    expect(() => fra.prepare(configOf(postgres, "fra", "new-york", [7, 8]))).toThrow(
      "delivery.region differs from node nyc",
    );
  });
});
