// Verified destinations over time: renewal, pauses, the operator, changed settings and other processes.

import { describe, expect, it } from "vitest";
import { parseAddressRange, parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { newDestination } from "../../../src/shreds/destinations/destination-rules.ts";
import { Harness, hour, minute, one, other, place, second, settings } from "./harness.ts";

describe("renewal", () => {
  it("is requested at 1/2, 3/4 and 9/10 of the term; without it the shreds end", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    const start = desk.nowMs;
    desk.sent.length = 0;
    await desk.clock.advance(24 * hour - 1);
    expect(desk.sentSeconds(start)).toEqual([12 * 3600, 18 * 3600, 21.6 * 3600]);
    expect(new Set(desk.sent.map(({ token }) => token)).size).toBe(3);
    expect(desk.active()).toEqual([place]);
    desk.told = 0;
    await desk.clock.advance(1);
    expect(desk.active()).toEqual([]);
    expect(desk.told).toBe(1);
    await desk.settle();
    expect(desk.store.rows.get(id)).toMatchObject({
      state: "paused",
      pauseReason: "proof_expired",
      pausedMs: start + 24 * hour,
    });
    // A destination that returns is challenged again, three times.
    await desk.clock.advance(48 * hour);
    expect(desk.sent.length).toBe(6);
    await desk.destinations.challenge("a_1", id);
    desk.destinations.answer(place, desk.lastDatagram);
    await desk.settle();
    expect(desk.state(id)).toMatchObject({ state: "active", pauseReason: null, pausedMs: null });
  });

  it("begins a new term after an answer", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    await desk.clock.advance(12 * hour);
    const answeredMs = desk.nowMs;
    desk.destinations.answer(place, desk.lastDatagram);
    await desk.clock.advance(12 * hour);
    expect(desk.state(id)?.proofEndsMs).toBe(answeredMs + 24 * hour);
    expect(desk.active()).toEqual([place]);
    expect(desk.told).toBe(1); // it was active the whole time
  });

  it("is requested again after it ended, and resumes automatically", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    desk.destinations.close();
    await desk.clock.advance(25 * hour);
    await desk.start();
    await desk.settle();
    expect(desk.state(id)?.pauseReason).toBe("proof_expired");
    await desk.clock.advance(10_000);
    expect(desk.destinations.isAwaited(place)).toBe(true);
    desk.destinations.answer(place, desk.lastDatagram);
    await desk.settle();
    expect(desk.active()).toEqual([place]);
  });

  it("happens only in the destination's region", async () => {
    const desk = await Harness.open();
    const { id } = await desk.destinations.add(one, "there", place);
    await desk.destinations.prove("a_1", id, desk.lastToken);
    await desk.clock.advance(25 * hour);
    expect(desk.sent.length).toBe(1);
    expect(desk.state(id)?.pauseReason).toBe("proof_expired");
  });

  it("ends the shreds on time even if the store is down, and is stored later", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    desk.store.isDown = true;
    await desk.clock.advance(24 * hour);
    expect(desk.active()).toEqual([]);
    expect(desk.state(id)?.state).toBe("active");
    await desk.clock.advance(minute);
    desk.store.isDown = false;
    await desk.clock.advance(5 * second);
    await desk.settle();
    expect(desk.store.rows.get(id)?.pauseReason).toBe("proof_expired");
  });

  it("is missed immediately when the wall clock is set forward, and soon stored as missed", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    desk.skewMs = 25 * hour;
    expect(desk.active()).toEqual([]);
    await desk.clock.advance(minute);
    await desk.settle();
    expect(desk.store.rows.get(id)?.pauseReason).toBe("proof_expired");
  });

  it("continues after a restart, where missed steps happen once", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    desk.destinations.close();
    await desk.clock.advance(20 * hour);
    expect(desk.sent.length).toBe(1);
    await desk.start();
    expect(desk.sent.length).toBe(2);
    expect(desk.active()).toEqual([place]);
    await desk.clock.advance(2 * hour);
    expect(desk.sent.length).toBe(3);
    desk.destinations.answer(place, desk.lastDatagram);
    await desk.settle();
    desk.destinations.close();
    await desk.clock.advance(30 * hour);
    await desk.start();
    expect(desk.active()).toEqual([]);
    await desk.settle();
    expect(desk.state(id)?.pauseReason).toBe("proof_expired");
    expect(desk.sent.length).toBe(3);
  });
});

