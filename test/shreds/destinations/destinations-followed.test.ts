// Destinations that another node changed: read individually if known, and never replaced by older data.

import { describe, expect, it } from "vitest";
import type { AccountDestination } from "../../../src/shreds/destinations/destination-types.ts";
import { endpoint, Harness, hour, minute, one, second } from "./harness.ts";

async function provedRow(harness: Harness): Promise<AccountDestination> {
  const { id } = await harness.proved();
  const row = harness.store.rows.get(id);
  if (!row) throw new Error("expected a row");
  harness.store.readings.length = 0;
  return row;
}

/** Reads wait until this function is called. */
function hold(harness: Harness): () => void {
  let open = () => {};
  harness.store.gate = new Promise((resolve) => {
    open = resolve;
  });
  return open;
}

const paused = { state: "paused", pausedMs: 5, pauseReason: "operator" } as const;

describe("a destination that another node changed", () => {
  it("is read individually, immediately, and applied", async () => {
    const harness = await Harness.open();
    const row = await provedRow(harness);
    harness.store.foreign((rows) => rows.set(row.id, { ...row, ...paused }), [row.id]);
    await harness.settle();
    expect(harness.active()).toEqual([]);
    expect(harness.state(row.id)?.pauseReason).toBe("operator");
    const added = { ...row, id: "d_2", address: "5.6.7.9:9001" };
    harness.store.foreign((rows) => rows.set("d_2", added), ["d_2"]);
    await harness.settle();
    expect(harness.active()).toEqual(["5.6.7.9:9001"]);
    harness.store.foreign((rows) => rows.delete("d_2"), ["d_2"]);
    await harness.settle();
    expect(harness.active()).toEqual([]);
    expect(harness.store.readings).toEqual([row.id, "d_2", "d_2"]);
  });

  it("may release its address to another one at the same time", async () => {
    const harness = await Harness.open();
    const row = await provedRow(harness);
    const change = (rows: Map<string, AccountDestination>) => {
      rows.delete(row.id);
      rows.set("d_2", { ...row, id: "d_2", accountId: "a_2" });
    };
    harness.store.foreign(change, ["d_2", row.id]);
    await harness.settle();
    expect(harness.active()).toEqual([endpoint]);
    expect(harness.destinations.list().map(({ id }) => id)).toEqual(["d_2"]);
  });

  it("is challenged here only if this is its region", async () => {
    const harness = await Harness.open();
    const row = await provedRow(harness);
    const fresh = { ...row, state: "unproved", provedMs: null, proofEndsMs: null } as const;
    const { length } = harness.sent;
    const add = (id: string, region: string, address: string) =>
      harness.store.foreign((rows) => rows.set(id, { ...fresh, id, region, address }), [id]);
    add("d_2", "there", "5.6.7.8:9002");
    add("d_3", "here", "5.6.7.8:9003");
    await harness.settle();
    expect(harness.sent.slice(length).map(({ address }) => address)).toEqual(["5.6.7.8:9003"]);
  });

  it("gets no challenge from here while the relay of another node sends to its region", async () => {
    const harness = await Harness.open();
    const row = await provedRow(harness);
    harness.isServedElsewhere = () => true;
    const { length } = harness.sent;
    const fresh = { ...row, state: "unproved", provedMs: null, proofEndsMs: null } as const;
    const added = { ...fresh, id: "d_2", address: "5.6.7.8:9002" };
    harness.store.foreign((rows) => rows.set("d_2", added), ["d_2"]);
    await harness.settle();
    await harness.clock.advance(23 * hour); // past each renewal of the first one
    expect(harness.sent.slice(length)).toEqual([]);
    harness.isServedElsewhere = () => false;
    await harness.destinations.challenge(row.accountId, row.id);
    expect(harness.sent.length).toBe(length + 1);
  });

  it("is read again after a gap, like all others", async () => {
    const harness = await Harness.open();
    const row = await provedRow(harness);
    const open = hold(harness);
    harness.store.foreign((rows) => rows.set(row.id, { ...row, ...paused }), [row.id]);
    harness.store.foreign(() => {}, ["d_7"]);
    harness.store.foreign(() => {}, null);
    harness.store.foreign(() => {}, ["d_8"]);
    open();
    await harness.settle();
    expect(harness.store.readings).toEqual([row.id, "all"]);
    expect(harness.active()).toEqual([]);
  });

  it("among very many is not read individually", async () => {
    const harness = await Harness.open();
    await provedRow(harness);
    harness.store.foreign(
      () => {},
      Array.from({ length: 65 }, (_, i) => `d_${i}`),
    );
    await harness.settle();
    expect(harness.store.readings).toEqual(["all"]);
  });
});

