import { describe, expect, it } from "vitest";
import {
  type ConfiguredSource,
  groupListenersOf,
  planGroups,
  tableOf,
} from "../../../src/relay/multicast/group-plan.ts";

const unicast: ConfiguredSource = { name: "fra-a", address: "10.0.0.0/24", tier: "tier-1" };
const leaders: ConfiguredSource = {
  name: "leaders",
  kind: "multicast",
  groups: ["233.84.178.1"],
  tier: "tier-1",
};
const edge: ConfiguredSource = { name: "edge", kind: "multicast", tier: "tier-2" };
const inside: ConfiguredSource = {
  name: "inside",
  kind: "multicast",
  groups: ["FF0E::7733", "239.1.2.3"],
  interface: "eth1",
  port: 9000,
  tier: "tier-1",
  forward: true,
};

describe("groupListenersOf", () => {
  it("names the ports and families of the groups", () => {
    expect(groupListenersOf([unicast])).toEqual([]);
    expect(groupListenersOf([leaders])).toEqual(["0.0.0.0:7733"]);
    expect(groupListenersOf([leaders, edge])).toEqual(["0.0.0.0:7733", "[::]:7733"]);
    expect(groupListenersOf([inside])).toEqual(["0.0.0.0:9000", "[::]:9000"]);
    expect(groupListenersOf([{ ...inside, groups: ["ff0e::1"] }])).toEqual(["[::]:9000"]);
  });
});

describe("planGroups", () => {
  it("gives discovered groups to the source without groups, except those of other sources", () => {
    const routes = (name: string) =>
      name === "doublezero1" ? ["233.84.178.1", "233.84.178.12"] : [];
    const plans = planGroups([unicast, leaders, edge, inside], routes);
    expect(plans.map(({ name, address, isDiscovered }) => [name, address, isDiscovered])).toEqual([
      ["leaders", "233.84.178.1", false],
      ["edge/233.84.178.12", "233.84.178.12", true],
      ["inside/ff0e::7733", "ff0e::7733", false],
      ["inside/239.1.2.3", "239.1.2.3", false],
    ]);
    expect(plans[0]).toMatchObject({ interface: "doublezero1", port: 7733, forward: false });
    expect(plans[2]).toMatchObject({ interface: "eth1", port: 9000, forward: true });
  });
});

describe("planGroups for two interfaces with the same groups", () => {
  const sources: ConfiguredSource[] = [edge, { ...edge, name: "reserve", interface: "eth1" }];
  const both = ["233.84.178.1"];
  const planned = (...args: Parameters<typeof planGroups>) =>
    planGroups(...args).map(({ name, interface: of }) => `${name} on ${of}`);

  it("gives a group to one source, the first one with a route", () => {
    expect(planned(sources, () => both)).toEqual(["edge/233.84.178.1 on doublezero1"]);
    const moved = (name: string) => (name === "eth1" ? both : []);
    const remembered = (name: string) => (name === "doublezero1" ? both : []);
    expect(planned(sources, moved, remembered)).toEqual(["reserve/233.84.178.1 on eth1"]);
    expect(planned(sources, () => [], remembered)).toEqual(["edge/233.84.178.1 on doublezero1"]);
  });

  it("gives it to both if their ports differ", () => {
    const otherPort = sources.map((source, i) => ({ ...source, port: 7733 + i }));
    expect(planned(otherPort, () => both)).toEqual([
      "edge/233.84.178.1 on doublezero1",
      "reserve/233.84.178.1 on eth1",
    ]);
  });
});

describe("tableOf", () => {
  it("keeps unicast sources and adds an entry for each group, for own use by default", () => {
    const table = tableOf(
      [unicast, leaders],
      planGroups([unicast, leaders], () => []),
    );
    expect(table).toEqual([
      { name: "fra-a", address: "10.0.0.0/24", tier: "tier-1", forward: true },
      { name: "leaders", address: "233.84.178.1", port: 7733, tier: "tier-1", forward: false },
    ]);
  });
});
