// Verified destinations over time: renewal, pauses, the operator, changed settings and other processes.

import { describe, expect, it } from "vitest";
import { parseAddressRange, parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { newDestination } from "../../../src/shreds/destinations/destination-rules.ts";
import { endpoint, Harness, hour, minute, one, other, second, settings } from "./harness.ts";

describe("renewal", () => {
  it("is requested at 1/2, 3/4 and 9/10 of the term; without it the shreds end", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    const start = harness.nowMs;
    harness.sent.length = 0;
    await harness.clock.advance(24 * hour - 1);
    expect(harness.sentSeconds(start)).toEqual([12 * 3600, 18 * 3600, 21.6 * 3600]);
    expect(new Set(harness.sent.map(({ token }) => token)).size).toBe(3);
    expect(harness.active()).toEqual([endpoint]);
    harness.notifications = 0;
    await harness.clock.advance(1);
    expect(harness.active()).toEqual([]);
    expect(harness.notifications).toBe(1);
    await harness.settle();
    expect(harness.store.rows.get(id)).toMatchObject({
      state: "paused",
      pauseReason: "proof_expired",
      pausedMs: start + 24 * hour,
    });
    // The service looks for a receiver that returns, for an hour.
    await harness.clock.advance(48 * hour);
    expect(harness.sent.length).toBe(28);
    await harness.destinations.challenge("a_1", id);
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    expect(harness.state(id)).toMatchObject({ state: "active", pauseReason: null, pausedMs: null });
  });

  it("begins a new term after an answer", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    await harness.clock.advance(12 * hour);
    const answeredMs = harness.nowMs;
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.clock.advance(12 * hour);
    expect(harness.state(id)?.proofEndsMs).toBe(answeredMs + 24 * hour);
    expect(harness.active()).toEqual([endpoint]);
    expect(harness.notifications).toBe(1); // it was active the whole time
  });

  it("is requested again after it ended, and resumes automatically", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    harness.destinations.close();
    await harness.clock.advance(25 * hour);
    await harness.start();
    await harness.settle();
    expect(harness.state(id)?.pauseReason).toBe("proof_expired");
    await harness.clock.advance(10_000);
    expect(harness.destinations.isAwaited(endpoint)).toBe(true);
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    expect(harness.active()).toEqual([endpoint]);
  });

  it("happens only in the destination's region", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "there", endpoint);
    await harness.destinations.prove("a_1", id, harness.lastToken);
    await harness.clock.advance(25 * hour);
    expect(harness.sent.length).toBe(1);
    expect(harness.state(id)?.pauseReason).toBe("proof_expired");
  });

  it("ends the shreds on time even if the store is down, and is stored later", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    harness.store.isDown = true;
    await harness.clock.advance(24 * hour);
    expect(harness.active()).toEqual([]);
    expect(harness.state(id)?.state).toBe("active");
    await harness.clock.advance(minute);
    harness.store.isDown = false;
    await harness.clock.advance(5 * second);
    await harness.settle();
    expect(harness.store.rows.get(id)?.pauseReason).toBe("proof_expired");
  });

  it("is missed immediately when the wall clock is set forward, and soon stored as missed", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    harness.skewMs = 25 * hour;
    expect(harness.active()).toEqual([]);
    await harness.clock.advance(minute);
    await harness.settle();
    expect(harness.store.rows.get(id)?.pauseReason).toBe("proof_expired");
  });

  it("begins again after a restart within a minute, because its round is lost", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    harness.destinations.close();
    await harness.clock.advance(5 * second);
    await harness.start();
    expect(harness.sent.length).toBe(2);
    await harness.clock.advance(10 * second);
    expect(harness.sent.length).toBe(4);
    harness.destinations.close();
    await harness.clock.advance(45 * second);
    await harness.start();
    await harness.clock.advance(minute);
    expect(harness.sent.length).toBe(4);
    expect(harness.state(id)?.state).toBe("unproved");
  });

  it("continues after a restart, where missed steps happen once", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    harness.destinations.close();
    await harness.clock.advance(20 * hour);
    expect(harness.sent.length).toBe(1);
    await harness.start();
    expect(harness.sent.length).toBe(2);
    expect(harness.active()).toEqual([endpoint]);
    await harness.clock.advance(2 * hour);
    expect(harness.sent.length).toBe(3);
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    harness.destinations.close();
    await harness.clock.advance(30 * hour);
    await harness.start();
    expect(harness.active()).toEqual([]);
    await harness.settle();
    expect(harness.state(id)?.pauseReason).toBe("proof_expired");
    expect(harness.sent.length).toBe(3);
  });
});

