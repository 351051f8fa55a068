import { networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import { parseAddress, parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import {
  listenerReachedBy,
  readOwnAddresses,
  senderAddresses,
} from "../../../src/core/addresses/own-addresses.ts";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";

const own = ["192.0.2.7", "fe80::1%eth0", "2001:db8::7"];
const reached = (destination: string, ...listen: string[]) =>
  listenerReachedBy(
    parseEndpoint(destination),
    listen.map((text) => parseEndpoint(text)),
    own,
  ) !== undefined;

describe("listenerReachedBy", () => {
  it.each([
    ["192.0.2.7:20000", "0.0.0.0:20000", true],
    ["127.0.0.1:20000", "0.0.0.0:20000", true],
    ["127.99.1.2:20000", "0.0.0.0:20000", true],
    ["[::1]:20000", "[::]:20000", true],
    ["[2001:db8:0::7]:20000", "[::]:20000", true],
    ["[::ffff:192.0.2.7]:20000", "0.0.0.0:20000", true],
    ["192.0.2.7:20001", "0.0.0.0:20000", false],
    ["192.0.2.8:20000", "0.0.0.0:20000", false],
    ["192.0.2.7:20000", "[::]:20000", false],
    ["[::1]:20000", "0.0.0.0:20000", false],
    ["192.0.2.7:20000", "127.0.0.1:20000", false],
    ["192.0.2.7:20000", "192.0.2.7:20000", true],
  ])("%s with a listener on %s: %s", (destination, listen, expected) => {
    expect(reached(destination, listen)).toBe(expected);
    expect(reached(destination, "192.0.2.99:1", listen)).toBe(expected);
  });

  it("is a configuration problem, with its line", () => {
    const text = `relay:
  shredVersion: 1
  authentication: off
  destinations:
    - { address: "192.0.2.7:20000", tier: tier-1 }
`;
    expect(() => parseConfig(text, "a.yaml", own)).toThrow(
      /a\.yaml:5: relay\.destinations\[0\]\.address: 192\.0\.2\.7:20000 is an address of relay\.listen/,
    );
    expect(parseConfig(text, "a.yaml").relay.destinations).toHaveLength(1);
  });
});

describe("readOwnAddresses", () => {
  it("returns addresses of this machine", () => {
    const found = readOwnAddresses();
    expect(found.length).toBe(
      Object.values(networkInterfaces()).reduce((total, list) => total + (list?.length ?? 0), 0),
    );
    for (const address of found) expect(parseAddress(address)).toHaveLength(16);
  });
});

describe("senderAddresses", () => {
  it("are the routed addresses; with private destinations, also the others", () => {
    const all = ["127.0.0.1", "::1", "10.0.0.7", "8.8.4.4", "fe80::1", "fe80::2%eth0"];
    expect(senderAddresses(all, false)).toEqual(["8.8.4.4"]);
    expect(senderAddresses(all, true)).toEqual(["8.8.4.4", "127.0.0.1", "::1", "10.0.0.7"]);
  });
});
