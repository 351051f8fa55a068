// A gateway on PostgreSQL is a node with a name: it resumes its own submissions.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openGateway } from "../../src/app/compose-gateway.ts";
import { systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { migrate } from "../../src/platform/store/migrations.ts";
import { PostgresDriver } from "../../src/platform/store/postgres/driver.ts";
import { SqlSubmissionStore } from "../../src/platform/store/tables/submission-store.ts";
import { recordOf, silent } from "../platform/store/files.ts";
import { closing } from "../support/closing.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";

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
});
