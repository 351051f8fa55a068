// Keys that need a restart, the instructions if one of them selects another database, minimum tips
// and read methods.

import { expect, it } from "vitest";
import {
  databaseChangeWarning,
  gatewayRestartKeys,
  inForceAfter,
  policyOf,
  settingsOf,
} from "../../src/app/gateway-settings.ts";
import { nodeSettingsOf } from "../../src/app/node-settings.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { noPartners } from "../support/gateway/gateway.ts";

const url = "postgres://db.example.com/shredway";

function configOf(data: object, tips: object = {}, gateway: object = {}) {
  return completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0" },
    tips: { addresses: [pubkeyOf(new Uint8Array(32).fill(5))], ...tips },
    data: { directory: "data", ...data },
    gateway,
  });
}

it.each([
  ["the first PostgreSQL", {}, { postgres: url }, ["data.postgres"]],
  ["another PostgreSQL", { postgres: url }, { postgres: `${url}2` }, ["data.postgres"]],
  ["a file instead of PostgreSQL", { postgres: url }, {}, ["data.postgres"]],
  ["another folder", {}, { directory: "/other" }, ["data.directory"]],
  ["name and history", {}, { node: "b", historyHours: 7 }, ["data.historyHours", "data.node"]],
  ["nothing", { postgres: url }, { postgres: url }, []],
])("requires a restart for exactly the changed keys: %s", (_, running, wanted, keys) => {
  expect(gatewayRestartKeys(configOf(running), configOf(wanted)).toSorted()).toEqual(keys);
});

it("needs a restart for a change of the QUIC ingress", () => {
  const running = configOf({});
  const wanted = completeConfig({ ...running, quic: { connectionsPerKeyMax: 3 } });
  expect(gatewayRestartKeys(running, wanted)).toEqual(["quic"]);
  expect(gatewayRestartKeys(wanted, wanted)).toEqual([]);
});

it("explains a change of the database, and reports nothing for other keys", () => {
  expect(databaseChangeWarning(["http.listen", "data.postgres"])).toBe(
    "data.postgres: a running service cannot change its database. To change it, stop the service, run " +
      '"shredway export" with the old configuration and "shredway import" with the new one, then start ' +
      "(docs/backup.md)",
  );
  expect(databaseChangeWarning(["data.directory"])).toContain("data.directory: a running service");
  expect(databaseChangeWarning(["data.node", "data.historyHours", "http.listen"])).toBeNull();
});

it("needs a restart to turn the fast path off", () => {
  const wanted = configOf({}, {}, { fastPath: false });
  expect(gatewayRestartKeys(configOf({}), wanted)).toEqual(["gateway.fastPath"]);
});

it("has in force after a reload what needs no restart, and publishes nothing else", () => {
  const shredAddresses = [pubkeyOf(new Uint8Array(32).fill(7))];
  const running = configOf({ historyHours: 5 }, { shredAddresses });
  const wanted = completeConfig({
    ...configOf({ historyHours: 9 }, { shredAddresses, minimumLamports: 77 }, { openMax: 100_000 }),
    http: { listen: "127.0.0.1:1", trustedProxies: ["192.0.2.1"] },
    relay: { ...running.relay, tiers: ["tier-1", "tier-2", "tier-3"], send: { ttl: 3 } },
    tiers: { thresholdLamports: { "tier-1": 1, "tier-2": 2, "tier-3": 3 } },
  });
  const inForce = inForceAfter(running, wanted);
  const restart = ["http.listen", "gateway.openMax", "tiers", "data.historyHours"];
  expect(gatewayRestartKeys(running, wanted)).toEqual(restart);
  expect(gatewayRestartKeys(running, inForce)).toEqual([]);
  expect(gatewayRestartKeys(inForce, wanted)).toEqual(restart);
  expect(nodeSettingsOf(inForce)).toEqual(nodeSettingsOf(running));
  expect(inForce.relay).toEqual(running.relay);
  expect(inForce.tips.minimumLamports).toBe(77);
  expect(inForce.http?.trustedProxies).toEqual(["192.0.2.1"]);
  const without = inForceAfter(running, configOf({}));
  expect(without.tips.shredAddresses).toEqual(shredAddresses);
});

it("changes the minimum tips of methods without a restart", () => {
  const minimums = {
    minimumLamports: 5000,
    minimumLamportsByMethod: { sendAlt: 7, sendBundle: 90 },
  };
  const wanted = configOf({}, minimums);
  expect(gatewayRestartKeys(configOf({}), wanted)).toEqual([]);
  expect(settingsOf(wanted)).toMatchObject({
    minimumTipLamports: 5000n,
    minimumTipLamportsByMethod: { sendAlt: 7n, sendBundle: 90n },
  });
  expect(settingsOf(configOf({})).minimumTipLamportsByMethod).toEqual({});
  // The plan must not refuse what the method accepts.
  expect(policyOf(wanted, noPartners).minimumTipLamports).toBe(7n);
  // Both refuse a low tip with the same addresses.
  const [{ tipAddresses }] = settingsOf(wanted).regions;
  expect(tipAddresses.length).toBeGreaterThan(0);
  expect(policyOf(wanted, noPartners).tipAddresses).toEqual(tipAddresses);
});

it("changes the read methods without a restart", () => {
  const wanted = configOf({}, {}, { readMethods: { add: ["getBlock"], remove: ["getSlot"] } });
  expect(gatewayRestartKeys(configOf({}), wanted)).toEqual([]);
  const { readMethods } = settingsOf(wanted);
  expect([readMethods.has("getBlock"), readMethods.has("getSlot")]).toEqual([true, false]);
  const own = configOf({}, {}, { readMethods: { add: ["sendTransaction"] } });
  expect(() => settingsOf(own)).toThrow(
    /^gateway.readMethods.add\[0\]: "sendTransaction" is a method/,
  );
});
