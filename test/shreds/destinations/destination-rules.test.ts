import { describe, expect, it } from "vitest";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { destinationSettingsOf } from "../../../src/shreds/destinations/destination-rules.ts";

describe("the regions of destinations", () => {
  it.each([
    ["without PostgreSQL, only that of this relay", {}, ["new-york"]],
    [
      "with PostgreSQL, all",
      { postgres: "postgres://localhost/shredway" },
      ["frankfurt", "new-york"],
    ],
  ])("are, %s", (_, data, regions) => {
    const config = completeConfig({
      relay: { shredVersion: 1, authentication: "off" },
      delivery: { region: "new-york" },
      data,
    });
    expect(destinationSettingsOf(config)).toMatchObject({ region: "new-york", regions });
  });
});