describe("an unreachable receiver", () => {
  const fail = async (harness: Harness, seconds: number): Promise<void> => {
    for (let i = 0; i <= seconds; i += 2) {
      harness.destinations.unreachable(endpoint, harness.nowMs);
      if (i < seconds) await harness.clock.advance(2 * second);
    }
  };

  it("is paused after 10 s and three probes, and resumes automatically when it answers", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    harness.notifications = 0;
    await fail(harness, 8);
    expect(harness.active()).toEqual([endpoint]);
    await harness.clock.advance(2 * second);
    harness.destinations.unreachable(endpoint, harness.nowMs);
    const beganMs = harness.nowMs;
    await harness.clock.advance(3 * second - 1);
    expect(harness.active()).toEqual([endpoint]);
    harness.sent.length = 0;
    await harness.clock.advance(1);
    expect(harness.active()).toEqual([]);
    expect(harness.probes.map(({ atMs }) => (atMs - beganMs) / second)).toEqual([0, 1, 2]);
    const secrets = harness.probes.map(({ datagram }) => Buffer.from(datagram).toString("hex"));
    expect(new Set(secrets).size).toBe(3);
    expect(harness.notifications).toBe(1);
    const pausedMs = harness.nowMs;
    await harness.settle();
    expect(harness.store.rows.get(id)).toMatchObject({ pauseReason: "icmp_unreachable", pausedMs });
    await harness.clock.advance(hour);
    const seconds = harness.sentSeconds(pausedMs);
    expect(seconds.length).toBe(25);
    expect(harness.destinations.nextChallengeMs(id)).toBeNull();
    // A receiver that comes back waits at most 10 s, or a third of the time that it was away.
    for (const [i, at] of seconds.entries()) {
      const before = seconds[i - 1] ?? 0;
      expect(at - before).toBeLessThanOrEqual(Math.max(10, before / 3));
    }
    expect(seconds.at(-1)).toBe(3600);
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    expect(harness.active()).toEqual([endpoint]);
    await fail(harness, 8);
    expect(harness.active()).toEqual([endpoint]); // the earlier errors have ended
  });

  it("is not paused by errors that no probe confirms, however long", async () => {
    for (const result of ["pending", "answered"] as const) {
      const harness = await Harness.open();
      harness.probeResult = result;
      await harness.proved();
      harness.sent.length = 0;
      await fail(harness, 3600);
      expect(harness.active()).toEqual([endpoint]);
      // At most one probe for each 10 s of errors.
      expect(harness.probes.length).toBeLessThanOrEqual(361);
      expect(harness.sent).toEqual([]);
    }
  });

  it("is not paused if two of three probes confirm the errors", async () => {
    const harness = await Harness.open();
    await harness.proved();
    await fail(harness, 10);
    await harness.clock.advance(2.5 * second);
    harness.probeResult = "pending";
    await harness.clock.advance(10 * second);
    expect(harness.active()).toEqual([endpoint]);
    expect(harness.probes.length).toBe(3);
  });

  it("that used to answer challenges is paused after 30 s of errors without an answer", async () => {
    const harness = await Harness.open();
    harness.probeResult = "pending";
    const { id } = await harness.answered();
    harness.sent.length = 0;
    const beganMs = harness.nowMs;
    await fail(harness, 36);
    expect(harness.active()).toEqual([endpoint]);
    await fail(harness, 20);
    expect(harness.active()).toEqual([]);
    await harness.settle();
    expect(harness.state(id)?.pauseReason).toBe("icmp_unreachable");
    expect(harness.sentSeconds(beganMs).slice(0, 3)).toEqual([10, 20, 30]);
  });

  it("that answers is not paused by forged errors, however long", async () => {
    const harness = await Harness.open();
    harness.probeResult = "pending";
    await harness.answered();
    for (let i = 0; i < 120; i++) {
      const before = harness.sent.length;
      await fail(harness, 4);
      await harness.clock.advance(2 * second);
      if (harness.sent.length > before) harness.destinations.answer(endpoint, harness.lastDatagram);
      await harness.settle();
      expect(harness.active()).toEqual([endpoint]);
    }
  });

  it("is not paused by rare errors or errors of others", async () => {
    const harness = await Harness.open();
    await harness.proved();
    for (let i = 0; i < 20; i++) {
      harness.destinations.unreachable(endpoint, harness.nowMs);
      harness.destinations.unreachable("5.6.7.9:9001", harness.nowMs);
      await harness.clock.advance(5 * second);
    }
    expect(harness.active()).toEqual([endpoint]);
  });

  it("stays paused even if the store is down", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    harness.store.isDown = true;
    await fail(harness, 10);
    await harness.clock.advance(3 * second);
    expect(harness.active()).toEqual([]);
    await harness.clock.advance(minute);
    expect(harness.active()).toEqual([]);
    harness.store.isDown = false;
    await harness.clock.advance(5 * second);
    await harness.settle();
    expect(harness.store.rows.get(id)?.pauseReason).toBe("icmp_unreachable");
  });
});

