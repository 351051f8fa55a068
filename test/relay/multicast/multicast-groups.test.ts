// The rules of groups by a manual clock: joining, joining again, silence. Real sockets and interfaces:
// native/test/relay_multicast_test.cc and test/integration/multicast.test.ts.

import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { createLogger } from "../../../src/core/log.ts";
import type { GroupMembership } from "../../../src/relay/data-plane/tables.ts";
import type { ConfiguredSource } from "../../../src/relay/multicast/group-plan.ts";
import type { InterfaceFacts } from "../../../src/relay/multicast/interface-reader.ts";
import { MulticastGroups } from "../../../src/relay/multicast/multicast-groups.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

const edge: ConfiguredSource = { name: "edge", kind: "multicast", tier: "tier-1" };
const one = "233.84.178.1";
const two = "233.84.178.12";
const up: InterfaceFacts = { index: 7, isUp: true, ipv4: "169.254.2.113", groups: [one, two] };

/** A clock that skips hours without all the looks at the interfaces in between. */
class SkippingClock extends ManualClock {
  #skippedNs = 0n;

  override monotonicNs(): bigint {
    return super.monotonicNs() + this.#skippedNs;
  }

  skipHours(hours: number): void {
    this.#skippedNs += BigInt(hours) * 3_600_000_000_000n;
  }
}

function open() {
  const clock = new SkippingClock();
  const lines: string[] = [];
  const calls: string[] = [];
  const rows = new Map<string, { received: bigint; heartbeats: bigint }>();
  const state = {
    facts: up,
    others: new Map<string, InterfaceFacts>(),
    refusal: null as string | null,
    tables: 0,
    tableError: "",
    /** Entries of a table. */
    entriesMax: 256,
  };
  const note = (what: string, { group, interfaceIndex, interfaceAddress }: GroupMembership) =>
    void calls.push(`${what} ${group} ${interfaceIndex} ${interfaceAddress}`);
  const groups = new MulticastGroups({
    relay: {
      joinGroup(membership) {
        note("join", membership);
        return state.refusal;
      },
      leaveGroup(membership) {
        note("leave", membership);
        return null;
      },
      publishSources(sources) {
        if (state.tableError !== "") throw new ShredwayError("value_invalid", state.tableError);
        if (sources.length > state.entriesMax) throw new ShredwayError("value_invalid", "too many");
        state.tables += 1;
        for (const { name } of sources) rows.set(name, { received: 0n, heartbeats: 0n });
      },
      snapshot: () => ({
        sources: [...rows].map(([name, { received, heartbeats }]) => ({
          name,
          received,
          verdicts: { heartbeat: heartbeats },
        })),
      }),
    },
    readInterface: (name) => state.others.get(name) ?? state.facts,
    log: createLogger({ stream: { write: (line) => void lines.push(line) } }),
    clock,
  });
  const receive = (address: string, received = 1n, heartbeats = 0n): void => {
    const row = rows.get(`edge/${address}`);
    if (!row) throw new Error(`no row of ${address}`);
    row.received += received;
    row.heartbeats += heartbeats;
  };
  const taken = (): string[] => calls.splice(0);
  return { groups, clock, lines, state, receive, taken };
}