describe("an unreachable receiver", () => {
  const fail = async (desk: Harness, seconds: number): Promise<void> => {
    for (let i = 0; i <= seconds; i += 2) {
      desk.destinations.unreachable(place, desk.nowMs);
      if (i < seconds) await desk.clock.advance(2 * second);
    }
  };

  it("is paused after 10 s, and resumes automatically when it answers", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    desk.sent.length = 0;
    desk.told = 0;
    await fail(desk, 8);
    expect(desk.active()).toEqual([place]);
    await desk.clock.advance(2 * second);
    desk.destinations.unreachable(place, desk.nowMs);
    expect(desk.active()).toEqual([]); // in the same turn
    expect(desk.told).toBe(1);
    const pausedMs = desk.nowMs;
    await desk.settle();
    expect(desk.store.rows.get(id)).toMatchObject({ pauseReason: "icmp_unreachable", pausedMs });
    await desk.clock.advance(600 * second);
    expect(desk.sentSeconds(pausedMs)).toEqual([10, 60, 600]);
    desk.destinations.answer(place, desk.lastDatagram);
    await desk.settle();
    expect(desk.active()).toEqual([place]);
    await fail(desk, 8);
    expect(desk.active()).toEqual([place]); // the earlier errors have ended
  });

  it("is not paused by rare errors or errors of others", async () => {
    const desk = await Harness.open();
    await desk.proved();
    for (let i = 0; i < 20; i++) {
      desk.destinations.unreachable(place, desk.nowMs);
      desk.destinations.unreachable("5.6.7.9:9001", desk.nowMs);
      await desk.clock.advance(5 * second);
    }
    expect(desk.active()).toEqual([place]);
  });

  it("stays paused even if the store is down", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    desk.store.isDown = true;
    await fail(desk, 10);
    expect(desk.active()).toEqual([]);
    await desk.clock.advance(minute);
    expect(desk.active()).toEqual([]);
    desk.store.isDown = false;
    await desk.clock.advance(5 * second);
    await desk.settle();
    expect(desk.store.rows.get(id)?.pauseReason).toBe("icmp_unreachable");
  });
});

describe("the operator", () => {
  it("approves manually and permanently", async () => {
    const desk = await Harness.open();
    const { id } = await desk.destinations.add(one, "here", place);
    expect(await desk.destinations.approve(id)).toMatchObject({
      state: "active",
      provedBy: "operator",
      proofEndsMs: null,
    });
    await desk.clock.advance(100 * 24 * hour);
    expect(desk.active()).toEqual([place]);
    expect(desk.sent.length).toBe(1);
  });

  it("pauses, and no proof resumes it", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    await desk.destinations.challenge("a_1", id);
    await desk.destinations.pause(id);
    expect(desk.active()).toEqual([]);
    const late = desk.destinations.prove("a_1", id, desk.lastToken);
    await expect(late).rejects.toThrow("none is open");
    desk.destinations.answer(place, desk.lastDatagram);
    await desk.settle();
    expect(desk.state(id)).toMatchObject({ state: "paused", pauseReason: "operator" });
    expect(desk.active()).toEqual([]);
    expect(await desk.destinations.resume(id)).toMatchObject({ state: "active" });
    expect(desk.active()).toEqual([place]);
  });

  it("resumes only destinations with a valid proof", async () => {
    const desk = await Harness.open();
    const { id } = await desk.destinations.add(one, "here", place);
    await desk.destinations.pause(id);
    expect(await desk.destinations.resume(id)).toMatchObject({ state: "unproved" });
    await desk.destinations.challenge("a_1", id);
    await desk.destinations.prove("a_1", id, desk.lastToken);
    await desk.destinations.pause(id);
    await desk.clock.advance(24 * hour);
    expect(desk.state(id)?.pauseReason).toBe("operator");
    const resumed = await desk.destinations.resume(id);
    expect(resumed).toMatchObject({ state: "paused", pauseReason: "proof_expired" });
    expect(desk.active()).toEqual([]);
  });

  it("removes, which releases the address", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    desk.told = 0;
    await desk.destinations.removeAny(id);
    expect(desk.told).toBe(1);
    expect(desk.active()).toEqual([]);
    expect(desk.clock.pending).toBe(0);
    await expect(desk.destinations.approve(id)).rejects.toMatchObject({
      reason: "destination_unknown",
    });
    await desk.destinations.add(other, "here", place);
  });
});

describe("changed settings", () => {
  it("stop denied destinations immediately, and retain them", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    const { destinations } = desk;
    const active = () => desk.active();
    const base = settings;
    desk.told = 0;
    destinations.apply({ ...base, denied: [parseAddressRange("5.6.0.0/16")] });
    expect(active()).toEqual([]);
    expect(desk.told).toBe(1);
    expect(destinations.refusalOf(id)).toContain("denies");
    expect(desk.state(id)?.state).toBe("active");
    const challenge = destinations.challenge("a_1", id);
    await expect(challenge).rejects.toMatchObject({ reason: "destination_refused" });
    await desk.clock.advance(13 * hour);
    expect(desk.sent.length).toBe(1); // nothing is sent there
    destinations.apply(base);
    expect(active()).toEqual([place]);
    await desk.settle();
    expect(desk.sent.length).toBe(2); // the renewal that was due
    destinations.apply({ ...base, fixed: new Set([place]) });
    expect(active()).toEqual([]);
  });

  it("end an open round of a denied destination", async () => {
    const desk = await Harness.open();
    const { id } = await desk.destinations.add(one, "here", place);
    desk.destinations.apply({ ...settings, denied: [parseAddressRange("5.6.7.8")] });
    desk.destinations.answer(place, desk.lastDatagram);
    await desk.clock.advance(minute);
    expect(desk.sent.length).toBe(1);
    expect(desk.state(id)?.state).toBe("unproved");
  });
});

