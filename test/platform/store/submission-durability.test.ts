// An acknowledged submission is on disk, unless the operator chose speed.

import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { migrate } from "../../../src/platform/store/migrations.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { SqlSubmissionStore } from "../../../src/platform/store/tables/submission-store.ts";
import { closing } from "../../support/closing.ts";
import { PostgresServer, postgresPrograms } from "../../support/postgres/postgres.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { Files, recordOf, signatureCodec, silent } from "./files.ts";

const files = new Files();
afterEach(() => files.clean());

describe("on SQLite", () => {
  it("waits for the disk by default", async () => {
    const driver = await files.driver();
    await migrate(driver, "blob");
    const mode = async () => (await driver.query("PRAGMA synchronous", []))[0]?.[0];
    const [normal, full] = [1n, 2n];
    await new SqlSubmissionStore(driver, signatureCodec, "", "survives-kill").put([
      recordOf("fast"),
    ]);
    expect(await mode()).toBe(normal);
    const store = new SqlSubmissionStore(driver, signatureCodec);
    await store.put([recordOf("put")]);
    expect(await mode()).toBe(full);
    await new SqlSubmissionStore(driver, signatureCodec, "", "survives-kill").put([
      recordOf("fast"),
    ]);
    await store.add([recordOf("added")]);
    expect(await mode()).toBe(full);
  });
});

describe.skipIf(postgresPrograms === null)("on PostgreSQL", () => {
  /** The server is killed at once after the acknowledgement, long before it would write by itself. */
  async function afterKill(durableSubmissions?: boolean): Promise<string[]> {
    const server = await PostgresServer.start({ settings: { wal_writer_delay: "10s" } });
    closing({ close: () => server.remove() });
    const open = () =>
      Store.open({
        directory: temporaryFolder(),
        postgres: server.url(),
        clock: systemClock,
        log: silent,
        ...(durableSubmissions !== undefined && { durableSubmissions }),
      });
    const store = await open();
    await store.submissions.put([recordOf("put")]);
    await store.submissions.add([recordOf("added")]);
    await server.kill();
    await store.close();
    await server.start();
    const after = closing(await open());
    return (await after.submissions.find("a_1", ["put", "added"]))
      .map(({ signature }) => signature)
      .toSorted();
  }

  it("keeps acknowledged submissions when the server is killed", async () => {
    expect(await afterKill()).toEqual(["added", "put"]);
  });

  it("may lose the last ones with data.durableSubmissions: false", async () => {
    expect(await afterKill(false)).toEqual([]);
  });
});
