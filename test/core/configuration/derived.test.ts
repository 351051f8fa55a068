// Defaults that depend on other keys, and the complete text of --print-config.

import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import {
  configWarnings,
  formatConfig,
  parseConfig,
} from "../../../src/core/configuration/configuration.ts";

const relay = "relay: { shredVersion: 1, authentication: off }\n";
const gateway = `${relay}http: {}\ntips: { addresses: ["${"1".repeat(32)}"] }\n`;
const regions = "regions: [{ name: fra }, { name: nyc }]\n";
const read = (text: string) => parseConfig(text, "/etc/shredway/shredway.yaml");

describe("regions", () => {
  it("need one key: the other three follow from it", () => {
    for (const own of ["region: nyc\n", "delivery: { region: nyc }\n"]) {
      const config = read(`${gateway}${regions}${own}`);
      expect([config.region, config.delivery.region]).toEqual(["nyc", "nyc"]);
      expect(config.delivery.regions).toEqual(["fra", "nyc"]);
      expect(configWarnings(config)).toEqual([]);
    }
  });

  it("are never chosen silently", () => {
    const config = read(gateway);
    expect(config.delivery.region).toBe("frankfurt");
    expect(configWarnings(config)).toEqual([
      "configuration: delivery.region is missing, so this machine serves the destinations in frankfurt, " +
        "the first of delivery.regions (frankfurt, new-york); set delivery.region to the region of this machine",
    ]);
    expect(configWarnings(read(relay))).toEqual([]);
    expect(configWarnings(read(`${gateway}delivery: { regions: [tokyo] }\n`))).toEqual([]);
  });

  it("keep what the file says", () => {
    const delivery = "delivery: { regions: [ams, nyc], region: ams }\n";
    const config = read(`${gateway}${regions}region: nyc\n${delivery}`);
    expect([config.region, config.delivery.region]).toEqual(["nyc", "ams"]);
    expect(config.delivery.regions).toEqual(["ams", "nyc"]);
  });
});

describe("--print-config", () => {
  it("shows the values of keys without a fixed default", () => {
    expect(parse(formatConfig(read(`${gateway}${regions}`), "fra 1"))).toMatchObject({
      region: "fra",
      delivery: { region: "fra", regions: ["fra", "nyc"] },
      data: { node: "fra-1" },
      tiers: { thresholdLamports: { "tier-1": 200_000_000, "tier-2": 500_000_000 } },
      http: { webSocketListen: ["127.0.0.1:8781"], keepAliveSeconds: 90 },
    });
  });
});
