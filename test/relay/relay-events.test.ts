import { constants } from "node:os";
import { describe, expect, it } from "vitest";
import type { RelayEvent } from "../../src/relay/data-plane/relay.ts";
import { RelayEvents } from "../../src/relay/relay-events.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

const { ECONNREFUSED, EMSGSIZE, EHOSTUNREACH } = constants.errno;

function event(kind: RelayEvent["kind"], subject: string, detail = 0, timeNs = 5n): RelayEvent {
  return { kind, subject, detail, timeNs, slot: 0n, fecSetIndex: 0 };
}

function open() {
  const waiting: RelayEvent[] = [];
  const clock = new ManualClock();
  const events = new RelayEvents({ drainEvents: () => waiting.splice(0) }, clock);
  const notifications: [string, bigint][] = [];
  events.onUnreachable((address, atNs) => notifications.push([address, atNs]));
  events.start();
  return { waiting, clock, events, notifications };
}

describe("RelayEvents", () => {
  it("reports and counts each ICMP error once, whichever caller drained it", async () => {
    const { waiting, clock, events, notifications } = open();
    waiting.push(event("icmp_error", "192.0.2.1:9", ECONNREFUSED, 1n));
    await clock.advance(250); // the timer first
    expect(notifications).toEqual([["192.0.2.1:9", 1n]]);
    expect(events.count()).toEqual({ "icmp_error 192.0.2.1:9": 1 });

    waiting.push(event("icmp_error", "192.0.2.1:9", ECONNREFUSED, 2n));
    expect(events.count()).toEqual({ "icmp_error 192.0.2.1:9": 1 }); // the statistics first
    expect(notifications).toHaveLength(1); // never inside another call
    waiting.push(event("icmp_error", "192.0.2.2:9", EHOSTUNREACH, 3n));
    events.take(); // a table first
    await clock.advance(250);
    expect(notifications.slice(1)).toEqual([
      ["192.0.2.1:9", 2n],
      ["192.0.2.2:9", 3n],
    ]);
    await clock.advance(1000);
    expect(notifications).toHaveLength(3);
    expect(events.count()).toEqual({ "icmp_error 192.0.2.2:9": 1 });
    expect(events.count()).toEqual({});
  });

  it("reports the errors of several workers in time order", async () => {
    const { waiting, clock, notifications } = open();
    const at = (timeNs: bigint) => event("icmp_error", `192.0.2.1:${timeNs}`, ECONNREFUSED, timeNs);
    waiting.push(...[1n, 4n, 6n].map(at), ...[2n, 3n, 5n].map(at)); // one worker's ring, then the other's
    await clock.advance(250);
    expect(notifications.map(([, atNs]) => atNs)).toEqual([1n, 2n, 3n, 4n, 5n, 6n]);
  });

  it("counts all errors, and reports only unreachable destinations", async () => {
    const { waiting, clock, events, notifications } = open();
    waiting.push(
      event("equivocation", "one"),
      event("icmp_error", "192.0.2.1:9", EMSGSIZE),
      event("window_anchored", "worker 0"),
      event("equivocation", "one"),
    );
    await clock.advance(250);
    expect(notifications).toEqual([]);
    expect(events.count()).toEqual({
      "equivocation one": 2,
      "icmp_error 192.0.2.1:9": 1,
      "window_anchored worker 0": 1,
    });
  });

  it("keeps all counts in few names, even without a reader", async () => {
    const { waiting, clock, events } = open();
    for (let i = 0; i < 20_000; i++) waiting.push(event("icmp_error", `#${i}`, ECONNREFUSED));
    await clock.advance(250);
    const counts = events.count();
    expect(Object.keys(counts).length).toBeLessThanOrEqual(8193);
    expect(Object.values(counts).reduce((total, count) => total + count, 0)).toBe(20_000);
    expect(counts["icmp_error #0"]).toBe(1);
  });

  it("accepts a table from a listener, which also drains events", async () => {
    const { waiting, clock, events, notifications } = open();
    events.onUnreachable(() => events.take());
    waiting.push(event("icmp_error", "a", ECONNREFUSED), event("icmp_error", "b", ECONNREFUSED));
    await clock.advance(250);
    expect(notifications.map(([address]) => address)).toEqual(["a", "b"]);
    events.close();
    expect(clock.pending).toBe(0);
  });
});
