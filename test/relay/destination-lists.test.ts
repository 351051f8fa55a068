import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLogger } from "../../src/core/log.ts";
import type { Destination } from "../../src/relay/data-plane/tables.ts";
import { DestinationLists } from "../../src/relay/destination-lists.ts";

const tiers = ["tier-1", "tier-2", "tier-3"];

function makeTable(max: number) {
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  return { table: new DestinationLists({ tiers, max, log }), lines };
}

const at = (address: string, tier = "tier-1"): Destination => ({ address, tier, name: address });
const never = () => false;
const addresses = (list: readonly Destination[]) => list.map(({ address }) => address);

describe("DestinationTable", () => {
  it("contains account destinations after configured ones, in their order", () => {
    const { table } = makeTable(10);
    const fixed = [at("192.0.2.1:9", "tier-3"), at("[2001:db8::1]:9")];
    const ofAccounts = [at("192.0.2.2:9", "tier-2"), at("[2001:db8::2]:9")];
    const joined = table.join(fixed, ofAccounts, never);
    expect(joined.table).toEqual([...fixed, ...ofAccounts]);
    expect([...joined.served]).toEqual(addresses(ofAccounts));
    expect(joined).toMatchObject({ omitted: [], excess: 0 });
  });

  it("skips configured addresses in any spelling, and invalid ones", () => {
    const { table, lines } = makeTable(10);
    const fixed = [at("[2001:db8:0::1]:9"), at("192.0.2.1:9")];
    const ofAccounts = [
      at("[2001:db8::1]:9"),
      at("[::ffff:192.0.2.1]:9"),
      at("192.0.2.1:10"),
      at("192.0.2.7:20000"),
      at("192.0.2.3:9", "tier-9"),
      at("192.0.2.4"),
      at("192.0.2.5:0"),
      at("192.0.2.1:10", "tier-2"),
    ];
    const joined = table.join(fixed, ofAccounts, ({ port }) => port === 20_000);
    expect(addresses(joined.table)).toEqual([...addresses(fixed), "192.0.2.1:10"]);
    expect([...joined.served]).toEqual(["192.0.2.1:10"]);
    expect(joined.omitted.map(({ destination, why }) => [destination.address, why])).toEqual([
      ["[2001:db8::1]:9", "relay.destinations, relay.discovery or a subscriber has it too"],
      ["[::ffff:192.0.2.1]:9", "relay.destinations, relay.discovery or a subscriber has it too"],
      ["192.0.2.7:20000", "it is a listener of the relay itself"],
      ["192.0.2.3:9", 'relay.tiers has no tier "tier-9"'],
      ["192.0.2.4", "expected an address and port"],
      ["192.0.2.5:0", "expected an address and port"],
      ["192.0.2.1:10", "another account has this destination"],
    ]);
    table.log(joined);
    expect(lines).toHaveLength(7);
    expect(lines[0]).toContain("relay.destinations, relay.discovery or a subscriber has it too");
    table.log(table.join(fixed, ofAccounts, ({ port }) => port === 20_000));
    table.log(table.join(fixed, [], never));
    table.log(table.join(fixed, ofAccounts, never));
    expect(lines).toHaveLength(7); // each address once
  });

  it("skips discovered and leased destinations of an unknown tier, and logs each once", () => {
    const { table, lines } = makeTable(10);
    const configured = [at("192.0.2.1:9")];
    const leased = [at("192.0.2.2:9", "tier-9"), at("192.0.2.3:9", "tier-2")];
    const join = () => table.withDiscovered(configured, leased, never);
    expect(addresses(join())).toEqual(["192.0.2.1:9", "192.0.2.3:9"]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      'leased destination \\"192.0.2.2:9\\" is not served: the running relay has no tier \\"tier-9\\"',
    );
    join();
    expect(lines).toHaveLength(1);
  });

  it("logs the number of skipped destinations when it changes", () => {
    const { table, lines } = makeTable(4);
    const say = (count: number) =>
      table.log(
        table.join(
          [at("192.0.2.1:9")],
          Array.from({ length: count }, (_, i) => at(`192.0.2.2:${i + 1}`)),
          never,
        ),
      );
    for (const count of [3, 5, 5, 6, 3, 6]) say(count);
    const warned = lines.map(
      (line) => /(\d+) account destinations of the narrowest/.exec(line)?.[1],
    );
    expect(warned).toEqual(["2", "3", "3"]);
  });

  it("contains as many as fit, wider tiers first", () => {
    const list = fc.array(
      fc.record({
        port: fc.integer({ min: 1, max: 60 }),
        tier: fc.constantFrom(...tiers, "unknown"),
      }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(list, list, fc.integer({ min: 0, max: 30 }), (fixedList, accountList, room) => {
        const ports = new Map(fixedList.map(({ port }) => [port, at(`192.0.2.1:${port}`)]));
        const fixed = [...ports.values()];
        const max = fixed.length + room;
        const ofAccounts = accountList.map(({ port, tier }) => at(`192.0.2.1:${port}`, tier));
        const { table } = makeTable(max);
        const joined = table.join(fixed, ofAccounts, ({ port }) => port === 60);
        const served = joined.table.slice(fixed.length);
        expect(joined.table.slice(0, fixed.length)).toEqual(fixed);
        expect(joined.table.length).toBeLessThanOrEqual(max);
        expect(new Set(addresses(joined.table)).size).toBe(joined.table.length);
        expect(addresses(served)).toEqual([...joined.served]);
        expect(served.length + joined.excess + joined.omitted.length).toBe(ofAccounts.length);
        if (joined.excess === 0) return;
        expect(joined.table.length).toBe(max);
        const narrowest = Math.min(...served.map(({ tier }) => tiers.indexOf(tier)));
        const left = ofAccounts.filter(
          (each) =>
            !served.includes(each) &&
            !joined.omitted.some(({ destination }) => destination === each),
        );
        expect(left).toHaveLength(joined.excess);
        for (const { tier } of left) expect(tiers.indexOf(tier)).toBeLessThanOrEqual(narrowest);
      }),
    );
  });
});
