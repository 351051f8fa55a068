// Warnings about parts of a valid file that cannot work.

import { describe, expect, it } from "vitest";
import { configWarnings, parseConfig } from "../../../src/core/configuration/configuration.ts";
import { path } from "./config-texts.ts";

const key = "1".repeat(32);
const gateway = `http: {}\ntips: { addresses: ["${key}"] }\ndelivery: { regions: [a] }\nregion: a\nregions: [{ name: a }]\n`;
const selling = gateway.replace("tips: {", `tips: { shredAddresses: ["${key}"],`);

function relayWith(keys: string): string {
  return `relay: { shredVersion: 1, authentication: off, ${keys} }\n`;
}

function warningsOf(text: string): readonly string[] {
  return configWarnings(parseConfig(text, path));
}

describe("a source that no listener receives", () => {
  const warningFor = (listen: string, source: string) =>
    warningsOf(relayWith(`listen: ${listen}, sources: [{ name: a, tier: tier-1, ${source} }]`));

  it.each([
    [
      "IPv4 at [::]",
      '"[::]:20000"',
      "address: 10.0.0.0/24",
      "configuration: relay.sources[0] (a) has the IPv4 address 10.0.0.0/24, but relay.listen has no IPv4 address " +
        'for it ([::]:20000), so none of its packets arrives; add "0.0.0.0:20000" to relay.listen',
    ],
    [
      "IPv6 at 0.0.0.0",
      '"0.0.0.0:20000"',
      'address: "2001:db8::1"',
      "configuration: relay.sources[0] (a) has the IPv6 address 2001:db8::1, but relay.listen has no IPv6 address " +
        'for it (0.0.0.0:20000), so none of its packets arrives; add "[::]:20000" to relay.listen',
    ],
    [
      "its own port in the other family",
      '["0.0.0.0:20000", "[::]:20001"]',
      "address: 10.0.0.1, port: 20001",
      "configuration: relay.sources[0] (a) has the IPv4 address 10.0.0.1, but relay.listen has no IPv4 address " +
        'for it ([::]:20001), so none of its packets arrives; add "0.0.0.0:20001" to relay.listen',
    ],
  ])("is named: %s", (_, listen, source, expected) => {
    expect(warningFor(listen, source)).toEqual([expected]);
  });

  it.each([
    ["both families", '["0.0.0.0:20000", "[::]:20000"]', "address: 10.0.0.1"],
    ["a range with both families", '"0.0.0.0:20000"', 'address: "::/0"'],
    ["any address", '"[::]:20000"', "port: 20000"],
  ])("is not named: %s", (_, listen, source) => {
    expect(warningFor(listen, source)).toEqual([]);
  });
});

describe("a tier without shreds", () => {
  const wide = "sources: [{ name: a, tier: tier-2, address: 10.0.0.1 }]";
  const destination = '{ tier: tier-1, address: "192.0.2.1:9000", name: own }';
  const warning = (receivers: string) =>
    "configuration: the narrowest tier of relay.sources is tier-2, so tier-1 gets no shreds " +
    `(${receivers}); set the tier of a source to tier-1 or a narrower one, or use tier-2`;

  it("is named with its receivers", () => {
    const relay = relayWith(`${wide}, destinations: [${destination}]`);
    expect(warningsOf(relay)).toEqual([warning("destination own")]);
    const subscribers = `shredstream: { subscribers: [{ name: s, publicKey: "${key}", tier: tier-1 }] }\n`;
    const discovery = 'discovery: { url: "http://127.0.0.1:1/", tier: tier-1 }';
    expect(warningsOf(relayWith(`${wide}, ${discovery}`) + subscribers)).toEqual([
      warning("relay.discovery, subscriber s"),
    ]);
    expect(warningsOf(relayWith(wide) + selling)).toEqual([warning("accounts that buy tier-1")]);
  });

  it("is named if its only source is for own use", () => {
    const own = wide.replace(
      "[{",
      "[{ name: b, tier: tier-1, address: 10.0.0.2, forward: false }, {",
    );
    expect(warningsOf(relayWith(`${own}, destinations: [${destination}]`))).toEqual([
      warning("destination own"),
    ]);
  });

  it("names five of more receivers", () => {
    const all = Array.from(
      { length: 7 },
      (_, i) => `{ tier: tier-1, address: "192.0.2.${i + 1}:9" }`,
    );
    const [found = ""] = warningsOf(relayWith(`${wide}, destinations: [${all.join()}]`));
    expect(found).toContain("destination 192.0.2.5:9 and 2 more);");
  });

  it("is not named without receivers, or with a narrower source", () => {
    expect(warningsOf(relayWith(wide) + gateway)).toEqual([]);
    const narrow = wide.replace("tier-2", "tier-1");
    const wider = destination.replace("tier-1", "tier-2");
    expect(warningsOf(relayWith(`${narrow}, destinations: [${wider}]`) + selling)).toEqual([]);
    const unsold = `${selling}tiers: { thresholdLamports: { tier-2: 1 } }\n`;
    expect(warningsOf(relayWith(wide) + unsold)).toEqual([]);
  });
});

describe("an address of the QUIC ingress without a route", () => {
  const route = (more: string) => `routes: [{ name: r, url: "http://127.0.0.1:1/", ${more} }]\n`;
  const base = relayWith("") + gateway;

  it("is named for each protection", () => {
    expect(warningsOf(`${base}quic: {}\n${route("kind: swqos")}`)).toEqual([
      "configuration: no route may send the transactions of quic.protectedListen (0.0.0.0:9000, [::]:9000), so all " +
        "of them are refused; set mevSafe: true for a partner that protects transactions, or quic.protectedListen: []",
    ]);
    const only = 'quic: { swqosOnlyListen: "127.0.0.1:7001" }\n';
    expect(warningsOf(base + only + route("kind: block-builder, mevSafe: true"))).toEqual([
      "configuration: no route may send the transactions of quic.swqosOnlyListen (127.0.0.1:7001), so all of them " +
        "are refused; add a route of kind swqos, or set quic.swqosOnlyListen: []",
    ]);
  });

  it("is not named with such a route, without the address, or without any route", () => {
    expect(warningsOf(`${base}quic: {}\n${route("kind: swqos, mevSafe: true")}`)).toEqual([]);
    expect(warningsOf(`${base}quic: { protectedListen: [] }\n${route("kind: swqos")}`)).toEqual([]);
    expect(warningsOf(`${base}quic: {}\n`)).toEqual([]);
  });
});
