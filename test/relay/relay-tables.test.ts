import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { relayOptionsOf, restartKeys, withTablesOf } from "../../src/relay/relay-tables.ts";

const relay = (text: string) =>
  parseConfig(`relay: { shredVersion: 1, authentication: off, ${text} }`, "test.yaml").relay;
const source = "sources: [{ name: a, address: 10.0.0.1, tier: tier-1 }]";

describe("relayOptionsOf", () => {
  it("contains the values of the file, with the send address as an endpoint", () => {
    const options = relayOptionsOf(
      relay('workers: 2, cpus: [0, 1], send: { source: "2001:db8::1", gso: false }'),
    );
    expect(options).toMatchObject({
      listen: ["0.0.0.0:20000"],
      workers: 2,
      cpus: [0, 1],
      tiers: ["tier-1", "tier-2"],
      authentication: "off",
      shredVersion: 1,
      send: { source: "[2001:db8::1]:0", gso: false },
      failedChecksPerSecond: 1000,
      keepRetransmitterSignatures: false,
      lockMemory: false,
    });
    expect(relayOptionsOf(relay("send: { ttl: 9, dscp: 46 }")).send).toMatchObject({
      ttl: 9,
      dscp: 46,
    });
    expect(relayOptionsOf(relay("")).transmit).toBe("automatic");
    expect(relayOptionsOf(relay("transmit: socket")).transmit).toBe("socket");
    expect(relayOptionsOf(relay("transmit: clone")).transmit).toBe("clone");
    expect(relayOptionsOf(relay("transmit: auto")).transmit).toBe("automatic");
    expect(relayOptionsOf(relay("transmit: xdp, xdpInterfaces: [eth1]"))).toMatchObject({
      transmit: "xdp",
      xdpInterfaces: ["eth1"],
      receive: { mode: "socket" },
    });
    expect(relayOptionsOf(relay("receive: { mode: xdp }, xdpInterfaces: [eth1]"))).toMatchObject({
      transmit: "automatic",
      xdpInterfaces: ["eth1"],
      receive: { mode: "xdp" },
    });
    expect(relayOptionsOf(relay("")).send).not.toHaveProperty("source");
    expect(relayOptionsOf(relay(""))).not.toHaveProperty("cpus");
    expect(relayOptionsOf(relay("cpus: none"))).not.toHaveProperty("cpus");
  });
});

describe("reload", () => {
  it("needs no restart for tables", () => {
    expect(restartKeys(relay(""), relay(`${source}, allowPrivateDestinations: true`))).toEqual([]);
  });

  it("names every key that needs one", () => {
    const wanted = relay("workers: 2, cpus: [0, 1], receive: { wait: spin }, tiers: [tier-1]");
    expect(restartKeys(relay(""), wanted)).toEqual([
      "relay.workers",
      "relay.tiers",
      "relay.receive",
      "relay.cpus",
    ]);
    expect(restartKeys(wanted, relay(""))).toContain("relay.cpus");
    expect(restartKeys(relay(""), relay("cpus: none"))).toEqual(["relay.cpus"]);
    expect(restartKeys(relay(""), relay("transmit: clone"))).toEqual(["relay.transmit"]);
  });

  it("applies only the tables", () => {
    const running = relay("leaders: { file: a.json }");
    const inForce = withTablesOf(running, relay(`${source}, workers: 4`));
    expect(inForce.sources.length).toBe(1);
    expect(inForce.workers).toBe(1);
    expect(inForce).not.toHaveProperty("leaders");
    expect(restartKeys(running, inForce)).toEqual([]);
  });
});