describe("another process", () => {
  it("approves, pauses, removes and adds: this one applies the changes", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    const row = desk.store.rows.get(id);
    if (!row) throw new Error("expected a row");
    desk.store.foreign((rows) =>
      rows.set(id, { ...row, state: "paused", pausedMs: desk.nowMs, pauseReason: "operator" }),
    );
    await desk.settle();
    expect(desk.active()).toEqual([]);
    desk.store.foreign((rows) => {
      rows.delete(id);
      rows.set("d_2", { ...row, id: "d_2", state: "unproved", provedMs: null, proofEndsMs: null });
    });
    await desk.settle();
    expect(desk.state(id)).toBeUndefined();
    await desk.clock.advance(10 * second);
    expect(desk.sent.length).toBe(4); // one that proved it, and three of the new round
    desk.destinations.answer(place, desk.lastDatagram);
    await desk.settle();
    expect(desk.active()).toEqual([place]);
    expect(desk.state("d_2")?.state).toBe("active");
  });

  it("precedes a local change based on the old state, and its change is not lost", async () => {
    const desk = await Harness.open();
    const { id } = await desk.destinations.add(one, "here", place);
    const row = desk.store.rows.get(id);
    if (!row) throw new Error("expected a row");
    // Written, but not reported yet.
    desk.store.rows.set(id, { ...row, state: "paused", pausedMs: 5, pauseReason: "operator" });
    await desk.destinations.prove("a_1", id, desk.lastToken);
    expect(desk.store.rows.get(id)).toMatchObject({
      state: "paused",
      pauseReason: "operator",
      provedBy: "call",
    });
    expect(desk.active()).toEqual([]);
    desk.store.rows.delete(id);
    await expect(desk.destinations.approve(id)).rejects.toMatchObject({
      reason: "destination_unknown",
    });
    expect(desk.state(id)).toBeUndefined();
  });

  it("is read later if the store is down, and an old read reverts nothing", async () => {
    const desk = await Harness.open();
    const { id } = await desk.proved();
    desk.store.isDown = true;
    desk.store.foreign((rows) => rows.delete(id));
    await desk.settle();
    expect(desk.active()).toEqual([place]);
    desk.store.isDown = false;
    await desk.clock.advance(5 * second);
    await desk.settle();
    expect(desk.active()).toEqual([]);

    const again = await desk.destinations.add(one, "here", place);
    let open = () => {};
    desk.store.gate = new Promise((resolve) => {
      open = resolve;
    });
    desk.store.foreign(() => {}); // its read sees it as unverified, and arrives late
    desk.store.gate = Promise.resolve();
    await desk.destinations.prove("a_1", again.id, desk.lastToken);
    const { told } = desk;
    open();
    await desk.settle();
    expect(desk.active()).toEqual([place]);
    expect(desk.told).toBe(told); // not even for one check
    const gone = await desk.destinations.add(one, "here", "5.6.7.9:9001");
    desk.store.gate = new Promise((resolve) => {
      open = resolve;
    });
    desk.store.foreign(() => {});
    desk.store.gate = Promise.resolve();
    await desk.destinations.removeAny(gone.id);
    open();
    await desk.settle();
    expect(desk.state(gone.id)).toBeUndefined();
  });
});

describe("many destinations", () => {
  it("wait with one timer", async () => {
    const desk = await Harness.open({ perAccountMax: 64 });
    for (let i = 0; i < 3000; i++) {
      const id = `d_${i}`;
      desk.store.rows.set(id, {
        ...newDestination(
          { id: `a_${i}`, name: `${i}` },
          { region: "here", endpoint: parseEndpoint(`5.6.${i >> 8}.${i & 255}:9001`) },
          { random: new Uint8Array(6), nowMs: desk.nowMs },
        ),
        id,
        state: "active",
        provedMs: desk.nowMs + i * second,
        provedBy: "call",
        proofEndsMs: desk.nowMs + i * second + hour,
      });
    }
    await desk.start();
    expect(desk.clock.pending).toBe(1);
    expect(desk.active().length).toBe(3000);
    await desk.clock.advance(30 * minute + 10 * second);
    expect(desk.sent.length).toBe(11);
    expect(desk.clock.pending).toBe(1);
  });
});
