import { describe, expect, it } from "vitest";
import {
  differencesOf,
  type NodeSettings,
  nodeSettingsOf,
  readNodeSettings,
  writeNodeSettings,
} from "../../src/app/node-settings.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";

const settings: NodeSettings = {
  tiers: [
    ["tier-1", 200_000_000],
    ["tier-2", 500_000_000],
  ],
  regions: ["frankfurt", "new-york"],
  region: "frankfurt",
  shredAddresses: ["A", "B"],
  historyHours: 48,
};
const other: NodeSettings = { ...settings, region: "new-york" };

describe("node settings", () => {
  it("come from the configuration, and are read as they are written", () => {
    const address = pubkeyOf(new Uint8Array(32).fill(5));
    const config = completeConfig({
      relay: {
        shredVersion: 1,
        authentication: "off",
        sources: [{ name: "one", address: "192.0.2.1", tier: "tier-1" }],
      },
      http: { listen: "127.0.0.1:0" },
      tips: { addresses: [address], shredAddresses: [address] },
      delivery: { region: "new-york" },
    });
    const own = nodeSettingsOf(config);
    expect(own).toMatchObject({
      ...other,
      shredAddresses: [address],
      historyHours: own.historyHours,
    });
    expect(readNodeSettings(writeNodeSettings(own))).toEqual(own);
    const withoutSources = { ...config, relay: { ...config.relay, sources: [] } };
    expect(nodeSettingsOf(withoutSources).region).toBeNull();
  });

  it.each([
    "",
    "{",
    "null",
    "7",
    '{"tiers":[]}',
    '{"tiers":[["a"]]}',
    writeNodeSettings(settings).replace("48", '"x"'),
  ])("of another version are unreadable: %j", (text) => expect(readNodeSettings(text)).toBeNull());
});

describe("differences", () => {
  const keysOf = (own: NodeSettings, its: NodeSettings) =>
    differencesOf(own, its).map(({ key, isGrave }) => `${key} ${isGrave}`);

  it.each<[string, Partial<NodeSettings>, string[]]>([
    ["nothing", {}, []],
    ["thresholds", { tiers: [["tier-1", 1]] }, ["tiers.thresholdLamports true"]],
    ["regions", { regions: ["frankfurt"] }, ["delivery.regions true"]],
    ["the same region", { region: "frankfurt" }, ["delivery.region true"]],
    ["no source", { region: null }, []],
    ["an address", { shredAddresses: ["A", "C"] }, ["tips.shredAddresses false"]],
    ["history", { historyHours: 1 }, ["data.historyHours false"]],
    ["a node that sells no shreds", { shredAddresses: [], tiers: [], region: "frankfurt" }, []],
  ])("in %s", (_, changes, expected) => {
    expect(keysOf(settings, { ...other, ...changes })).toEqual(expected);
    if (changes.region !== "frankfurt" || expected.length > 0)
      expect(keysOf({ ...other, ...changes }, settings)).toEqual(expected);
  });

  it("name both values", () => {
    const [found] = differencesOf(settings, { ...other, shredAddresses: ["A", "C"] });
    expect(found?.text).toMatch(/^only this node has B; only the other has C; /);
  });
});
