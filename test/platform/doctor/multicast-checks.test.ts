import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { checkMulticast } from "../../../src/platform/doctor/multicast-checks.ts";
import {
  joinedGroupsIn,
  readMulticastFacts,
} from "../../../src/platform/doctor/multicast-facts.ts";

// A real file: two interfaces, the second one with a group of DoubleZero.
const igmp = `Idx	Device    : Count Querier	Group    Users Timer	Reporter
1	lo        :     1      V3
				010000E0     1 0:00000000		0
7	doublezero1:     2      V3
				01B254E9     2 0:00000000		0
				010000E0     1 0:00000000		0
`;
const relayOf = (sources: string) =>
  parseConfig(`relay: { shredVersion: 1, authentication: off, sources: [ ${sources} ] }`, "a.yaml")
    .relay;
const edge = "{ name: edge, kind: multicast, tier: tier-1 }";
const up = { index: 7, isUp: true, ipv4: "169.254.2.113", groups: ["233.84.178.1"] };

function found(
  sources: string,
  facts: typeof up | object = up,
  files: Record<string, string> = {},
) {
  const relay = relayOf(sources);
  const all = { "/proc/net/igmp": igmp, ...files };
  const readText = (path: string) => new Map(Object.entries(all)).get(path) ?? null;
  const read = () => ({ ...up, ...facts });
  return checkMulticast(relay, readMulticastFacts(relay, readText, read)).map(
    ({ check, level, finding }) => `${level} ${check}: ${finding}`,
  );
}

describe("joinedGroupsIn", () => {
  it("reads the groups of one interface", () => {
    expect(joinedGroupsIn(igmp, "doublezero1")).toEqual(["233.84.178.1", "224.0.0.1"]);
    expect(joinedGroupsIn(igmp, "eth0")).toEqual([]);
    expect(joinedGroupsIn("", "lo")).toEqual([]);
  });
});

describe("checkMulticast", () => {
  it("has nothing to check without a multicast source", () => {
    expect(found("{ name: a, address: 10.0.0.1, tier: tier-1 }")).toEqual([]);
  });

  it("reports interface, groups, filter and the ports for the firewall", () => {
    expect(found(edge)).toEqual([
      "ok multicast-interface: doublezero1 is up, 169.254.2.113",
      "ok multicast-groups: joined on doublezero1: 233.84.178.1",
      "ok multicast-filter: rp_filter of doublezero1 is unknown",
      "ok multicast-firewall: a firewall must admit UDP 7733 on doublezero1, and GRE on the physical interface",
    ]);
  });

  it("fails for an interface that cannot receive", () => {
    expect(found(edge, { index: 0 })).toEqual([
      "fail multicast-interface: the interface doublezero1 does not exist",
    ]);
    expect(found(edge, { isUp: false })).toEqual([
      "fail multicast-interface: the interface doublezero1 is down",
    ]);
    expect(found(edge, { ipv4: null })).toEqual([
      "fail multicast-interface: the interface doublezero1 has no IPv4 address",
    ]);
  });

  it("reports an interface that the kernel does not show, and checks the others", () => {
    const read = (name: string) => {
      if (name === "doublezero1") throw new Error(`cannot read the interface ${name}: denied`);
      return up;
    };
    const other =
      "{ name: b, kind: multicast, interface: eth1, groups: [239.1.2.3], tier: tier-1 }";
    const relay = relayOf(`${edge}, ${other}`);
    const findings = checkMulticast(
      relay,
      readMulticastFacts(relay, () => null, read),
    );
    expect(findings.slice(0, 2)).toMatchObject([
      {
        level: "fail",
        finding: "cannot read the interface doublezero1: denied",
        remedy: expect.stringContaining("AF_NETLINK"),
      },
      { level: "ok", finding: "eth1 is up, 169.254.2.113" },
    ]);
  });

  it("expects the groups that the relay joins, each on the interface of its source", () => {
    const named =
      "{ name: b, kind: multicast, interface: eth1, groups: [233.84.178.12], tier: tier-1 }";
    const facts = { groups: ["233.84.178.1", "233.84.178.12"] };
    const ofGroups = (sources: string, of: object) =>
      found(sources, of).filter((text) => text.includes("multicast-groups"));
    expect(ofGroups(`${edge}, ${named}`, facts)).toEqual([
      "ok multicast-groups: joined on doublezero1: 233.84.178.1",
      "warn multicast-groups: not joined on eth1: 233.84.178.12",
    ]);
    expect(ofGroups(`${named}, ${edge}`, { groups: ["233.84.178.12"] })).toEqual([
      "warn multicast-groups: not joined on eth1: 233.84.178.12",
      "warn multicast-groups: every group with a route through doublezero1 belongs to another source: 233.84.178.12",
    ]);
  });

  it("warns of missing groups, a strict filter and forwarding", () => {
    expect(found(edge, { groups: [] })[1]).toBe(
      "warn multicast-groups: no multicast group has a route through doublezero1",
    );
    const named =
      "{ name: b, kind: multicast, groups: [233.84.178.12], tier: tier-1, forward: true }";
    const filter = { "/proc/sys/net/ipv4/conf/all/rp_filter": "1\n" };
    expect(found(named, up, filter).filter((text) => text.startsWith("warn"))).toEqual([
      "warn multicast-groups: not joined on doublezero1: 233.84.178.12",
      "warn multicast-filter: rp_filter of doublezero1 is strict",
      "warn multicast-terms: forward: true for b",
    ]);
  });
});