describe("a region with the relay of another node", () => {
  it("is challenged by that node only, unless a call here requests it", async () => {
    const harness = await Harness.open();
    harness.isServedElsewhere = (region) => region === "there";
    const startMs = harness.nowMs;
    const { id } = await harness.destinations.add(one, "there", endpoint);
    expect(harness.destinations.nextChallengeMs(id)).toBe(startMs + 2 * second);
    await harness.clock.advance(minute);
    expect(harness.sent).toEqual([]);
    expect(harness.destinations.nextChallengeMs(id)).toBeNull();
    const early = harness.destinations.prove("a_1", id, "00".repeat(16));
    await expect(early).rejects.toThrow("no challenge is open at this node");
    await harness.destinations.challenge("a_1", id);
    await harness.clock.advance(minute);
    expect(harness.sent.length).toBe(3);
    await harness.destinations.prove("a_1", id, harness.lastToken);
    expect(harness.active("there")).toEqual([endpoint]);
  });
});

describe("a read", () => {
  it("that is older than a local change does not revert it, and is repeated", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    harness.store.readings.length = 0;
    const open = hold(harness);
    harness.store.foreign(() => {}, [id]); // reads it as unverified, and arrives late
    harness.store.gate = Promise.resolve();
    await harness.destinations.prove("a_1", id, harness.lastToken);
    const { notifications } = harness;
    open();
    await harness.settle();
    expect(harness.active()).toEqual([endpoint]);
    expect(harness.notifications).toBe(notifications); // not even for one check
    expect(harness.store.readings).toEqual([id, id]);
  });

  it("that is older than a local removal does not restore the destination", async () => {
    const harness = await Harness.open();
    const { id } = await provedRow(harness);
    const open = hold(harness);
    harness.store.foreign(() => {}, [id]);
    harness.store.gate = Promise.resolve();
    await harness.destinations.removeAny(id);
    open();
    await harness.settle();
    expect(harness.state(id)).toBeUndefined();
  });

  it("that failed is repeated with all changes reported meanwhile", async () => {
    const harness = await Harness.open();
    const row = await provedRow(harness);
    harness.store.isDown = true;
    harness.store.foreign((rows) => rows.set(row.id, { ...row, ...paused }), [row.id]);
    await harness.settle();
    const added = { ...row, id: "d_2", address: "5.6.7.9:9001" };
    harness.store.foreign((rows) => rows.set("d_2", added), ["d_2"]);
    await harness.clock.advance(minute);
    expect(harness.active()).toEqual([endpoint]); // known destinations stay
    harness.store.isDown = false;
    await harness.clock.advance(second);
    expect(harness.active()).toEqual(["5.6.7.9:9001"]);
    expect(harness.store.readings).not.toContain("all");
  });

  it("at startup includes changes reported meanwhile", async () => {
    const harness = await Harness.open();
    const row = await provedRow(harness);
    const open = hold(harness);
    const starting = harness.start(); // reads it as active
    harness.store.gate = Promise.resolve();
    harness.store.foreign((rows) => rows.set(row.id, { ...row, ...paused }), [row.id]);
    await harness.settle();
    open();
    await starting;
    await harness.settle();
    expect(harness.active()).toEqual([]);
  });
});
