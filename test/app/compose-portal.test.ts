// The portal of several nodes on one PostgreSQL database: warnings in the operator's view.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PortalHarness } from "../platform/portal/harness.ts";
import { PostgresServer, postgresPrograms } from "../support/postgres/postgres.ts";

const regions = ["frankfurt", "new-york"];
const absent =
  "nodes: no node of region new-york is running; destinations of this region receive no shreds until one starts";

async function operatorFeed(harness: PortalHarness) {
  return harness.feed(await harness.cookie(await harness.key("ops", ["operate"])));
}

describe.skipIf(postgresPrograms === null)("an operator's view of nodes on one database", () => {
  let server: PostgresServer | undefined;

  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.stop());

  it("names a region without a running node, until one starts", async () => {
    const postgres = server?.url();
    const open = (node: string, region: string) =>
      PortalHarness.open({ data: { postgres, node }, delivery: { regions, region } });
    const frankfurt = await open("fra", "frankfurt");
    const feed = await operatorFeed(frankfurt);
    const { warnings } = await feed.has("service");
    expect(warnings.filter((text) => text.startsWith("nodes: "))).toEqual([absent]);
    const newYork = await open("nyc", "new-york");
    await feed.has("service", (view) => !view.warnings.includes(absent));
    await newYork.service.close();
    await feed.has("service", (view) => view.warnings.includes(absent));
  });
});

describe("an operator's view of a single node", () => {
  it("has no warning about regions", async () => {
    const harness = await PortalHarness.open({ delivery: { regions, region: "frankfurt" } });
    const { warnings } = await (await operatorFeed(harness)).has("service");
    expect(warnings.filter((text) => text.includes("region"))).toEqual([]);
  });
});