describe("MulticastGroups", () => {
  it("joins the groups that have a route, and new ones when their route appears", async () => {
    const { groups, clock, lines, state, taken } = open();
    state.facts = { ...up, groups: [one] };
    groups.publish([edge]);
    expect(taken()).toEqual([`join ${one}:7733 7 169.254.2.113`]);
    expect(lines.join()).toContain(`multicast: group ${one}:7733 on doublezero1 joined`);
    state.facts = up;
    await clock.advance(1000);
    expect(taken()).toEqual([`join ${two}:7733 7 169.254.2.113`]);
    expect(groups.states().map(({ source, isJoined }) => [source, isJoined])).toEqual([
      [`edge/${one}`, true],
      [`edge/${two}`, true],
    ]);
    expect(groups.problem).toBeNull();
    groups.close();
    expect(clock.pending).toBe(0);
  });

  it("waits for the interface, and says what is missing", async () => {
    const { groups, clock, lines, state, taken } = open();
    state.facts = { index: 0, isUp: false, ipv4: null, groups: [] };
    groups.publish([edge]);
    expect(groups.problem).toBe("the interface doublezero1 does not exist");
    state.facts = { ...up, groups: [] };
    await clock.advance(1000);
    expect(groups.problem).toBe("no multicast group has a route through doublezero1");
    state.facts = { ...up, ipv4: null };
    await clock.advance(1000);
    expect(groups.problem).toContain(
      `group ${one} of edge/${one}: the interface doublezero1 has no IPv4`,
    );
    expect(taken()).toEqual([]);
    state.facts = up;
    await clock.advance(1000);
    expect(taken()).toHaveLength(2);
    expect(lines.filter((line) => line.includes("is not joined"))).toHaveLength(2);
    groups.close();
  });

  it("joins again when the interface, its address or a route returns", async () => {
    const { groups, clock, lines, state, taken } = open();
    groups.publish([{ ...edge, groups: [one] }]);
    expect(taken()).toEqual([`join ${one}:7733 7 169.254.2.113`]);
    state.facts = { ...up, isUp: false };
    await clock.advance(1000);
    expect(taken()).toEqual([`leave ${one}:7733 7 169.254.2.113`]);
    expect(lines.join()).toContain(
      `group ${one} of edge is not joined: the interface doublezero1 is down`,
    );
    state.facts = { ...up, groups: [] }; // a configured group needs no route
    await clock.advance(1000);
    expect(taken()).toEqual([`join ${one}:7733 7 169.254.2.113`]);
    state.facts = { ...up, index: 9 }; // a tunnel that was built again between two looks
    await clock.advance(1000);
    expect(taken()).toEqual([
      `leave ${one}:7733 7 169.254.2.113`,
      `join ${one}:7733 9 169.254.2.113`,
    ]);
    state.facts = { ...up, index: 9, ipv4: "169.254.2.115" };
    await clock.advance(1000);
    expect(taken()).toEqual([
      `leave ${one}:7733 9 169.254.2.113`,
      `join ${one}:7733 9 169.254.2.115`,
    ]);
    groups.close();
  });

  it("leaves a discovered group without a route, keeps its counters, and joins it again", async () => {
    const { groups, clock, state, taken } = open();
    groups.publish([edge]);
    taken();
    state.facts = { ...up, groups: [two] };
    await clock.advance(1000);
    expect(taken()).toEqual([`leave ${one}:7733 7 169.254.2.113`]);
    expect(groups.problem).toContain("its route through doublezero1 is gone");
    state.facts = up;
    await clock.advance(1000);
    expect(taken()).toEqual([`join ${one}:7733 7 169.254.2.113`]);
    expect(state.tables).toBe(1);
    expect(groups.states()[0]).toMatchObject({ joins: 2, problem: null });
    groups.close();
  });

  it("joins new groups for ever, however many have come and gone", async () => {
    const { groups, clock, lines, state, taken } = open();
    state.entriesMax = 3;
    const addressOf = (number: number) => `239.1.0.${number}`;
    state.facts = { ...up, groups: [addressOf(0)] };
    groups.publish([edge]);
    for (let number = 1; number <= 8; number++) {
      taken();
      state.facts = { ...up, groups: [addressOf(number)] };
      await clock.advance(1000);
      expect(taken()).toContain(`join ${addressOf(number)}:7733 7 169.254.2.113`);
      expect(groups.problem ?? "").not.toContain("ignored");
    }
    expect(groups.states().length).toBeLessThanOrEqual(3);
    expect(lines.join()).toContain(
      `multicast: group ${addressOf(0)}:7733 on doublezero1 dropped: its route is gone`,
    );
    state.facts = { ...up, groups: [addressOf(8)] };
    const fixed = { address: "10.0.0.1", tier: "tier-1" };
    groups.publish([edge, { ...fixed, name: "a" }, { ...fixed, name: "b" }]); // a reload
    expect(groups.states().map(({ address }) => address)).toEqual([addressOf(8)]);
    groups.close();
  });

  it("drops a discovered group whose route has been gone for a day, and its problem", async () => {
    const { groups, clock, state, taken } = open();
    groups.publish([edge]);
    state.facts = { ...up, groups: [two] };
    await clock.advance(1000);
    taken();
    clock.skipHours(23);
    await clock.advance(1000);
    expect(groups.states()).toHaveLength(2);
    expect(groups.problem).toContain("its route through doublezero1 is gone");
    clock.skipHours(1);
    await clock.advance(1000);
    expect(groups.states().map(({ address }) => address)).toEqual([two]);
    expect(groups.problem ?? "").not.toContain("its route");
    state.facts = up;
    await clock.advance(1000);
    expect(taken()).toContain(`join ${one}:7733 7 169.254.2.113`);
    groups.close();
  });

  it("receives a group of two interfaces through one, and changes over when its route moves", async () => {
    const { groups, clock, state, taken } = open();
    const reserve = { ...edge, name: "reserve", interface: "eth1" };
    state.facts = { ...up, groups: [one] };
    state.others.set("eth1", { ...up, index: 8, ipv4: "10.0.0.8", groups: [one] });
    groups.publish([edge, reserve]);
    expect(taken()).toEqual([`join ${one}:7733 7 169.254.2.113`]);
    expect(groups.problem).toBeNull();
    state.facts = { ...up, groups: [] };
    await clock.advance(1000);
    expect(taken()).toEqual([`leave ${one}:7733 7 169.254.2.113`, `join ${one}:7733 8 10.0.0.8`]);
    expect(groups.states().map(({ source }) => source)).toEqual([`reserve/${one}`]);
    state.facts = { ...up, groups: [one] };
    await clock.advance(1000);
    expect(taken()).toEqual([`leave ${one}:7733 8 10.0.0.8`, `join ${one}:7733 7 169.254.2.113`]);
    groups.close();
  });

  it("joins a group again after 30 s without a shred, every 30 s, and reports it once", async () => {
    const { groups, clock, lines, receive, taken } = open();
    groups.publish([edge]);
    taken();
    for (let second = 0; second < 29; second++) {
      receive(two);
      receive(one, 1n, 1n); // heartbeats are not shreds
      await clock.advance(1000);
    }
    expect(groups.problem).toBeNull();
    expect(taken()).toEqual([]);
    receive(two);
    await clock.advance(1000);
    expect(taken()).toEqual([
      `leave ${one}:7733 7 169.254.2.113`,
      `join ${one}:7733 7 169.254.2.113`,
    ]);
    expect(groups.problem).toBe(`group ${one} of edge/${one}: no shred for 30 s`);
    for (let second = 0; second < 30; second++) {
      receive(two);
      await clock.advance(1000);
    }
    expect(taken()).toHaveLength(2);
    expect(lines.filter((line) => line.includes("no shred for 30 s"))).toHaveLength(1);
    receive(one);
    await clock.advance(1000);
    expect(lines.at(-1)).toContain("receives shreds again");
    expect(groups.problem).toBeNull();
    expect(groups.states()[0]).toMatchObject({ isSilent: false, silentSeconds: 0, joins: 3 });
    groups.close();
  });

  it("tries a refused group again, and reports each reason once", async () => {
    const { groups, clock, lines, state } = open();
    state.refusal = "cannot join 233.84.178.1: No buffer space available";
    groups.publish([{ ...edge, groups: [one] }]);
    await clock.advance(5000);
    expect(lines.filter((line) => line.includes("No buffer space"))).toHaveLength(1);
    state.refusal = null;
    await clock.advance(1000);
    expect(groups.problem).toBeNull();
    groups.close();
  });

  it("reports new groups that the relay rejects, until it accepts them or they are gone", async () => {
    const { groups, clock, lines, state, taken } = open();
    const rejected = "new groups are ignored: sources: too many";
    const warnings = () => lines.filter((line) => line.includes(rejected)).length;
    state.facts = { ...up, groups: [one] };
    groups.publish([edge]);
    state.facts = up;
    state.tableError = "sources: too many";
    await clock.advance(2000);
    expect(groups.problem).toBe(rejected);
    expect(warnings()).toBe(1);

    state.facts = { ...up, groups: [one] }; // the route is gone again
    await clock.advance(1000);
    expect(groups.problem).toBeNull();
    state.facts = up;
    await clock.advance(1000);
    expect(warnings()).toBe(2);

    state.tableError = "";
    taken();
    await clock.advance(1000);
    expect(groups.problem).toBeNull();
    expect(taken()).toEqual([`join ${two}:7733 7 169.254.2.113`]);
    groups.close();
  });

  it("no longer reports rejected groups after a reload without them", async () => {
    const { groups, clock, state } = open();
    state.facts = { ...up, groups: [one] };
    groups.publish([edge]);
    state.facts = up;
    state.tableError = "sources: too many";
    await clock.advance(1000);
    expect(groups.problem).toContain("new groups are ignored");
    state.tableError = "";
    groups.publish([{ ...edge, groups: [one] }]);
    expect(groups.problem).toBeNull();
    groups.close();
  });

  it("leaves the groups of a source that a reload removes", () => {
    const { groups, clock, taken } = open();
    groups.publish([edge]);
    taken();
    groups.publish([{ name: "a", address: "10.0.0.1", tier: "tier-1" }]);
    expect(taken().map((call) => call.split(" ")[0])).toEqual(["leave", "leave"]);
    expect(groups.states()).toEqual([]);
    expect(groups.problem).toBeNull();
    expect(clock.pending).toBe(0);
  });
});