describe("the operator", () => {
  it("approves manually and permanently", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    expect(await harness.destinations.approve(id)).toMatchObject({
      state: "active",
      provedBy: "operator",
      proofEndsMs: null,
    });
    await harness.clock.advance(100 * 24 * hour);
    expect(harness.active()).toEqual([endpoint]);
    expect(harness.sent.length).toBe(1);
  });

  it("pauses, and no proof resumes it", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    await harness.destinations.challenge("a_1", id);
    await harness.destinations.pause(id);
    expect(harness.active()).toEqual([]);
    const late = harness.destinations.prove("a_1", id, harness.lastToken);
    await expect(late).rejects.toThrow("no challenge is open");
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    expect(harness.state(id)).toMatchObject({ state: "paused", pauseReason: "operator" });
    expect(harness.active()).toEqual([]);
    expect(await harness.destinations.resume(id)).toMatchObject({ state: "active" });
    expect(harness.active()).toEqual([endpoint]);
  });

  it("resumes only destinations with a valid proof", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    await harness.destinations.pause(id);
    expect(await harness.destinations.resume(id)).toMatchObject({ state: "unproved" });
    await harness.destinations.challenge("a_1", id);
    await harness.destinations.prove("a_1", id, harness.lastToken);
    await harness.destinations.pause(id);
    await harness.clock.advance(24 * hour);
    expect(harness.state(id)?.pauseReason).toBe("operator");
    const resumed = await harness.destinations.resume(id);
    expect(resumed).toMatchObject({ state: "paused", pauseReason: "proof_expired" });
    expect(harness.active()).toEqual([]);
  });

  it("removes, which releases the address", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    harness.notifications = 0;
    await harness.destinations.removeAny(id);
    expect(harness.notifications).toBe(1);
    expect(harness.active()).toEqual([]);
    expect(harness.clock.pending).toBe(0);
    await expect(harness.destinations.approve(id)).rejects.toMatchObject({
      reason: "destination_unknown",
    });
    await harness.destinations.add(other, "here", endpoint);
  });
});

describe("a region without a running node", () => {
  it("is the reason why nothing is sent, until a node runs again", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    expect(harness.destinations.refusalOf(id)).toBeNull();
    harness.regionProblem = (region) => `no node of region ${region} is running`;
    expect(harness.destinations.refusalOf(id)).toBe("no node of region here is running");
    expect(harness.state(id)?.state).toBe("active");
    harness.regionProblem = () => null;
    expect(harness.destinations.refusalOf(id)).toBeNull();
  });
});

describe("changed settings", () => {
  it("stop denied destinations immediately, and retain them", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    const { destinations } = harness;
    const active = () => harness.active();
    const base = settings;
    harness.notifications = 0;
    destinations.apply({ ...base, denied: [parseAddressRange("5.6.0.0/16")] });
    expect(active()).toEqual([]);
    expect(harness.notifications).toBe(1);
    expect(destinations.refusalOf(id)).toContain("denies");
    expect(harness.state(id)?.state).toBe("active");
    const challenge = destinations.challenge("a_1", id);
    await expect(challenge).rejects.toMatchObject({ reason: "destination_refused" });
    await harness.clock.advance(13 * hour);
    expect(harness.sent.length).toBe(1); // nothing is sent there
    destinations.apply(base);
    expect(active()).toEqual([endpoint]);
    await harness.settle();
    expect(harness.sent.length).toBe(2); // the renewal that was due
    destinations.apply({ ...base, fixed: new Set([endpoint]) });
    expect(active()).toEqual([]);
  });

  it("end an open round of a denied destination", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    harness.destinations.apply({ ...settings, denied: [parseAddressRange("5.6.7.8")] });
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.clock.advance(minute);
    expect(harness.sent.length).toBe(1);
    expect(harness.state(id)?.state).toBe("unproved");
  });
});

describe("another process", () => {
  it("approves, pauses, removes and adds: this one applies the changes", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    const row = harness.store.rows.get(id);
    if (!row) throw new Error("expected a row");
    harness.store.foreign((rows) =>
      rows.set(id, { ...row, state: "paused", pausedMs: harness.nowMs, pauseReason: "operator" }),
    );
    await harness.settle();
    expect(harness.active()).toEqual([]);
    harness.store.foreign((rows) => {
      rows.delete(id);
      rows.set("d_2", { ...row, id: "d_2", state: "unproved", provedMs: null, proofEndsMs: null });
    });
    await harness.settle();
    expect(harness.state(id)).toBeUndefined();
    await harness.clock.advance(10 * second);
    expect(harness.sent.length).toBe(4); // one that proved it, and three of the new round
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    expect(harness.active()).toEqual([endpoint]);
    expect(harness.state("d_2")?.state).toBe("active");
  });

  it("precedes a local change based on the old state, and its change is not lost", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    const row = harness.store.rows.get(id);
    if (!row) throw new Error("expected a row");
    // Written, but not reported yet.
    harness.store.rows.set(id, { ...row, state: "paused", pausedMs: 5, pauseReason: "operator" });
    await harness.destinations.prove("a_1", id, harness.lastToken);
    expect(harness.store.rows.get(id)).toMatchObject({
      state: "paused",
      pauseReason: "operator",
      provedBy: "call",
    });
    expect(harness.active()).toEqual([]);
    harness.store.rows.delete(id);
    await expect(harness.destinations.approve(id)).rejects.toMatchObject({
      reason: "destination_unknown",
    });
    expect(harness.state(id)).toBeUndefined();
  });

  it("is read later if the store is down, and an old read reverts nothing", async () => {
    const harness = await Harness.open();
    const { id } = await harness.proved();
    harness.store.isDown = true;
    harness.store.foreign((rows) => rows.delete(id));
    await harness.settle();
    expect(harness.active()).toEqual([endpoint]);
    harness.store.isDown = false;
    await harness.clock.advance(5 * second);
    await harness.settle();
    expect(harness.active()).toEqual([]);

    const repeated = await harness.destinations.add(one, "here", endpoint);
    let open = () => {};
    harness.store.gate = new Promise((resolve) => {
      open = resolve;
    });
    harness.store.foreign(() => {}); // its read sees it as unverified, and arrives late
    harness.store.gate = Promise.resolve();
    await harness.destinations.prove("a_1", repeated.id, harness.lastToken);
    const { notifications } = harness;
    open();
    await harness.settle();
    expect(harness.active()).toEqual([endpoint]);
    expect(harness.notifications).toBe(notifications); // not even for one check
    const gone = await harness.destinations.add(one, "here", "5.6.7.9:9001");
    harness.store.gate = new Promise((resolve) => {
      open = resolve;
    });
    harness.store.foreign(() => {});
    harness.store.gate = Promise.resolve();
    await harness.destinations.removeAny(gone.id);
    open();
    await harness.settle();
    expect(harness.state(gone.id)).toBeUndefined();
  });
});

describe("many destinations", () => {
  it("wait with one timer", async () => {
    const harness = await Harness.open({ perAccountMax: 64 });
    for (let i = 0; i < 3000; i++) {
      const id = `d_${i}`;
      harness.store.rows.set(id, {
        ...newDestination(
          { id: `a_${i}`, name: `${i}` },
          { region: "here", endpoint: parseEndpoint(`5.6.${i >> 8}.${i & 255}:9001`) },
          { random: new Uint8Array(6), nowMs: harness.nowMs },
        ),
        id,
        state: "active",
        provedMs: harness.nowMs + i * second,
        provedBy: "call",
        proofEndsMs: harness.nowMs + i * second + hour,
      });
    }
    await harness.start();
    expect(harness.clock.pending).toBe(1);
    expect(harness.active().length).toBe(3000);
    await harness.clock.advance(30 * minute + 10 * second);
    expect(harness.sent.length).toBe(11);
    expect(harness.clock.pending).toBe(1);
  });
});
